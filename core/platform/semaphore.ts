import type { Clock } from '../contract/platform.ts';

export interface Semaphore {
  /**
   * Resolves when a slot is free, first come, first served, with a function that frees the slot again; it
   * counts once. Rejects with the signal's reason when the signal aborts first, and then takes no slot.
   */
  enter(signal?: AbortSignal): Promise<() => void>;
}

export interface SemaphoreOptions {
  /** Number of slots. */
  readonly places: number;
  /**
   * After this many milliseconds the holder no longer counts: by then its work only waits for something
   * that hangs, and that must delay nobody else.
   */
  readonly heldAtMostMs: number;
  readonly clock: Clock;
}

/**
 * Limits how much work begins at the same time, for example because starting a process costs processor
 * time.
 */
export function createSemaphore({ places, heldAtMostMs, clock }: SemaphoreOptions): Semaphore {
  let free = places;
  const waiting: (() => void)[] = [];
  const take = (): (() => void) => {
    let isHeld = true;
    const leave = (): void => {
      if (!isHeld) return;
      isHeld = false;
      cancel();
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    };
    const cancel = clock.after(heldAtMostMs, leave);
    return leave;
  };
  return {
    enter: async (signal) => {
      signal?.throwIfAborted();
      if (free > 0) free -= 1;
      else await turn(waiting, signal);
      return take();
    },
  };
}

function turn(waiting: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = (): void => {
      signal?.removeEventListener('abort', giveUp);
      resolve();
    };
    const giveUp = (): void => {
      waiting.splice(waiting.indexOf(go), 1);
      reject(signal?.reason as Error);
    };
    waiting.push(go);
    signal?.addEventListener('abort', giveUp, { once: true });
  });
}
