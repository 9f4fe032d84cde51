import { timeBoxOr } from 'mountkeeper/sdk';
import type { CacheView, Clock } from 'mountkeeper';

/** The mount or the remote does not answer, so a failure says nothing about the file. */
export class AwayError extends Error {}

export interface Patience {
  readonly clock: Clock;
  readonly timeoutMs: number;
}

const asking = new WeakMap<CacheView, Promise<boolean>>();

/** Asks once for all callers at the same time. */
export function stillThere(view: CacheView, patience: Patience): Promise<boolean> {
  const answer = asking.get(view) ?? inTime(view, patience).finally(() => asking.delete(view));
  asking.set(view, answer);
  return answer;
}

function inTime(view: CacheView, { clock, timeoutMs }: Patience): Promise<boolean> {
  return timeBoxOr(clock, timeoutMs, view.answers(), () => false);
}
