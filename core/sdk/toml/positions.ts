/**
 * Finds where a key is in TOML text: path → line and column. Reads only text that was already parsed
 * without an error.
 */
import type { Segment } from './path.ts';
import { scanToml } from './scan.ts';

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Offsets by path; looking up a path falls back to its nearest ancestor that is in the text. */
export class Positions {
  readonly #offsets = new Map<string, number>();
  readonly #lineStarts: readonly number[];

  constructor(text: string) {
    this.#lineStarts = [0, ...[...text.matchAll(/\n/g)].map((match) => match.index + 1)];
    scanToml(text, {
      key: (segments, offset) => {
        const key = JSON.stringify(segments);
        if (!this.#offsets.has(key)) this.#offsets.set(key, offset);
      },
    });
  }

  /** Undefined when not even the first segment is in the text. */
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
