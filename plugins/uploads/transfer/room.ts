/**
 * Whether the disk of an upper folder is full, and since when it has been: what was written meanwhile may be
 * cut off.
 */
import { statfs } from 'node:fs/promises';
import type { Clock } from 'mountkeeper';

/**
 * With less than this, in bytes, a program's next write may have failed; the records give back their reserve
 * then.
 */
const FULL_BYTES = 8 * 1_048_576;
/** A look and a write are at odds by as much, in milliseconds. */
const SLACK_MS = 1_000;
const LOOK_EVERY_MS = 500;

export class Room {
  readonly #upper: string;
  readonly #clock: Clock;
  /** When there was room the last time, in milliseconds since the epoch. */
  #roomyAt: number | undefined;

  constructor(upper: string, clock: Clock) {
    this.#upper = upper;
    this.#clock = clock;
  }

  /**
   * Looks every now and then by itself: the less time between two looks, the fewer files are held back for
   * nothing.
   */
  async watch(end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      // A disk that cannot be asked is told of by the next look at the upper folder.
      await this.look().catch(() => undefined);
      await this.#clock.sleep(LOOK_EVERY_MS, end).catch(() => undefined);
    }
  }

  /** True for what was changed while there may have been no room, in nanoseconds since the epoch. */
  async look(): Promise<(changedNs: bigint) => boolean> {
    const { bavail, bsize } = await statfs(this.#upper);
    const now = this.#clock.now();
    if (bavail * bsize >= FULL_BYTES) {
      this.#roomyAt = now;
      return () => false;
    }
    // Nobody has looked before: then all that waits may be.
    const since =
      this.#roomyAt === undefined ? 0n : BigInt(Math.trunc(this.#roomyAt - SLACK_MS)) * 1_000_000n;
    return (changedNs) => changedNs >= since;
  }
}
