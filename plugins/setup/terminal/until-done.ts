/** Work that must not stop half-way on a terminal: a second Ctrl-C would end the process at once. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Signals do not end the process before the work has, which takes well under a second. */
export async function untilDone<T>(work: () => Promise<T>): Promise<T> {
  const goOn = (): void => undefined;
  for (const signal of ENDING) process.on(signal, goOn);
  try {
    return await work();
  } finally {
    for (const signal of ENDING) process.off(signal, goOn);
  }
}
