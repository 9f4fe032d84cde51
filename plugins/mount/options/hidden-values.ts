/**
 * Values of connections that nobody may read: rclone quotes addresses and connection strings in what it says,
 * and what it says is shown in the status and the log.
 */
import { MASK } from 'mountkeeper';
import { isHarmlessOption } from './shown-options.ts';

/** A shorter one would mask ordinary words. */
const SHORTEST = 4;
/** Of the connections of a long life with many passwords; the oldest go first. */
const MOST = 2_000;
/** What may follow an address in a sentence. */
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

/** The value, and what stands in it as in `:webdav,url='https://nas/?q=1',pass=word:`. */
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

/** The text with all of them masked, and without what follows the `?` of an address. */
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
