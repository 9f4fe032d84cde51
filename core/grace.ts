/** Bounds work that should end by its signal but might not: a plugin's call that hangs must not hold its caller. */
import type { Clock } from './api.ts';

export interface GraceOptions<T> {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long the work may go on after the signal has aborted. */
  readonly graceMs: number;
  /** Gets a result that came after this gave up, to undo it. */
  readonly onLate?: (late: T) => void;
}

/** Settles as `work` does; rejects with the signal's reason when the work goes on for longer than the grace after it aborted. */
export function withGrace<T>(work: Promise<T>, options: GraceOptions<T>): Promise<T> {
  const { clock, signal } = options;
  return new Promise<T>((resolve, reject) => {
    let isGivenUp = false;
    let cancel: (() => void) | undefined;
    const onAbort = (): void => {
      cancel = clock.after(options.graceMs, () => {
        isGivenUp = true;
        reject(signal.reason as Error);
      }, { keepAlive: true });
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
