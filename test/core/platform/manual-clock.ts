/** A clock that stands still until the test moves it. */
import type { Clock } from '../../../core/contract/platform.ts';
import { createClock } from '../../../core/platform/clock.ts';

export interface ManualClock extends Clock {
  /** Moves wall clock and timers on, firing what is due in order. Promises settle in between. */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock alone, as an administrator or a machine's sleep does. */
  set(ms: number): void;
  readonly timers: number;
}

export function manualClock(start: string): ManualClock {
  const real = createClock();
  let wallMs = Date.parse(start);
  let elapsedMs = 0;
  const timers = new Map<symbol, { readonly dueMs: number; readonly fn: () => void }>();
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    ...real,
    now: () => wallMs,
    after: (ms, fn) => {
      const id = Symbol('timer');
      timers.set(id, { dueMs: elapsedMs + ms, fn });
      return () => void timers.delete(id);
    },
    advance: async (ms) => {
      const end = elapsedMs + ms;
      await settle();
      for (;;) {
        const due = [...timers]
          .filter(([, timer]) => timer.dueMs <= end)
          .sort(([, a], [, b]) => a.dueMs - b.dueMs)[0];
        const next = due?.[1].dueMs ?? end;
        wallMs += next - elapsedMs;
        elapsedMs = next;
        if (due === undefined) return settle();
        timers.delete(due[0]);
        due[1].fn();
        await settle();
      }
    },
    set: (ms) => {
      wallMs = ms;
    },
    get timers() {
      return timers.size;
    },
  };
}
