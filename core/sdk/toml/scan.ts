/** Scans TOML text and reports where each table, key, value and comment is. */
import type { Segment } from './path.ts';

/** Callbacks. Offsets count characters of the text; ends are exclusive. */
export interface Heard {
  /**
   * A key, or a table, begins. An item of an array of tables is reported twice: without and with its index.
   */
  key?(segments: readonly Segment[], start: number): void;
  /** `[path]` or `[[path]]`; for an array of tables with the index of this item. */
  table?(segments: readonly Segment[], start: number, end: number): void;
  /**
   * A key with its value; `valueStart` is after the equals sign. Also called for keys inside inline tables.
   */
  value?(segments: readonly Segment[], span: ValueSpan): void;
  /** From the hash to the end of the line. */
  comment?(start: number, end: number): void;
}

export interface ValueSpan {
  readonly keyStart: number;
  /** Of an item of a list, `keyStart`. */
  readonly keyEnd: number;
  /** Where the last part of a dotted key begins, with the dot; undefined for a key of one part. */
  readonly tail: number | undefined;
  readonly start: number;
  readonly end: number;
  /** Inside of an inline table or an array. */
  readonly isInline: boolean;
}

/** Reports what is where. Reads only text that was already parsed without an error, but ends on any text. */
export function scanToml(text: string, heard: Heard): void {
  new Scanner(text, heard).scan();
}

const STRING_QUOTES = ['"""', "'''", '"', "'"] as const;

class Scanner {
  readonly #text: string;
  readonly #heard: Heard;
  /** Index of the last table of each array of tables, by its path. */
  readonly #lastTable = new Map<string, number>();
  #at = 0;
  /** Of the key that was read last. */
  #tail: number | undefined;
  #table: Segment[] = [];

  constructor(text: string, heard: Heard) {
    this.#text = text;
    this.#heard = heard;
  }

  scan(): void {
    this.#skip(/\uFEFF/y);
    this.#blank(/\s/y);
    while (this.#at < this.#text.length) {
      const start = this.#at;
      if (this.#text[this.#at] === '[') this.#header();
      else this.#pair(this.#table, false);
      // Always move on, so that text it does not understand cannot stop the scan.
      if (this.#at === start) this.#at += 1;
      this.#blank(/\s/y);
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
      this.#heard.key?.([...path], start);
      const array = JSON.stringify(path);
      if (isArray && position === keys.length - 1)
        this.#lastTable.set(array, (this.#lastTable.get(array) ?? -1) + 1);
      const index = this.#lastTable.get(array);
      if (index !== undefined) {
        path.push(index);
        this.#heard.key?.([...path], start);
      }
    });
    this.#table = path;
    this.#skip(/[\]\t ]/y);
    this.#heard.table?.(path, start, this.#at);
  }

  #pair(table: readonly Segment[], isInline: boolean): void {
    const start = this.#at;
    const path = [...table];
    for (const key of this.#keys()) {
      path.push(key);
      this.#heard.key?.([...path], start);
    }
    const [keyEnd, tail] = [this.#beforeBlanks(this.#at), this.#tail];
    this.#skip(/[=\t ]/y);
    const valueStart = this.#at;
    this.#value(path);
    this.#heard.value?.(path, { keyStart: start, keyEnd, tail, start: valueStart, end: this.#at, isInline });
  }

  /** A dotted key; each part bare or in quotes. */
  #keys(): string[] {
    const keys: string[] = [];
    this.#tail = undefined;
    const pattern = /[\t ]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[\t ]*(\.?)/y;
    for (;;) {
      pattern.lastIndex = this.#at;
      const match = pattern.exec(this.#text);
      if (match === null) return keys;
      this.#at = pattern.lastIndex;
      keys.push(match[1] === undefined ? (match[2] ?? match[3] ?? '') : unescape(match[1]));
      if (match[4] === '') return keys;
      this.#tail = this.#beforeBlanks(this.#at - 1);
    }
  }

  #beforeBlanks(at: number): number {
    let end = at;
    while (this.#text[end - 1] === ' ' || this.#text[end - 1] === '\t') end -= 1;
    return end;
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
      this.#heard.key?.(item, this.#at);
      this.#advancing(() => {
        const start = this.#at;
        this.#value(item);
        const key = { keyStart: start, keyEnd: start, tail: undefined };
        this.#heard.value?.(item, { ...key, start, end: this.#at, isInline: true });
      });
    }
  }

  #inlineTable(path: readonly Segment[]): void {
    this.#at += 1;
    while (this.#toNext('}')) this.#advancing(() => this.#pair(path, true));
  }

  /** Moves to the next item; false, and behind the end mark, when there is none. */
  #toNext(end: string): boolean {
    this.#blank(/[\s,]/y);
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
    while (at < this.#text.length && !this.#text.startsWith(quote, at))
      at += quote.startsWith('"') && this.#text[at] === '\\' ? 2 : 1;
    at += quote.length;
    // Up to two more quotes may belong to the content of a multi-line string.
    while (quote.length === 3 && this.#text[at] === quote[0]) at += 1;
    this.#at = at;
  }

  /** What stands between keys, and comments. */
  #blank(pattern: RegExp): void {
    for (;;) {
      this.#skip(pattern);
      if (this.#text[this.#at] !== '#') return;
      const start = this.#at;
      this.#skip(/[^\n]+/y);
      this.#heard.comment?.(start, this.#at);
    }
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
  const json = text.replaceAll(/\\U([0-9A-Fa-f]{8})/g, (_, hex: string) =>
    JSON.stringify(String.fromCodePoint(Number.parseInt(hex, 16))).slice(1, -1),
  );
  try {
    return JSON.parse(
      `"${json.replaceAll('\\e', '\\u001b').replaceAll(/\\x([0-9A-Fa-f]{2})/g, '\\u00$1')}"`,
    ) as string;
  } catch {
    // No escape of TOML: the parser says so, here only places are found.
    return text;
  }
}
