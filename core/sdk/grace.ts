/**
 * Bounds work that should end by its signal but might not: a plugin's call that hangs must not hold its
 * caller.
 */
import type { Clock } from '../contract/platform.ts';
import { timeoutError } from '../platform/timeout-error.ts';

export interface GraceOptions<T> {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long the work may go on after the signal has aborted. */
  readonly graceMs: number;
  /** Gets a result that came after this gave up, to undo it. */
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
  readonly limitMs: number;
  readonly graceMs: number;
  /** Aborted: the work is told to stop at once. */
  readonly end: AbortSignal;
}

/**
 * A deadline with its grace, all of it taken back once the work is done: of what is asked every other second
 * of every share, an abort that nobody hears any more would cost as much as the question.
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
