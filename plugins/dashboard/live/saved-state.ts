/**
 * The dashboard's saved state, in a file of the state folder: written some seconds after a change, and at
 * the end.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLatestQueue, writeWhole } from 'mountkeeper';
import type { Clock, Logger } from 'mountkeeper';

const GATHER_MS = 5_000;
/** A larger file was not written by the dashboard. */
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
  readonly #writing = createLatestQueue<undefined>(() => this.#write());

  constructor(options: MemoryOptions) {
    this.#options = options;
    this.#file = join(options.stateDir, 'dashboard', options.name);
  }

  /** Undefined when there is nothing to read: then the state starts empty. */
  static async read(stateDir: string, name: string): Promise<unknown> {
    try {
      const text = await readFile(join(stateDir, 'dashboard', name), 'utf8');
      return text.length > MOST_BYTES ? undefined : (JSON.parse(text) as unknown);
    } catch {
      // What charts and lists had before is all that is lost.
      return undefined;
    }
  }

  changed(): void {
    this.#cancel ??= this.#options.clock.after(GATHER_MS, () => this.#begin());
  }

  /** Resolves when everything is written. */
  async close(): Promise<void> {
    if (this.#cancel) {
      this.#cancel();
      this.#begin();
    }
    await this.#writing.idle();
  }

  #begin(): void {
    this.#cancel = undefined;
    void this.#writing.push(undefined);
  }

  async #write(): Promise<void> {
    const { content, log } = this.#options;
    try {
      await writeWhole(this.#file, JSON.stringify(content()));
    } catch (err) {
      log.warn({ file: this.#file, err }, 'memory of the dashboard not written');
    }
  }
}
