/** What waits to go up, by a look that is known to have seen everything: a proof tells what it leaves out. */
import type { Clock } from 'mountkeeper';
import type { Waiting } from '../transfer/queue.ts';

/** So many in a row that may have missed something are enough: somebody renames all the time. */
const MOST_LOOKS = 40;
const LOOK_AGAIN_MS = 500;

export interface WholeLookOptions {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly signal: AbortSignal;
  /** A new look; resolves with whether it has seen everything. */
  readonly look: () => Promise<boolean>;
  /** As of that look. */
  readonly waiting: () => readonly Waiting[];
  /** Paths of what could not be brought back to the upper folder yet. */
  readonly unrestored: () => ReadonlySet<string>;
}

/** Rejects with a plain sentence when some seconds of looks may have missed something. */
export async function waitingNow(options: WholeLookOptions): Promise<readonly Waiting[]> {
  const { clock, signal, look, waiting, unrestored } = options;
  for (let looks = 1; !(await look()); looks += 1) {
    signal.throwIfAborted();
    if (looks >= MOST_LOOKS)
      throw new Error(
        'Files are being renamed or discarded here all the time, so what waits cannot be told: try again in a moment.',
      );
    await clock.sleep(LOOK_AGAIN_MS, signal);
  }
  signal.throwIfAborted();
  const missing = [...unrestored()].map((path) => ({
    path,
    spots: [path],
    reason: 'What was written here could not be brought back to its place yet; it is tried again.',
  }));
  return [...waiting(), ...missing];
}
