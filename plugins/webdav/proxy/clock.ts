/** The proxy is a process of its own, without the daemon's services: this is where its time comes from. */
/** Runs `fn` once after `ms`; the returned release cancels it. Does not keep the process alive. */
export function after(ms: number, fn: () => void): () => void {
  // eslint-disable-next-line no-restricted-globals
  const handle = setTimeout(fn, ms).unref();
  return () => clearTimeout(handle);
}

/** Resolves after `ms`, or as soon as the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = (): void => {
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = after(ms, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/** Milliseconds since the epoch. */
export function now(): number {
  return new Date().getTime();
}
