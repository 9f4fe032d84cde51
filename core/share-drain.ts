/**
 * Draining: waiting until everything users wrote through a mount is on the remote. Bounded by the caller's signal.
 */
import type { Clock, Mount, MountStats } from './api.ts';

const LOOK_EVERY_MS = 250;
const ASK_AGAIN_EVERY_MS = 2_000;

export interface DrainOptions {
  readonly mount: Mount;
  readonly clock: Clock;
  /** Figures taken now; a rejection counts as "not clean yet". */
  readonly freshStats: () => Promise<MountStats>;
  /** Refuse new writes first. Without it, writers may go on and the drain waits for a moment in which nothing is dirty. */
  readonly seal: boolean;
  readonly signal: AbortSignal;
  readonly onProgress?: (dirtyFiles: number) => void;
}

/** True when nothing dirty is left; false when the signal aborted first. Never rejects. */
export async function drain(options: DrainOptions): Promise<boolean> {
  const { clock, mount, signal } = options;
  if (options.seal) await mount.seal().catch(() => undefined);
  let askedAt = -Infinity;
  while (!signal.aborted) {
    const dirty = await dirtyFiles(options);
    if (dirty === 0) return true;
    if (dirty !== undefined) options.onProgress?.(dirty);
    if (clock.monotonic() - askedAt >= ASK_AGAIN_EVERY_MS) {
      askedAt = clock.monotonic();
      await mount.flush(clock.deadline(ASK_AGAIN_EVERY_MS, signal)).catch(() => undefined);
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
