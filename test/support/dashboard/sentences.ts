/** The sentences that the sources write down, with `{}` for each value. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const QUOTES = '`\'"';
const REMARKS = /^\s*(?:\/?\*|\/\/).*$/gm;
/** A call of the log that has not ended. */
const LOGGED = /\blog\??\.\w+\([^;]*$/;
const LONGEST_LOGGED = 300;

interface Joined {
  readonly text: string;
  readonly end: number;
}

export interface Source {
  readonly path: string;
  readonly text: string;
}

/** Those below the folder. */
export function* sources(folder: string): Generator<Source> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (path.endsWith('.ts')) yield { path, text: readFileSync(path, 'utf8') };
  }
}

/** Where the literal that begins there ends, and its text with `{}` for each value. */
function literalAt(source: string, start: number): Joined {
  const quote = source[start];
  let text = '';
  let at = start + 1;
  while (at < source.length && source[at] !== quote) {
    if (source[at] === '\\') {
      text += source[at + 1] ?? '';
      at += 2;
    } else if (quote === '`' && source.startsWith('${', at)) {
      text += '{}';
      at = valueEnd(source, at + 2);
    } else {
      text += source[at] ?? '';
      at += 1;
    }
  }
  return { text, end: at + 1 };
}

function valueEnd(source: string, start: number): number {
  let depth = 1;
  let at = start;
  while (at < source.length && depth > 0) {
    const sign = source[at] ?? '';
    if (QUOTES.includes(sign)) {
      at = literalAt(source, at).end;
      continue;
    }
    if (sign === '{') depth += 1;
    if (sign === '}') depth -= 1;
    at += 1;
  }
  return at;
}

/** One or more literals with `+` between them; undefined where something else stands. */
function joinedAt(source: string, start: number): Joined | undefined {
  let text = '';
  let at = start;
  while (QUOTES.includes(source[at] ?? ' ')) {
    const literal = literalAt(source, at);
    text += literal.text;
    const more = /^\s*\+\s*/.exec(source.slice(literal.end, literal.end + 100));
    if (!more) return { text, end: literal.end };
    at = literal.end + more[0].length;
  }
  return undefined;
}

/** The same without its end. */
export function sentenceAt(source: string, start: number): string | undefined {
  return joinedAt(source, start)?.text;
}

export function wordsIn(sentence: string): number {
  return sentence.match(/[A-Za-z]{2,}/g)?.length ?? 0;
}

export interface Written {
  readonly sentence: string;
  /** What stands before it on its line. */
  readonly before: string;
  /** Whether the log is told it, and nobody else. */
  readonly isLogged: boolean;
}

/** Every text that a source writes down, but those inside the values of others. */
export function sentencesIn(text: string): readonly Written[] {
  const source = text.replaceAll(REMARKS, '');
  const found: Written[] = [];
  for (let at = 0; at < source.length;) {
    if (!QUOTES.includes(source[at] ?? ' ')) {
      at += 1;
      continue;
    }
    const joined = joinedAt(source, at);
    const before = source.slice(source.lastIndexOf('\n', at) + 1, at);
    const isLogged = LOGGED.test(source.slice(Math.max(0, at - LONGEST_LOGGED), at));
    if (joined) found.push({ sentence: joined.text, before, isLogged });
    at = joined?.end ?? literalAt(source, at).end;
  }
  return found;
}

/** The same but for what is imported and what is logged. */
export function toldIn(text: string): readonly string[] {
  return sentencesIn(text)
    .filter(({ before }) => !/^import|\bfrom $|log\./.test(before))
    .map(({ sentence }) => sentence);
}

/** Values that a translation shows and its English sentence does not give. */
export function strayValues(
  catalogues: Readonly<Record<string, Readonly<Record<string, string>>>>,
): readonly string[] {
  return Object.values(catalogues).flatMap((catalogue) =>
    Object.entries(catalogue).flatMap(([english, translated]) =>
      (translated.match(/\{\w+\}/g) ?? [])
        .filter((value) => !english.includes(value))
        .map((value) => `${value} of: ${english}`),
    ),
  );
}
