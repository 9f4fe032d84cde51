/**
 * Waiting for what the outside world gives no event for: a condition, looked at again and again until a
 * deadline.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { SLOW_MACHINE } from './cpu-pressure.ts';

export interface Patience {
  readonly timeoutMs: number;
  /** Between two looks. Default: 50 ms, after a second a twentieth of the time that has passed, and at most 250. */
  readonly everyMs?: number;
}

/**
 * Resolves with the first truthy answer. A deadline is what a machine takes that has little else to do; a busy one has
 * twice that. Who claims a time measures it. Rejects with `what` at the deadline, naming the last error if there
 * was one.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  patience: Patience,
): Promise<NonNullable<T>> {
  const timeoutMs = patience.timeoutMs * SLOW_MACHINE;
  const begun = performance.now();
  const deadline = begun + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const answer = await condition();
      if (answer) return answer as NonNullable<T>;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause });
    // Most looks ask a daemon, which costs it and the test: those who wait for long would keep the machine busy.
    await sleep(patience.everyMs ?? Math.min(250, Math.max(50, (performance.now() - begun) / 20)));
  }
}

/**
 * Takes steps, as of a clock that stands still, until the condition holds. Rejects with `what` at the
 * deadline.
 */
export async function stepUntil(
  what: string,
  isThere: () => boolean,
  step: () => unknown,
  timeoutMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!isThere()) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await step();
  }
}

/**
 * The promise's outcome, while a clock that stands still is moved on, 50 times as fast as time. Rejects when
 * it is not there after 20 s of real time.
 */
export async function whileTimePasses<T>(
  clock: { advance(ms: number): Promise<void> },
  promise: Promise<T>,
): Promise<T> {
  let isThere = false;
  const settled = (): void => {
    isThere = true;
  };
  promise.then(settled, settled);
  await stepUntil(
    'what takes some time of the clock',
    () => isThere,
    async () => {
      await sleep(5);
      await clock.advance(250);
    },
  );
  return promise;
}

/** Lets the process do what waits to be done: a step that takes no time. */
export const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** The promise's outcome, or a rejection naming `what` at the deadline. */
export async function within<T>(what: string, timeoutMs: number, promise: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = sleep(timeoutMs, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`not within ${timeoutMs} ms: ${what}`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
  }
}

/** Milliseconds that a promise takes. */
export async function timed(promise: Promise<unknown>): Promise<number> {
  const start = performance.now();
  await promise;
  return performance.now() - start;
}

export { sleep };
