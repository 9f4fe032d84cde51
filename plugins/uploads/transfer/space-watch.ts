/**
 * Watches whether the disk of an upper folder is full, and since when: files written meanwhile may be
 * truncated.
 */
import { statfs } from 'node:fs/promises';
import { pause } from 'mountkeeper';
import type { Clock } from 'mountkeeper';

/**
 * With less free space than this, in bytes, a program's next write may have failed; the records release
 * their reserve then.
 */
const FULL_BYTES = 8 * 1_048_576;
/** Tolerance between the time of a check and of a write, in milliseconds. */
const SLACK_MS = 1_000;
const LOOK_EVERY_MS = 500;

/** There is room. */
export const NEVER_FULL = (): boolean => false;

export class SpaceWatch {
  readonly #upper: string;
  readonly #clock: Clock;
  /** When there was free space last, in milliseconds since the epoch. */
  #roomyAt: number | undefined;

  constructor(upper: string, clock: Clock) {
    this.#upper = upper;
    this.#clock = clock;
  }

  /** Checks regularly: the shorter the interval, the fewer files are held back needlessly. */
  async watch(end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      // The next scan reports a disk that cannot be checked.
      await this.look().catch(() => undefined);
      await pause(this.#clock, LOOK_EVERY_MS, end);
    }
  }

  /**
   * Returns a predicate: true for a change (nanoseconds since the epoch) made while the disk may have been
   * full. `NEVER_FULL` where there is none.
   */
  async look(): Promise<(changedNs: bigint) => boolean> {
    const { bavail, bsize } = await statfs(this.#upper);
    const now = this.#clock.now();
    if (bavail * bsize >= FULL_BYTES) {
      this.#roomyAt = now;
      return NEVER_FULL;
    }
    // Without an earlier check, every waiting file may be truncated.
    const since =
      this.#roomyAt === undefined ? 0n : BigInt(Math.trunc(this.#roomyAt - SLACK_MS)) * 1_000_000n;
    return (changedNs) => changedNs >= since;
  }
}
