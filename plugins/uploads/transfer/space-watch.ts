/**
 * Watches whether the disk of an upper folder is full, and since when: files written meanwhile may be
 * truncated. Shares whose upper folders lie on one disk look at it in turn.
 */
import { stat, statfs } from 'node:fs/promises';
import type { StatsFs } from 'node:fs';
import { rest } from 'mountkeeper';
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

/** What is known of one disk. */
class Disk {
  /** When there was free space last, in milliseconds since the epoch. */
  roomyAt: number | undefined;
  readonly #watches = new Set<SpaceWatch>();
  #end: AbortController | undefined;

  join(watch: SpaceWatch, clock: Clock): void {
    this.#watches.add(watch);
    if (this.#end) return;
    this.#end = new AbortController();
    void this.#run(clock, this.#end.signal);
  }

  leave(watch: SpaceWatch): void {
    this.#watches.delete(watch);
    if (this.#watches.size > 0) return;
    this.#end?.abort();
    this.#end = undefined;
  }

  /** The shorter the interval, the fewer files are held back needlessly. */
  async #run(clock: Clock, end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      const [watch] = this.#watches;
      // The next scan reports a disk that cannot be checked.
      await watch?.look().catch(() => undefined);
      await rest(clock, LOOK_EVERY_MS, end);
    }
  }
}

/** By the number that the kernel gives to the disk. */
const disks = new WeakMap<Clock, Map<number, Disk>>();

async function diskOf(folder: string, clock: Clock): Promise<Disk> {
  const { dev } = await stat(folder);
  const known = disks.get(clock) ?? new Map<number, Disk>();
  disks.set(clock, known);
  const disk = known.get(dev) ?? new Disk();
  known.set(dev, disk);
  return disk;
}

type Measure = (folder: string) => Promise<Pick<StatsFs, 'bavail' | 'bsize'>>;

export class SpaceWatch {
  readonly #upper: string;
  readonly #clock: Clock;
  readonly #measure: Measure;
  #disk: Promise<Disk> | undefined;

  constructor(upper: string, clock: Clock, measure: Measure = statfs) {
    this.#upper = upper;
    this.#clock = clock;
    this.#measure = measure;
  }

  /** Has the disk checked regularly, until the signal aborts. */
  async watch(end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      // The next scan reports a folder that cannot be asked.
      const disk = await this.#known().catch(() => undefined);
      if (disk === undefined) await rest(this.#clock, LOOK_EVERY_MS, end);
      else return this.#watch(disk, end);
    }
  }

  async #watch(disk: Disk, end: AbortSignal): Promise<void> {
    if (end.aborted) return;
    disk.join(this, this.#clock);
    await new Promise<void>((resolve) => end.addEventListener('abort', () => resolve(), { once: true }));
    disk.leave(this);
  }

  /**
   * Returns a predicate: true for a change (nanoseconds since the epoch) made while the disk may have been
   * full. `NEVER_FULL` where there is none.
   */
  async look(): Promise<(changedNs: bigint) => boolean> {
    const disk = await this.#known();
    const { bavail, bsize } = await this.#measure(this.#upper);
    const now = this.#clock.now();
    if (bavail * bsize >= FULL_BYTES) {
      disk.roomyAt = now;
      return NEVER_FULL;
    }
    // Without an earlier check, every waiting file may be truncated.
    const since = disk.roomyAt === undefined ? 0n : BigInt(Math.trunc(disk.roomyAt - SLACK_MS)) * 1_000_000n;
    return (changedNs) => changedNs >= since;
  }

  #known(): Promise<Disk> {
    this.#disk ??= diskOf(this.#upper, this.#clock).catch((error: unknown) => {
      this.#disk = undefined;
      throw error;
    });
    return this.#disk;
  }
}
