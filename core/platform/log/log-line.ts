/**
 * The log line that people read:
 * `2026-11-21T05:31:02.123Z INFO  mount: share mounted share=photos ms=812`
 * One entry is one line, whatever its values hold.
 */
import { withSourcePlaces } from './source-places.ts';
import { escapeUnprintable, UNPRINTABLE } from './unprintable.ts';

interface LoggedError {
  readonly type?: string;
  readonly message?: string;
  readonly stack?: string;
}

const FATAL = 'FATAL';
/** A frame in the copy of a third party's plugin, as it is loaded from. */
const COPY = /\/plugins\/[a-z0-9-]{1,100}@[0-9a-f]{12}\//;
/** Errors that are bugs: their stack matters more than their message. */
const BUGS = new Set(['TypeError', 'ReferenceError', 'RangeError', 'SyntaxError', 'AssertionError']);

/** Turns one entry, as pino serialises it, into the line that people read. */
export function formatLine(entry: Record<string, unknown>): string {
  const { time, level, plugin, msg, err, ...fields } = entry;
  const label = text(level).toUpperCase();
  const source = plugin === undefined ? '' : `${text(plugin)}: `;
  const parts = [`${text(time)} ${label.padEnd(5)} ${source}${text(msg)}`];
  for (const [key, value] of Object.entries(fields))
    parts.push(`${escapeUnprintable(key)}=${formatValue(value)}`);
  if (err !== undefined) parts.push(...formatError(err, label));
  return `${parts.join(' ').trimEnd()}\n`;
}

function formatError(err: unknown, label: string): string[] {
  if (typeof err !== 'object' || err === null) return [`error=${formatValue(err)}`];
  const { type, message, stack } = err as LoggedError;
  const parts = [`error=${formatValue(message ?? err)}`];
  if (stack !== undefined && (label === FATAL || BUGS.has(type ?? '')))
    parts.push(`stack=${formatValue(withSourcePlaces(stack))}`);
  else if (stack !== undefined) parts.push(...placeInPlugin(stack));
  return parts;
}

/** Where in its own code: of others, the author of a plugin needs no stack. */
function placeInPlugin(stack: string): string[] {
  for (const line of stack.split('\n').filter((one) => one.startsWith('    at '))) {
    const copy = COPY.exec(line);
    const place = copy ? line.slice(copy.index + copy[0].length).replace(/\)$/, '') : '';
    if (place !== '' && !place.includes('node_modules/')) return [`at=${formatValue(place)}`];
  }
  return [];
}

function formatValue(value: unknown): string {
  if (typeof value === 'string')
    return /^[^\s"=]+$/.test(value) && !hasUnprintable(value) ? value : quote(value);
  if (typeof value === 'object' && value !== null) return escapeUnprintable(JSON.stringify(value));
  return String(value);
}

function text(value: unknown): string {
  if (value === undefined) return '';
  return escapeUnprintable(typeof value === 'string' ? value : JSON.stringify(value));
}

function quote(content: string): string {
  return escapeUnprintable(JSON.stringify(content));
}

function hasUnprintable(content: string): boolean {
  return content.search(UNPRINTABLE) >= 0;
}
