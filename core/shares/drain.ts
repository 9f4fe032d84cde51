/**
 * Draining: waiting until everything users wrote through a mount is on the remote. Bounded by the caller's
 * signal. Writers of a mount that was not frozen may go on; the drain then ends in a moment in which nothing
 * is dirty.
 */
import type { Clock } from '../contract/platform.ts';
import type { Mount, MountStats } from '../contract/mount.ts';
import { timeBox } from '../sdk/time-box.ts';

const LOOK_EVERY_MS = 250;
const ASK_AGAIN_EVERY_MS = 2_000;
/** A file on its way from open to queued may escape one look; it cannot escape two. */
const CLEAN_LOOKS = 2;

export interface DrainOptions {
  readonly mount: Mount;
  readonly clock: Clock;
  /** Figures taken now; a rejection counts as "not clean yet". */
  readonly freshStats: () => Promise<MountStats>;
  readonly signal: AbortSignal;
  readonly onProgress?: (dirtyFiles: number) => void;
}

/** True when nothing dirty is left; false when the signal aborted first. Never rejects. */
export async function drain(options: DrainOptions): Promise<boolean> {
  const { clock, mount, signal } = options;
  let askedAt = -Infinity;
  let cleanLooks = 0;
  while (!signal.aborted) {
    const dirty = await dirtyFiles(options);
    cleanLooks = dirty === 0 ? cleanLooks + 1 : 0;
    if (cleanLooks === CLEAN_LOOKS) return true;
    if (dirty !== undefined && dirty > 0) options.onProgress?.(dirty);
    if (dirty !== 0 && clock.monotonic() - askedAt >= ASK_AGAIN_EVERY_MS) {
      askedAt = clock.monotonic();
      await timeBox(clock, ASK_AGAIN_EVERY_MS, mount.flush(clock.deadline(ASK_AGAIN_EVERY_MS, signal))).catch(
        () => undefined,
      );
    }
    await clock.sleep(LOOK_EVERY_MS, signal).catch(() => undefined);
  }
  return false;
}

async function dirtyFiles(options: DrainOptions): Promise<number | undefined> {
  try {
    return (await options.freshStats()).dirtyFiles;
  } catch {
    return undefined;
  }
}
