/**
 * What has left the upper folder and is still there: what users gave up, one folder for each time, by whose name it is
 * known how old it is; and what the layer gives back for a minute if somebody writes to it.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Clock } from 'mountkeeper';

export const KEPT_DAYS = 7;
const KEPT_MS = KEPT_DAYS * 86_400_000;
const SWEEP_EVERY_MS = 3_600_000;
/** For so long the layer gives a file back that is written or held; a second more, so that it is over. */
const REST_MS = 61_000;
const NAME = /^(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d\.\d{3}Z)$/;

export function folderOf(discarded: string, now: number): string {
  return join(discarded, new Date(now).toISOString().replaceAll(':', '-'));
}

/** Removes what has lain there long enough. Other names are left alone. */
export async function sweepDiscarded(discarded: string, now: number): Promise<void> {
  for (const name of (await readdir(discarded).catch(undefinedWhenMissing)) ?? []) {
    const at = Date.parse(name.replace(NAME, '$1:$2:$3'));
    if (NAME.test(name) && now - at > KEPT_MS)
      await rm(join(discarded, name), { recursive: true, force: true });
  }
}

export interface LeftFilesOptions {
  readonly folder: string;
  readonly clock: Clock;
  /** Ends what the layer still watches: whoever opens or changes a file in the folder later keeps it there. */
  readonly endRest: () => Promise<unknown>;
  /** Something could not be brought back, which that tries again. */
  readonly isUnrestored: () => boolean;
}

/**
 * Sweeps at the start, and once an hour; has the layer end its watch a minute after something has left it, or had left
 * it before the start: then it takes one call to learn of it, and one to end it.
 */
export class LeftFiles {
  readonly #options: LeftFilesOptions;
  #nextAt = -Infinity;
  #restEndsAt: number;
  #isResumed = false;

  constructor(options: LeftFilesOptions) {
    this.#options = options;
    this.#restEndsAt = options.clock.monotonic() + REST_MS;
  }

  get isDue(): boolean {
    return this.#options.clock.monotonic() >= Math.min(this.#nextAt, this.#restEndsAt);
  }

  /** Called when something has left the upper folder. Who writes to it meanwhile must not wait for the next one. */
  added(): void {
    this.#restEndsAt = this.#options.clock.monotonic() + REST_MS;
  }

  async sweep(): Promise<void> {
    const { clock, endRest, folder, isUnrestored } = this.#options;
    const now = clock.monotonic();
    if (now >= this.#restEndsAt) {
      this.#restEndsAt = this.#isResumed ? Infinity : now + REST_MS;
      this.#isResumed = true;
      try {
        await endRest();
      } finally {
        if (isUnrestored()) this.added();
      }
    }
    if (now < this.#nextAt) return;
    this.#nextAt = now + SWEEP_EVERY_MS;
    await sweepDiscarded(folder, clock.now());
  }
}
