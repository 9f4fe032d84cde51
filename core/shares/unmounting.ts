/** Removes a mount: drained or not, clean or hanging. Dirty files are never lost, they stay in the cache. */
import type { Mount, PendingFiles } from '../contract/mount.ts';
import { TimeBoxError, timeBox } from '../platform/deadline.ts';
import { drain } from './drain.ts';
import { quiesce, withdraw } from './exposure.ts';
import type { ActiveMount } from './active-mount.ts';
import type { RunnerEnvironment } from './environment.ts';

const UNMOUNT_DEADLINE_MS = 60_000;
const FREEZE_DEADLINE_MS = 10_000;
const KILL_DEADLINE_MS = 30_000;
const LOOK_AT_CACHE_DEADLINE_MS = 60_000;
/**
 * How long programs may go on writing, while a change of settings waits for dirty files, before new writes
 * are refused.
 */
const GENTLE_DRAIN_MS = 10_000;

/**
 * Servers stop serving the share first, so that no client writes into the bare folder; a mount that hangs
 * is killed first, because it would block them.
 */
export async function unmountShare(
  around: RunnerEnvironment,
  active: ActiveMount,
  state: 'alive' | 'dead' | 'hung',
): Promise<void> {
  const { mount } = active;
  if (state === 'hung') await kill(around, mount);
  await withdraw(around, mount.shareName);
  if (state === 'dead') await kill(around, mount);
  if (state === 'alive') await unmount(around, mount);
}

async function unmount(around: RunnerEnvironment, mount: Mount): Promise<void> {
  try {
    await timeBox(around.clock, UNMOUNT_DEADLINE_MS, mount.unmount());
  } catch (error) {
    around.log.error({ share: mount.shareName, err: error }, 'share not unmounted cleanly');
    if (error instanceof TimeBoxError) await kill(around, mount);
  }
}

async function kill(around: RunnerEnvironment, mount: Mount): Promise<void> {
  try {
    await timeBox(around.clock, KILL_DEADLINE_MS, mount.kill());
  } catch (error) {
    around.log.error({ share: mount.shareName, err: error }, 'mount not cleared');
  }
}

/** Unmounts a mount that came up after nobody waited for it any more. */
export function discard(around: RunnerEnvironment, mount: Mount): void {
  void unmount(around, mount);
}

/** Dirty files that the mount's cache folder still holds; undefined when that cannot be read. */
export async function leftIn(around: RunnerEnvironment, mount: Mount): Promise<PendingFiles | undefined> {
  try {
    const left = await timeBox(around.clock, LOOK_AT_CACHE_DEADLINE_MS, mount.pending());
    if (left.count > 0)
      around.log.warn(
        {
          share: mount.shareName,
          files: left.count,
          bytes: left.bytes,
          first: left.paths.slice(0, 5),
        },
        'files wait in the cache for the next mount',
      );
    return left;
  } catch (error) {
    around.log.error({ share: mount.shareName, err: error }, 'cache not read, what waits in it is unknown');
    return undefined;
  }
}

/** Waits until nothing is dirty; new writes are refused from the start. */
export async function drainToTheEnd(
  around: RunnerEnvironment,
  active: ActiveMount,
  signal: AbortSignal,
): Promise<boolean> {
  let last = -1;
  return drainFrozen(around, active, {
    signal,
    onProgress: (dirtyFiles) => {
      if (dirtyFiles !== last) around.log.info({ share: active.mount.shareName, dirtyFiles }, 'draining');
      last = dirtyFiles;
    },
  });
}

/**
 * When dirty files would otherwise go elsewhere, the wait ends only when the share is clean or the signal
 * aborts; otherwise the cache keeps them.
 */
export async function drainForChange(
  around: RunnerEnvironment,
  active: ActiveMount,
  options: { readonly placeChanges: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { clock } = around;
  const { placeChanges, signal } = options;
  if (!active.isFrozen) {
    const isClean = await drain({
      mount: active.mount,
      clock,
      freshStats: () => active.watch.freshStats(),
      signal: clock.deadline(GENTLE_DRAIN_MS, signal),
    });
    if (signal.aborted || (isClean && !placeChanges)) return;
  }
  await drainFrozen(around, active, {
    signal: placeChanges ? signal : clock.deadline(GENTLE_DRAIN_MS, signal),
  });
}

async function drainFrozen(
  around: RunnerEnvironment,
  active: ActiveMount,
  options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (dirtyFiles: number) => void;
  },
): Promise<boolean> {
  if (options.signal.aborted) return false;
  const isTight = await freeze(around, active);
  const isClean = await drain({
    mount: active.mount,
    clock: around.clock,
    freshStats: () => active.watch.freshStats(),
    ...options,
  });
  active.isDrained ||= isClean && isTight;
  return isClean;
}

async function freeze(around: RunnerEnvironment, active: ActiveMount): Promise<boolean> {
  active.isFrozen = true;
  await quiesce(around, active.mount.shareName);
  try {
    await timeBox(around.clock, FREEZE_DEADLINE_MS, active.mount.freeze());
    return true;
  } catch (error) {
    // A call that timed out may still take effect.
    active.isFrozen = error instanceof TimeBoxError;
    around.log.warn(
      { share: active.mount.shareName, err: error },
      'new writes could not be refused, the drain goes on beside them',
    );
    return false;
  }
}
