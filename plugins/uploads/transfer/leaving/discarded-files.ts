/** The folder of what users gave up: one folder for each time, by whose name it is known how old it is. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Clock } from 'mountkeeper';

export const KEPT_DAYS = 7;
const KEPT_MS = KEPT_DAYS * 86_400_000;
const SWEEP_EVERY_MS = 3_600_000;
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

/** Sweeps at the start, and once an hour. */
export class DiscardedFiles {
  readonly #folder: string;
  readonly #clock: Clock;
  #nextAt = -Infinity;

  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  get isDue(): boolean {
    return this.#clock.monotonic() >= this.#nextAt;
  }

  async sweep(): Promise<void> {
    this.#nextAt = this.#clock.monotonic() + SWEEP_EVERY_MS;
    await sweepDiscarded(this.#folder, this.#clock.now());
  }
}
