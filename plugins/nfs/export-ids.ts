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
 * Gives every process behind a mount its own export id. Ids are used in turn, also across restarts, so that
 * one is reused after 65,535 mounts at the earliest. When the file is lost, they start at a random one.
 */
export class ExportBook {
  readonly #file: string;
  #next = randomInt(1, HIGHEST);
  #former: readonly ServedExport[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  /** What was exported when the file was last saved. */
  get former(): readonly ServedExport[] {
    return this.#former;
  }

  async open(): Promise<void> {
    try {
      const { next, exports } = JSON.parse(await readFile(this.#file, 'utf8')) as Pages;
      if (Number.isInteger(next) && next >= 1 && next <= HIGHEST) this.#next = next;
      if (Array.isArray(exports)) this.#former = exports;
    } catch {
      // No file yet, or an unreadable one.
    }
  }

  /** The id is on disk before it is used. */
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
