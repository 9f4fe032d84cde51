/**
 * Work with a time limit: the one place that decides between "done" and "time is up". All times are
 * milliseconds. In every form the timer is removed as soon as the work has settled and keeps the process
 * alive until then, and a failure of abandoned work is no unhandled rejection. Work is abandoned, not
 * stopped, unless it obeys the signal that it gets.
 */
import type { Clock } from '../contract/platform.ts';
import { timeoutError } from './timeout-error.ts';

/** The work did not settle in time. No error of the work itself is of this class. */
export class TimeBoxError extends Error {
  override readonly name = 'TimeBoxError';
}

/** Settles as `work` does, or rejects with a TimeBoxError with the message `sentence` after `ms`. */
export function timeBox<T>(
  clock: Clock,
  ms: number,
  work: PromiseLike<T>,
  sentence = `did not finish within ${String(ms / 1000)} s`,
): Promise<T> {
  return timeBoxOr(clock, ms, work, () => {
    throw new TimeBoxError(sentence);
  });
}

/** Settles as `work` does, or after `ms` as `late()` does, which is called only then. */
export async function timeBoxOr<T, L>(
  clock: Clock,
  ms: number,
  work: PromiseLike<T>,
  late: () => L,
): Promise<T | Awaited<L>> {
  let cancel: (() => void) | undefined;
  const timeUp = new Promise<Awaited<L>>((resolve, reject) => {
    const onTimeUp = (): void => {
      try {
        resolve(late() as Awaited<L>);
      } catch (error) {
        reject(error as Error);
      }
    };
    cancel = clock.after(ms, onTimeUp, { keepAlive: true });
  });
  try {
    return await Promise.race([work, timeUp]);
  } finally {
    cancel?.();
  }
}

/** Whether `work` ends within `ms`. Rejects with the work's error when it fails within that time. */
export function endsWithin(clock: Clock, ms: number, work: PromiseLike<unknown>): Promise<boolean> {
  return timeBoxOr(
    clock,
    ms,
    work.then(() => true),
    () => false,
  );
}

/**
 * Settles as `work` does, or rejects with the signal's reason as soon as it aborts (at once if it has
 * already). The listener is removed.
 */
export async function unlessAborted<T>(signal: AbortSignal, work: PromiseLike<T>): Promise<T> {
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Resolves after `ms`, or as soon as the signal aborts. Never rejects. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  // Only the signal makes it reject, which ends the pause as well.
  await clock.sleep(ms, signal).catch(() => undefined);
}

/** As `pause`, but a process that has nothing else to do may end meanwhile: for loops beside the work. */
export function rest(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const onAbort = (): void => {
      cancel();
      resolve();
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

export interface GraceOptions<T> {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long the work may go on after the signal has aborted. */
  readonly graceMs: number;
  /** Called with a result that came after the caller stopped waiting, to undo it. */
  readonly onLate?: (late: T) => void;
}

/**
 * Settles as `work` does; rejects with the signal's reason when the work goes on for longer than the grace
 * after it aborted.
 */
export function withGrace<T>(work: Promise<T>, options: GraceOptions<T>): Promise<T> {
  const { clock, signal } = options;
  return new Promise<T>((resolve, reject) => {
    let isGivenUp = false;
    let cancel: (() => void) | undefined;
    const onAbort = (): void => {
      cancel = clock.after(
        options.graceMs,
        () => {
          isGivenUp = true;
          reject(signal.reason as Error);
        },
        { keepAlive: true },
      );
    };
    const settle = (act: () => void): void => {
      signal.removeEventListener('abort', onAbort);
      cancel?.();
      act();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    work.then(
      (result) => settle(() => (isGivenUp ? options.onLate?.(result) : resolve(result))),
      (error: unknown) => settle(() => reject(error as Error)),
    );
  });
}

export interface LimitedOptions {
  readonly clock: Clock;
  /** The work is told to stop after this many milliseconds. */
  readonly limitMs: number;
  /** How long it may continue after that, in milliseconds. */
  readonly graceMs: number;
  /** When it aborts, the work is told to stop at once. */
  readonly end: AbortSignal;
}

/**
 * A deadline with a grace period. All timers and listeners are removed when the work is done: this is used
 * every other second for every share, and left-over timers would cost as much as the calls themselves.
 */
export function limited<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { clock, limitMs, graceMs, end }: LimitedOptions,
): Promise<T> {
  const limit = new AbortController();
  return new Promise<T>((resolve, reject) => {
    let cancel: () => void = () => undefined;
    const settle = (act: () => void): void => {
      cancel();
      end.removeEventListener('abort', onEnd);
      act();
    };
    const tell = (reason: unknown): void => {
      if (limit.signal.aborted) return;
      cancel();
      cancel = clock.after(graceMs, () => settle(() => reject(reason as Error)), { keepAlive: true });
      limit.abort(reason);
    };
    const onEnd = (): void => tell(end.reason);
    if (end.aborted) onEnd();
    else end.addEventListener('abort', onEnd, { once: true });
    if (!end.aborted)
      cancel = clock.after(limitMs, () => tell(timeoutError(`no answer within ${limitMs} ms`)));
    work(limit.signal).then(
      (result) => settle(() => resolve(result)),
      (error: unknown) => settle(() => reject(error as Error)),
    );
  });
}
