/** Work that must not overlap, one piece after the other in the order in which it was asked for. */
export interface SerialQueue {
  /**
   * Does `work` when everything asked for before it has settled, and settles as it does. A failure is its own
   * caller's alone: whoever is next begins all the same.
   */
  run<T>(work: () => T | Promise<T>): Promise<T>;
}

/** An empty queue. It is bounded by its callers alone. */
export function createSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(work) {
      const result = last.then(work);
      // Its own caller hears of it.
      last = result.catch(() => undefined);
      return result;
    },
  };
}
