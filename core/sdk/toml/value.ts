/** Values as TOML text on one line. */
import { isTable } from './document.ts';

/** A value that parses back to an equal one. */
export function inlineValue(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number') return number(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `[${value.map((item: unknown) => inlineValue(item)).join(', ')}]`;
  if (!isTable(value)) return String(value);
  const pairs = Object.entries(value).map(([key, item]) => `${bareOrQuoted(key)} = ${inlineValue(item)}`);
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
}

/** A key: bare where TOML allows it. */
export function bareOrQuoted(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : quoted(key);
}

function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('\x7f', '\\u007f');
}

function number(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  // Integers beyond the safe range parse back exactly only as floats.
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value);
}
