/** Where a key stands in TOML text: path → line and column. Reads only text that has already been parsed without an error. */
import type { Segment } from './path.ts';

export interface Position { readonly line: number; readonly column: number }

/** Offsets by path; a path is found by its segments or by its nearest ancestor that stands in the text. */
export class Positions {
  readonly #offsets = new Map<string, number>();
  readonly #lineStarts: readonly number[];

  constructor(text: string) {
    this.#lineStarts = [0, ...[...text.matchAll(/\n/g)].map((match) => match.index + 1)];
    new Scanner(text, (segments, offset) => {
      const key = JSON.stringify(segments);
      if (!this.#offsets.has(key)) this.#offsets.set(key, offset);
    }).scan();
  }

  /** Undefined when not even the first segment stands in the text. */
  find(segments: readonly Segment[]): Position | undefined {
    for (let length = segments.length; length > 0; length -= 1) {
      const offset = this.#offsets.get(JSON.stringify(segments.slice(0, length)));
      if (offset !== undefined) return this.#positionAt(offset);
    }
    return undefined;
  }

  #positionAt(offset: number): Position {
    const line = this.#lineStarts.findLastIndex((start) => start <= offset);
    return { line: line + 1, column: offset - (this.#lineStarts[line] ?? 0) + 1 };
  }
}

type Record = (segments: readonly Segment[], offset: number) => void;

const STRING_QUOTES = ['"""', "'''", '"', "'"] as const;

class Scanner {
  readonly #text: string;
  readonly #record: Record;
  /** Index of the last table of each array of tables, by its path. */
  readonly #lastTable = new Map<string, number>();
  #at = 0;
  #table: Segment[] = [];

  constructor(text: string, record: Record) {
    this.#text = text;
    this.#record = record;
  }

  scan(): void {
    this.#skip(/[\s\uFEFF]|#[^\n]*/y);
    while (this.#at < this.#text.length) {
      const start = this.#at;
      if (this.#text[this.#at] === '[') this.#header();
      else this.#pair(this.#table);
      // Text that was not understood must not hold the scan up.
      if (this.#at === start) this.#at += 1;
      this.#skip(/\s|#[^\n]*/y);
    }
  }

  #header(): void {
    const isArray = this.#text.startsWith('[[', this.#at);
    const start = this.#at;
    this.#at += isArray ? 2 : 1;
    const keys = this.#keys();
    const path: Segment[] = [];
    keys.forEach((key, position) => {
      path.push(key);
      this.#record([...path], start);
      const array = JSON.stringify(path);
      if (isArray && position === keys.length - 1) this.#lastTable.set(array, (this.#lastTable.get(array) ?? -1) + 1);
      const index = this.#lastTable.get(array);
      if (index !== undefined) {
        path.push(index);
        this.#record([...path], start);
      }
    });
    this.#table = path;
    this.#skip(/[\]\t ]/y);
  }

  #pair(table: readonly Segment[]): void {
    const start = this.#at;
    const path = [...table];
    for (const key of this.#keys()) {
      path.push(key);
      this.#record([...path], start);
    }
    this.#skip(/[=\t ]/y);
    this.#value(path);
  }

  /** A dotted key; each part bare or in quotes. */
  #keys(): string[] {
    const keys: string[] = [];
    const pattern = /[\t ]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[\t ]*(\.?)/y;
    for (;;) {
      pattern.lastIndex = this.#at;
      const match = pattern.exec(this.#text);
      if (match === null) return keys;
      this.#at = pattern.lastIndex;
      keys.push(match[1] === undefined ? (match[2] ?? match[3] ?? '') : unescape(match[1]));
      if (match[4] === '') return keys;
    }
  }

  #value(path: readonly Segment[]): void {
    const character = this.#text[this.#at];
    if (character === '[') this.#items(path);
    else if (character === '{') this.#inlineTable(path);
    else if (character === '"' || character === "'") this.#string();
    else this.#skip(/[^\s,\]}#]| (?=\d\d:)/y);
  }

  #items(path: readonly Segment[]): void {
    this.#at += 1;
    for (let index = 0; this.#toNext(']'); index += 1) {
      const item = [...path, index];
      this.#record(item, this.#at);
      this.#advancing(() => this.#value(item));
    }
  }

  #inlineTable(path: readonly Segment[]): void {
    this.#at += 1;
    while (this.#toNext('}')) this.#advancing(() => this.#pair(path));
  }

  /** Moves to the next item; false, and behind the end mark, when there is none. */
  #toNext(end: string): boolean {
    this.#skip(/[\s,]|#[^\n]*/y);
    if (this.#at >= this.#text.length) return false;
    if (this.#text[this.#at] !== end) return true;
    this.#at += 1;
    return false;
  }

  #advancing(read: () => void): void {
    const start = this.#at;
    read();
    if (this.#at === start) this.#at += 1;
  }

  #string(): void {
    const quote = STRING_QUOTES.find((mark) => this.#text.startsWith(mark, this.#at)) ?? '"';
    let at = this.#at + quote.length;
    while (at < this.#text.length && !this.#text.startsWith(quote, at)) at += quote.startsWith('"') && this.#text[at] === '\\' ? 2 : 1;
    at += quote.length;
    // Up to two more quotes may belong to the content of a multi-line string.
    while (quote.length === 3 && this.#text[at] === quote[0]) at += 1;
    this.#at = at;
  }

  #skip(pattern: RegExp): void {
    for (;;) {
      pattern.lastIndex = this.#at;
      if (!pattern.test(this.#text)) return;
      this.#at = pattern.lastIndex;
    }
  }
}

function unescape(text: string): string {
  if (!text.includes('\\')) return text;
  const json = text.replaceAll(/\\U([0-9A-Fa-f]{8})/g, (_, hex: string) => JSON.stringify(String.fromCodePoint(Number.parseInt(hex, 16))).slice(1, -1));
  try {
    return JSON.parse(`"${json.replaceAll('\\e', '\\u001b').replaceAll(/\\x([0-9A-Fa-f]{2})/g, '\\u00$1')}"`) as string;
  } catch {
    return text;
  }
}
