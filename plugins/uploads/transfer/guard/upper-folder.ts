/**
 * Which folder is the upper folder. Its path may come to lead to another one while the share is mounted: another daemon
 * has set the cache aside, or the cache's disk was unmounted and an older copy lies below. What is missing in that one,
 * nobody has deleted, and what lies in it belongs to another share.
 */
import { lstat } from 'node:fs/promises';
import type { BigIntStats } from 'node:fs';
import { Changed } from '../step-tools.ts';

const SAME = ['dev', 'ino', 'birthtimeNs'] as const;

export class UpperFolder {
  readonly #path: string;
  #first: BigIntStats | undefined;
  #isOther = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Whether the last look has found another folder, or none. */
  get isOther(): boolean {
    return this.#isOther;
  }

  /**
   * Resolves with what the first look has found. Rejects with a plain sentence, as `Changed`, where the path leads to
   * another folder by now, or to none.
   */
  async look(): Promise<BigIntStats> {
    const now = await lstat(this.#path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
      if (this.#first === undefined || error.code !== 'ENOENT') throw error;
      return undefined;
    });
    this.#first ??= now!;
    const first = this.#first;
    this.#isOther = now === undefined || SAME.some((key) => now[key] !== first[key]);
    if (this.#isOther)
      throw new Changed(
        `${this.#path} is not the folder any more that this share writes to: another daemon works on its cache, or ` +
          "the cache's disk was unmounted. Nothing goes up until that folder is there again.",
      );
    return first;
  }
}
