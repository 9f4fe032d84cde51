/** A clock for tests: time stands still until the test advances it. */
import type { Clock } from '../contract/platform.ts';
import { timeoutError } from '../platform/timeout-error.ts';

export interface ManualClock extends Clock {
  /** Advances the clock: timers fire in order, and what each one starts gets its turn before the next. */
  advance(ms: number): Promise<void>;
  /** Number of timers that are waiting. */
  readonly pending: number;
}

interface Timer {
  readonly dueMs: number;
  readonly fn: () => void;
}

/** Starts at midnight of 1 January 2026 UTC unless told otherwise. */
export function createManualClock(startMs = Date.UTC(2026, 0, 1)): ManualClock {
  return new StoppedClock(startMs);
}

class StoppedClock implements ManualClock {
  readonly #startMs: number;
  readonly #timers = new Set<Timer>();
  #passedMs = 0;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  now(): number {
    return this.#startMs + this.#passedMs;
  }

  monotonic(): number {
    return this.#passedMs;
  }

  get pending(): number {
    return this.#timers.size;
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { dueMs: this.#passedMs + Math.max(0, ms), fn };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      const onAbort = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      const cancel = this.after(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  deadline(ms: number, parent?: AbortSignal): AbortSignal {
    const controller = new AbortController();
    const cancel = this.after(ms, () => {
      parent?.removeEventListener('abort', follow);
      controller.abort(timeoutError(`no answer within ${String(ms)} ms`));
    });
    const follow = (): void => {
      cancel();
      controller.abort(parent?.reason);
    };
    if (parent?.aborted) follow();
    else parent?.addEventListener('abort', follow, { once: true });
    return controller.signal;
  }

  async advance(ms: number): Promise<void> {
    const endMs = this.#passedMs + ms;
    await settle();
    for (let timer = this.#nextUntil(endMs); timer; timer = this.#nextUntil(endMs)) {
      this.#timers.delete(timer);
      this.#passedMs = Math.max(this.#passedMs, timer.dueMs);
      timer.fn();
      await settle();
    }
    this.#passedMs = endMs;
  }

  #nextUntil(endMs: number): Timer | undefined {
    return [...this.#timers].filter((timer) => timer.dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0];
  }
}

/** Lets the work that the last timer started have its turn. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
}
