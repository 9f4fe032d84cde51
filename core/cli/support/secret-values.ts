/**
 * Finds where the value behind a key ends, in text of whatever form: `key = value`, JSON, and JSON that stands in texts
 * of JSON. Each character is read a few times at the most, since such text may be what somebody else has sent.
 */

/** Longer lists and tables are masked up to here, or to the end of the line. */
const LONGEST_LIST = 2_000;
const BARE = /[^\s,;}&"'\\]*/y;
const OPENING = /(\\{0,15})(["'])/y;

interface Span {
  readonly begin: number;
  readonly end: number;
}

/**
 * `keys`: a global pattern of a key with what stands between it and its value. The quotes of a value stay: JSON remains
 * JSON.
 */
export function maskValues(text: string, keys: RegExp, mask: string): string {
  let [masked, from] = ['', 0];
  for (const { 0: key, index } of text.matchAll(keys)) {
    // Within the value before.
    if (index < from) continue;
    const { begin, end } = valueAt(text, index + key.length);
    if (end <= begin) continue;
    masked += text.slice(from, begin) + mask;
    from = end;
  }
  return masked + text.slice(from);
}

/** Without its quotes; nothing between them where there is no value, or an empty one. */
function valueAt(text: string, at: number): Span {
  if (text[at] === '[' || text[at] === '{') return { begin: at, end: listEnd(text, at) };
  OPENING.lastIndex = at;
  const opening = OPENING.exec(text);
  if (opening) return withinQuotes(text, opening);
  BARE.lastIndex = at;
  return { begin: at, end: at + (BARE.exec(text)?.[0].length ?? 0) };
}

function withinQuotes(
  text: string,
  { 0: opening, 1: level = '', 2: quote = '', index }: RegExpExecArray,
): Span {
  const begin = index + opening.length;
  const end = textEnd(text, begin, { level: level.length, quote });
  // One that is broken off has no quote there.
  return { begin, end: text.slice(begin, end).endsWith(opening) ? end - opening.length : end };
}

/**
 * Behind the closing quote, which has as many backslashes as the opening one (`level`), and those that stand for
 * backslashes at the end of the text. One with fewer ends what is around it. The end of the line where there is none.
 */
function textEnd(
  text: string,
  begin: number,
  { level, quote }: { readonly level: number; readonly quote: string },
): number {
  for (let at = text.indexOf(quote, begin); at !== -1; at = text.indexOf(quote, at + 1)) {
    const slashes = slashesBefore(text, at, begin);
    if (slashes < level) return at - slashes;
    if (slashes % (2 * (level + 1)) === level || (quote === "'" && level === 0)) return at + 1;
  }
  return lineEnd(text, begin);
}

function slashesBefore(text: string, at: number, least: number): number {
  let from = at;
  while (from > least && text[from - 1] === '\\') from -= 1;
  return at - from;
}

/** Behind the bracket that closes it; those within texts do not count. */
function listEnd(text: string, begin: number): number {
  const last = Math.min(text.length, begin + LONGEST_LIST);
  let depth = 0;
  for (let at = begin; at < last; at += 1) {
    const one = text[at];
    if (one === '"') at = textEnd(text, at + 1, { level: slashesBefore(text, at, begin), quote: one }) - 1;
    else if (one === '[' || one === '{') depth += 1;
    else if (one === ']' || one === '}') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return Math.max(last, lineEnd(text, begin));
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}
