/**
 * The daemon's time that the drawings of one plugin take: it puts them together, and does nothing else meanwhile. How
 * much a drawing asks of the view cannot be told beforehand: a message of 10,000 characters may take 10 ms and print
 * nothing.
 */
import type { Clock } from '../../../contract/platform.ts';
import { Allowance } from '../../../platform/allowance.ts';

/** Of one drawing. A page with 10,000 nodes takes half of it. */
const MOST_MS = 100;
/** Of all drawings of the plugin: many readers may look at many tabs. */
const MOST_OF_ALL = { most: 1_000, everyMs: 10_000 };

export class DrawingTime {
  readonly #all: Allowance;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#all = new Allowance(clock, MOST_OF_ALL);
  }

  /** `check` is called again and again while it draws, and throws when the time is up. Throws where none is left. */
  spend<T>(draw: (check: () => void) => T): T {
    if (!this.#all.take(0))
      throw new Error(
        `its drawings took more than ${MOST_OF_ALL.most / 1_000} s of the last ${MOST_OF_ALL.everyMs / 1_000} s`,
      );
    const spentMs = stopwatch();
    try {
      return draw(() => {
        if (spentMs(MOST_MS) > MOST_MS) throw new Error(`it takes more than ${MOST_MS} ms to put together`);
      });
    } finally {
      this.#all.take(spentMs(0));
    }
  }
}

/** Milliseconds; the processor is asked from `fromMs` on: a daemon that gets no turn says nothing about a drawing. */
function stopwatch(): (fromMs: number) => number {
  const begunMs = performance.now();
  const before = process.cpuUsage();
  return (fromMs) => {
    const passedMs = performance.now() - begunMs;
    if (passedMs <= fromMs) return passedMs;
    const { user, system } = process.cpuUsage(before);
    return Math.min(passedMs, (user + system) / 1_000);
  };
}
