/** Runs work that must not overlap, one piece after the other, in the order of the calls. */
export interface SerialQueue {
  /**
   * Runs `work` when all earlier work has settled, and settles as it does. A failure reaches only its own
   * caller; the next one runs anyway.
   */
  run<T>(work: () => T | Promise<T>): Promise<T>;
}

/** An empty queue. Its length is not limited here. */
export function createSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(work) {
      const result = last.then(work);
      // Only the caller of the failed work hears of the failure.
      last = result.catch(() => undefined);
      return result;
    },
  };
}

export interface KeyedQueue {
  /** As a serial queue's, among the work of the same key; other keys do not wait for it. */
  run<T>(key: string, work: () => T | Promise<T>): Promise<T>;
  /** Waits for the key's turn; what it resolves with ends it. */
  enter(key: string): Promise<() => void>;
}

/** A serial queue for each key. A key of which nothing is under way is forgotten. */
export function createKeyedQueue(): KeyedQueue {
  const queues = new Map<string, { readonly queue: SerialQueue; length: number }>();
  const run: KeyedQueue['run'] = async (key, work) => {
    const own = queues.get(key) ?? { queue: createSerialQueue(), length: 0 };
    queues.set(key, own);
    own.length += 1;
    try {
      return await own.queue.run(work);
    } finally {
      own.length -= 1;
      if (own.length === 0) queues.delete(key);
    }
  };
  return {
    run,
    enter: (key) =>
      new Promise((begin) => {
        void run(key, () => new Promise<void>((end) => begin(() => end())));
      }),
  };
}
