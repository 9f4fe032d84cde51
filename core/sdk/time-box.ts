/**
 * Time-boxing of calls into plugins: the caller goes on at the deadline, whatever the callee does.
 */
import type { Clock } from '../contract/platform.ts';

/** A call that did not settle in time. */
export class TimeBoxError extends Error {
  override readonly name = 'TimeBoxError';
}

/**
 * Settles as `work` does, or rejects with a TimeBoxError after `ms`. The work itself cannot be stopped, only
 * left behind.
 */
export async function timeBox<T>(clock: Clock, ms: number, work: PromiseLike<T>): Promise<T> {
  let cancel: (() => void) | undefined;
  const deadline = new Promise<never>((_, reject) => {
    cancel = clock.after(ms, () => reject(new TimeBoxError(`did not finish within ${String(ms / 1000)} s`)), {
      keepAlive: true,
    });
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    cancel?.();
  }
}
