/**
 * Values of connections that must not be shown: rclone's messages contain addresses and connection strings,
 * and these messages appear in the status and the log.
 */
import { MASK } from 'mountkeeper';
import { isHarmlessOption } from './shown-options.ts';

/** Shorter values would mask ordinary words. */
const SHORTEST = 4;
/** Most values that are remembered; enough for a long life with many passwords. The oldest are dropped. */
const MOST = 2_000;
/** Characters that may follow an address in a sentence. */
const CLOSING = '"\'`)],;:';
const hidden = new Set<string>();

/** Called whenever options are resolved. */
export function hideOption(type: string, name: string, value: string): void {
  if (isHarmlessOption(type, name, value)) return;
  for (const part of partsOf(value)) {
    if (part.length < SHORTEST) continue;
    hidden.delete(part);
    hidden.add(part);
    const [oldest] = hidden;
    if (hidden.size > MOST && oldest !== undefined) hidden.delete(oldest);
  }
}

/** The value and its parts, as in `:webdav,url='https://nas/?q=1',pass=word:`. */
function partsOf(value: string): readonly string[] {
  const given = value
    .split(',')
    .flatMap((part) => (part.includes('=') ? [part.slice(part.indexOf('=') + 1)] : []));
  return [
    value,
    ...given.map((part) =>
      part
        .replace(/:$/, '')
        .replace(/^'(.*)'$/, '$1')
        .replace(/^"(.*)"$/, '$1'),
    ),
  ];
}

/** The text with all of them masked, and without the query (`?…`) of addresses. */
export function masked(text: string): string {
  const longestFirst = [...hidden]
    .filter((value) => text.includes(value))
    .sort((a, b) => b.length - a.length);
  const without = longestFirst.reduce((rest, value) => rest.replaceAll(value, MASK), text);
  return without.split(' ').map(withoutQuery).join(' ');
}

function withoutQuery(word: string): string {
  const query = word.includes('://') ? word.indexOf('?') : -1;
  if (query === -1) return word;
  let end = word.length;
  while (end > query + 1 && CLOSING.includes(word.charAt(end - 1))) end -= 1;
  return `${word.slice(0, query)}?…${word.slice(end)}`;
}
