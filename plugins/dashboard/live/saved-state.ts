/**
 * The dashboard's memory in a file of the state folder: written some seconds after a change, and at the end.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from 'mountkeeper';
import type { Clock, Logger } from 'mountkeeper';

const GATHER_MS = 5_000;
/** A larger file is not ours. */
const MOST_BYTES = 16 * 1024 * 1024;

export interface MemoryOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly stateDir: string;
  readonly name: string;
  readonly content: () => unknown;
}

export class Memory {
  readonly #options: MemoryOptions;
  readonly #file: string;
  #cancel: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: MemoryOptions) {
    this.#options = options;
    this.#file = join(options.stateDir, 'dashboard', options.name);
  }

  /** Undefined where there is nothing that can be read: then it begins anew. */
  static async read(stateDir: string, name: string): Promise<unknown> {
    try {
      const text = await readFile(join(stateDir, 'dashboard', name), 'utf8');
      return text.length > MOST_BYTES ? undefined : (JSON.parse(text) as unknown);
    } catch {
      return undefined;
    }
  }

  changed(): void {
    this.#cancel ??= this.#options.clock.after(GATHER_MS, () => this.#write());
  }

  /** Resolves when all is written. */
  async close(): Promise<void> {
    if (this.#cancel) {
      this.#cancel();
      this.#write();
    }
    await this.#writing;
  }

  #write(): void {
    this.#cancel = undefined;
    const { content, log } = this.#options;
    this.#writing = this.#writing
      .then(async () => {
        await mkdir(join(this.#file, '..'), { recursive: true, mode: 0o700 });
        await writeWhole(this.#file, JSON.stringify(content()));
      })
      .catch((err: unknown) => log.warn({ file: this.#file, err }, 'memory of the dashboard not written'));
  }
}
