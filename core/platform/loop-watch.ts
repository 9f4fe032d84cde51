/**
 * Looks again and again how long the event loop worked without a pause, while somebody is interested: each look wakes
 * the processor, twenty a second cost up to 0.7 % of it.
 */
import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../contract/platform.ts';
import type { LoopTimes } from './loop-times.ts';

/** What is held up less long than this may seem longer by as much, where the loop was busy before. */
const EVERY_MS = 50;

export interface LoopWatchOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly times: () => LoopTimes;
  /** What was told of already, in milliseconds: it is taken off. */
  readonly toldMs: () => number;
  /**
   * Called after each look with the milliseconds since the last one in which the loop did nothing but work: it had
   * something to do, and the processor to do it. False ends the looks until the next `begin`.
   */
  readonly onLook: (workedMs: number) => boolean;
}

export class LoopWatch {
  readonly #options: LoopWatchOptions;
  /** Whoever's call was the first to be followed: the looks are nobody's. */
  readonly #begin: () => void;
  #cancel: (() => void) | undefined;

  constructor(options: LoopWatchOptions) {
    this.#options = options;
    this.#begin = AsyncResource.bind(() => this.#lookLater());
  }

  /** Does nothing while it looks already. Its timer keeps no process. */
  begin(): void {
    if (!this.#cancel) this.#begin();
  }

  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #lookLater(): void {
    const { clock, onLook } = this.#options;
    const last = this.#workedMs();
    this.#cancel = clock.after(EVERY_MS, () => {
      this.#cancel = undefined;
      if (onLook(this.#workedMs() - last)) this.#lookLater();
    });
  }

  /** Since some moment that stays the same. */
  #workedMs(): number {
    const { clock, times, toldMs } = this.#options;
    const { idleMs, queuedMs } = times();
    return clock.monotonic() - idleMs - queuedMs - toldMs();
  }
}
