import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { writeWhole } from 'mountkeeper';
import type { ServedExport } from './server-config.ts';

const HIGHEST = 65_535;

interface Pages {
  readonly next: number;
  readonly exports: readonly ServedExport[];
}

/**
 * Gives every process behind a mount a number of its own. Numbers are given out in turn, over restarts too,
 * so that one comes again after 65,535 mounts at the earliest; a lost book begins anywhere.
 */
export class ExportBook {
  readonly #file: string;
  #next = randomInt(1, HIGHEST);
  #former: readonly ServedExport[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  /** What was exported when the book was last closed. */
  get former(): readonly ServedExport[] {
    return this.#former;
  }

  async open(): Promise<void> {
    try {
      const { next, exports } = JSON.parse(await readFile(this.#file, 'utf8')) as Pages;
      if (Number.isInteger(next) && next >= 1 && next <= HIGHEST) this.#next = next;
      if (Array.isArray(exports)) this.#former = exports;
    } catch {
      // There is none yet, or it cannot be read.
    }
  }

  /** On the disk before it is used. */
  async draw(exports: readonly ServedExport[]): Promise<number> {
    const taken = new Set([...exports, ...this.#former].map((one) => one.id));
    let id = this.#next;
    while (taken.has(id)) id = after(id);
    this.#next = after(id);
    await this.keep(exports);
    return id;
  }

  async keep(exports: readonly ServedExport[]): Promise<void> {
    this.#former = exports;
    await writeWhole(this.#file, `${JSON.stringify({ next: this.#next, exports } satisfies Pages)}\n`);
  }
}

function after(id: number): number {
  return id >= HIGHEST ? 1 : id + 1;
}
