/**
 * Draining: waits until everything that users wrote through a mount is on the remote, or the caller's
 * signal aborts. Programs may go on writing to a mount that is not frozen; the drain then ends at a moment
 * when nothing is dirty.
 */
import type { Clock } from '../contract/platform.ts';
import type { Mount, MountStats } from '../contract/mount.ts';
import { pause, timeBox } from '../platform/deadline.ts';

const LOOK_EVERY_MS = 250;
/** Until the look that confirms that nothing is dirty. */
const LOOK_AGAIN_MS = 25;
const ASK_AGAIN_EVERY_MS = 2_000;
/** A file may be missed once, while it goes from open to queued; it cannot be missed twice. */
const CLEAN_LOOKS = 2;

export interface DrainOptions {
  readonly mount: Mount;
  readonly clock: Clock;
  /** Reads fresh figures; a rejection counts as "not clean yet". */
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
    await pause(clock, dirty === 0 ? LOOK_AGAIN_MS : LOOK_EVERY_MS, signal);
  }
  return false;
}

async function dirtyFiles(options: DrainOptions): Promise<number | undefined> {
  try {
    return (await options.freshStats()).dirtyFiles;
  } catch {
    // Unknown: the drain continues as if something was waiting.
    return undefined;
  }
}
