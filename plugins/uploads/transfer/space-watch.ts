/**
 * Watches when the disk of an upper folder was full: files written meanwhile may be truncated.
 */
import { statfs } from 'node:fs/promises';
import { pause } from 'mountkeeper';
import type { Clock } from 'mountkeeper';
import { nanoseconds } from './change-times.ts';

/**
 * With less free space than this, in bytes, a program's next write may have failed; the records release
 * their reserve then.
 */
const FULL_BYTES = 8 * 1_048_576;
/** Tolerance between the time of a check and of a write, in milliseconds. */
const SLACK_MS = 1_000;
const LOOK_EVERY_MS = 500;
/** While it is full: what is written again before a look has found that there is room is held back as well. */
const FULL_LOOK_EVERY_MS = 100;
/** Of more times at which it was full, the first two count as one. */
const MOST_SPANS = 100;

/** It was never full. */
export const NEVER_FULL = (): boolean => false;

type WasFull = (changedNs: bigint) => boolean;

/** When it may have been full, in nanoseconds since the epoch. */
interface Span {
  readonly since: bigint;
  /** Undefined: it is still. */
  readonly until?: bigint;
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

export class SpaceWatch {
  readonly #upper: string;
  readonly #clock: Clock;
  readonly #free: (folder: string) => Promise<number>;
  /** When there was free space last, in milliseconds since the epoch. */
  #roomyAt: number | undefined;
  /** The last look, by both clocks. */
  #looked: { readonly at: number; readonly monotonicMs: number } | undefined;
  /**
   * They stay: whoever plans looks more rarely than this, and may not know of a file for hours. What goes up, or is
   * written again, is not asked about.
   */
  #spans: readonly Span[] = [];
  #wasFull: WasFull = NEVER_FULL;

  constructor(upper: string, clock: Clock, free = freeBytes) {
    this.#upper = upper;
    this.#clock = clock;
    this.#free = free;
  }

  /** Checks regularly: the shorter the interval, the fewer files are held back needlessly. */
  async watch(end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      // The next scan reports a disk that cannot be checked.
      await this.look().catch(() => undefined);
      await pause(this.#clock, this.#isFull ? FULL_LOOK_EVERY_MS : LOOK_EVERY_MS, end);
    }
  }

  /**
   * Returns a predicate: true for a change (nanoseconds since the epoch) made while the disk may have been full. The
   * same one for as long as it answers alike; `NEVER_FULL` where it never was.
   */
  async look(): Promise<WasFull> {
    const isFull = (await this.#free(this.#upper)) < FULL_BYTES;
    const now = this.#clock.now();
    this.#heedClock(now);
    const last = this.#spans.at(-1);
    if (isFull && !this.#isFull) this.#note([...this.#spans, { since: this.#fullSince() }]);
    if (!isFull && this.#isFull && last !== undefined)
      this.#note([...this.#spans.slice(0, -1), { ...last, until: nanoseconds(now + 1) }]);
    if (!isFull) this.#roomyAt = now;
    return this.#wasFull;
  }

  /**
   * After the clock was set back: what changes now may bear any time since then, so a disk that is full makes all of
   * that doubtful. What was found before lies ahead: the files of then are on record, and others will bear these times.
   */
  #heedClock(now: number): void {
    const [last, monotonicMs] = [this.#looked, this.#clock.monotonic()];
    this.#looked = { at: now, monotonicMs };
    if (last === undefined) return;
    // The last look, by the time as it is now.
    const lastAt = now - (monotonicMs - last.monotonicMs);
    if (lastAt >= last.at - SLACK_MS) return;
    if (this.#roomyAt !== undefined) this.#roomyAt = Math.min(this.#roomyAt, lastAt);
    const back = nanoseconds(lastAt - SLACK_MS);
    this.#note(
      this.#spans
        .map(({ since, until }) =>
          until === undefined
            ? { since: since < back ? since : back }
            : { since, until: until < back ? until : back },
        )
        .filter(({ since, until }) => until === undefined || since < until),
    );
  }

  /** At the last look. */
  get #isFull(): boolean {
    const last = this.#spans.at(-1);
    return last !== undefined && last.until === undefined;
  }

  /** Without an earlier check, every waiting file may be truncated. */
  #fullSince(): bigint {
    return this.#roomyAt === undefined ? 0n : nanoseconds(this.#roomyAt - SLACK_MS);
  }

  #note(spans: readonly Span[]): void {
    const [first, second, ...rest] = spans;
    const isLong = spans.length > MOST_SPANS && first !== undefined && second !== undefined;
    const kept = isLong ? [{ ...second, since: first.since }, ...rest] : spans;
    this.#spans = kept;
    this.#wasFull = (changedNs) =>
      kept.some(({ since, until }) => changedNs >= since && (until === undefined || changedNs <= until));
  }
}
