/**
 * In a store of objects (S3) a file's time is no part of a listing. rclone asks for it when somebody looks at the
 * file; where it gets no answer, it shows the time of the question. Taken for the version that users saw, it would
 * be another one than the remote's, and their change a conflict that is none.
 */
import type { LookBelow, RemoteEntry, RemoteFiles } from 'mountkeeper';

type Placed = readonly [place: string, entry: RemoteEntry];

export interface Times {
  readonly remote: Pick<RemoteFiles, 'stat'>;
  /** Milliseconds since the epoch, by the clock of the machine that rclone runs on. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

const UNKNOWN = 'the remote has not told its time';
/** As precise as the times of most remotes. */
const PRECISION_MS = 1_000;

/** What is looked at, without what shows a time from during the look that the remote does not confirm. */
export async function withRealTimes<T>(
  look: () => Promise<LookBelow<T>>,
  entriesOf: (place: string, found: T) => readonly Placed[],
  times: Times,
): Promise<LookBelow<T>> {
  const since = times.now();
  const { found, failed } = await look();
  const until = times.now() + 1;
  const real = new Map(found);
  const unknown = new Map(failed);
  for (const [place, one] of found) {
    const doubtful = (one === undefined ? [] : entriesOf(place, one)).filter(
      ([, entry]) =>
        entry.kind === 'file' && entry.version.modifiedMs >= since && entry.version.modifiedMs <= until,
    );
    if (!(await isAnyMadeUp(doubtful, times))) continue;
    real.delete(place);
    unknown.set(place, UNKNOWN);
  }
  return { found: real, failed: unknown };
}

async function isAnyMadeUp(doubtful: readonly Placed[], times: Times): Promise<boolean> {
  for (const one of doubtful) if (await isMadeUp(one, times)) return true;
  return false;
}

/** False for what somebody has just written there, and for what is gone by now: no other time will show. */
async function isMadeUp([place, shown]: Placed, { remote, signal }: Times): Promise<boolean> {
  try {
    const now = await remote.stat(place, { signal });
    if (now?.kind !== 'file' || shown.kind !== 'file') return false;
    return Math.abs(now.version.modifiedMs - shown.version.modifiedMs) >= PRECISION_MS;
  } catch {
    // It does not answer, so it has not told the time before either.
    signal.throwIfAborted();
    return true;
  }
}
