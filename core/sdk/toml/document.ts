/** Documents as plain data: parses TOML into plain objects; copies, freezes and walks them. */
import { parse, TomlDate, TomlError } from 'smol-toml';
import type { ConfigProblem } from '../../contract/config.ts';

export type Document = Record<string, unknown>;
export type ParseResult = { readonly document: Document } | { readonly problem: ConfigProblem };

const MAX_CHARACTERS = 1_048_576;
const MAX_DEPTH = 32;
/** Far more than the largest sensible document; keeps a hostile one from blocking the daemon. */
const MAX_VALUES = 25_000;
/** Quoted texts and comments contain such characters, too. */
const MAX_MARKS = 2 * MAX_VALUES;

let last: { readonly text: string; readonly result: ParseResult } | undefined;

/**
 * Parses TOML 1.0 into plain objects, with `Date`s for dates. Never throws. Repeating the last call returns
 * the same object, which must not be changed.
 */
export function parseDocument(text: string): ParseResult {
  if (last?.text !== text) last = { text, result: parseAnew(text) };
  return last.result;
}

function parseAnew(text: string): ParseResult {
  if (text.length > MAX_CHARACTERS)
    return { problem: { message: `the document is larger than ${MAX_CHARACTERS} characters` } };
  if (/\p{Surrogate}/u.test(text))
    return {
      problem: { message: 'the document holds half a surrogate pair, which cannot be written as UTF-8' },
    };
  const tooMany = countProblem(text);
  if (tooMany !== undefined) return { problem: { message: tooMany } };
  try {
    // Some editors on Windows put a byte order mark first.
    const table = parse(text.replace(/^\uFEFF/, ''), { unsafeKeyBehaviour: 'throw', maxDepth: MAX_DEPTH });
    const problem = shapeProblem(table);
    if (problem !== undefined) return { problem: { message: problem } };
    return { document: copy(table) as Document };
  } catch (error) {
    return { problem: parseProblem(error) };
  }
}

/** Counting separators first is far cheaper than parsing a huge number of keys. */
function countProblem(text: string): string | undefined {
  for (const mark of ['=', '.', '[', ',', '\n']) {
    let count = 0;
    for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) count += 1;
    if (count > MAX_MARKS) return `the document holds more than ${MAX_VALUES} keys and values`;
  }
  return undefined;
}

function parseProblem(error: unknown): ConfigProblem {
  if (!(error instanceof TomlError))
    return { message: `the document cannot be read: ${(error as Error).message}` };
  // The rest of the message quotes the document, which may hold secrets.
  const reason = (error.message.split('\n', 1)[0] ?? '').replace(/^Invalid TOML document: /, '');
  const unsafe = reason.includes('unsafe property')
    ? 'the names "__proto__" and "constructor" cannot be keys'
    : reason;
  return { message: unsafe, line: error.line, column: error.column };
}

/** Walked level by level, not by recursion: a dotted key may nest deeper than the stack. */
function shapeProblem(root: unknown): string | undefined {
  let level: unknown[] = [root];
  let count = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) return `tables are nested more than ${MAX_DEPTH} deep`;
    level = level.flatMap((value) => (isContainer(value) ? Object.values(value) : []));
    count += level.length;
    if (count > MAX_VALUES) return `the document holds more than ${MAX_VALUES} keys and values`;
  }
  return undefined;
}

/** True for tables, not for arrays and dates. */
export function isTable(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function isContainer(value: unknown): value is object {
  return isTable(value) || Array.isArray(value);
}

/** A deep copy of plain data; dates are shared. */
export function copy<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item) => copy(item as unknown)) as T;
  if (!isTable(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copy(item)])) as T;
}

/** Freezes plain data all the way down. Returns its argument. */
export function deepFreeze<T>(value: T): T {
  if (isContainer(value) && !Object.isFrozen(value)) {
    for (const item of Object.values(value)) deepFreeze(item);
    Object.freeze(value);
  }
  return value;
}

export { TomlDate };
