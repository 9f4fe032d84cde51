/**
 * A clock for tests: time stands still until the test lets it pass.
 */
import type { Clock } from '../services.ts';
import { timeoutError } from '../system/timeout-error.ts';

export interface ManualClock extends Clock {
  /** Lets `ms` pass: timers fire in their order, and what they set off gets its turn before the next. */
  advance(ms: number): Promise<void>;
  /** Timers that wait. */
  readonly pending: number;
}

interface Timer { readonly dueMs: number; readonly fn: () => void }

/** Starts at midnight of 1 January 2026 UTC unless told otherwise. */
export function createManualClock(startMs = Date.UTC(2026, 0, 1)): ManualClock {
  const timers = new Set<Timer>();
  let passedMs = 0;

  const after: Clock['after'] = (ms, fn) => {
    const timer = { dueMs: passedMs + Math.max(0, ms), fn };
    timers.add(timer);
    return () => timers.delete(timer);
  };

  const sleep: Clock['sleep'] = (ms, signal) => new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });

  const deadline: Clock['deadline'] = (ms, parent) => {
    const controller = new AbortController();
    const cancel = after(ms, () => controller.abort(timeoutError(`no answer within ${String(ms)} ms`)));
    const follow = (): void => {
      cancel();
      controller.abort(parent?.reason);
    };
    if (parent?.aborted) follow();
    else parent?.addEventListener('abort', follow, { once: true });
    return controller.signal;
  };

  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => { setImmediate(resolve); });
  };

  return {
    after, sleep, deadline,
    now: () => startMs + passedMs,
    monotonic: () => passedMs,
    get pending() {
      return timers.size;
    },
    async advance(ms) {
      const endMs = passedMs + ms;
      await settle();
      for (;;) {
        const next = [...timers].filter((timer) => timer.dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0];
        if (!next) break;
        timers.delete(next);
        passedMs = Math.max(passedMs, next.dueMs);
        next.fn();
        await settle();
      }
      passedMs = endMs;
    },
  };
}
