/**
 * Runs one at a time. Inputs that arrive during a run are merged into a single further run with the latest
 * input.
 */
export interface LatestQueue<T> {
  /** Settles with the run that took this input or a later one. */
  push(input: T): Promise<void>;
  /** Resolves when nothing runs or waits. */
  idle(): Promise<void>;
}

export function createLatestQueue<T>(run: (input: T) => Promise<void>): LatestQueue<T> {
  let running: Promise<void> | undefined;
  let next: { input: T; done: Promise<void> } | undefined;

  const start = (input: T): Promise<void> => {
    const current = run(input).finally(() => {
      if (running === current) running = undefined;
    });
    running = current;
    return current;
  };

  return {
    push(input) {
      if (next) {
        next.input = input;
        return next.done;
      }
      if (!running) return start(input);
      const waiting = { input, done: Promise.resolve() };
      // The callers of that run hear of it.
      waiting.done = running
        .catch(() => undefined)
        .then(() => {
          next = undefined;
          return start(waiting.input);
        });
      next = waiting;
      return waiting.done;
    },
    async idle() {
      // Whoever pushed has heard of it; here only the end counts.
      while (running || next) await (next?.done ?? running)?.catch(() => undefined);
    },
  };
}
