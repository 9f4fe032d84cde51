import type { Clock } from 'mountkeeper';

/** A place to start in; given back by calling what `enter` resolves with. */
export interface Places {
  enter(signal: AbortSignal): Promise<() => void>;
}

/**
 * Starting a process costs processor time, waiting for a remote costs none: only so many start at once, and
 * one that takes longer than `quickMs` waits for its remote by then and gives its place to the next. So a
 * remote that hangs delays nobody.
 */
export function createPlaces(count: number, quickMs: number, clock: Clock): Places {
  let free = count;
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
    const cancel = clock.after(quickMs, leave);
    return leave;
  };
  return {
    enter: async (signal) => {
      signal.throwIfAborted();
      if (free > 0) free -= 1;
      else await turn(waiting, signal);
      return take();
    },
  };
}

function turn(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = (): void => {
      signal.removeEventListener('abort', giveUp);
      resolve();
    };
    const giveUp = (): void => {
      waiting.splice(waiting.indexOf(go), 1);
      reject(signal.reason as Error);
    };
    waiting.push(go);
    signal.addEventListener('abort', giveUp, { once: true });
  });
}
