import type { CacheView, Clock } from 'mountkeeper';

/** The mount or the remote does not answer: whatever failed says nothing about the file. */
export class AwayError extends Error {}

export interface Patience {
  readonly clock: Clock;
  readonly timeoutMs: number;
}

const asking = new WeakMap<CacheView, Promise<boolean>>();

/** Asked once for all who ask at the same time. */
export function stillThere(view: CacheView, patience: Patience): Promise<boolean> {
  const answer = asking.get(view) ?? inTime(view, patience).finally(() => asking.delete(view));
  asking.set(view, answer);
  return answer;
}

async function inTime(view: CacheView, { clock, timeoutMs }: Patience): Promise<boolean> {
  const enough = new AbortController();
  const late = clock.sleep(timeoutMs, enough.signal).then(
    () => false,
    () => false,
  );
  try {
    return await Promise.race([view.answers(), late]);
  } finally {
    enough.abort();
  }
}
