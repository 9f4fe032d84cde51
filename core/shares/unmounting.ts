/** Takes a mount away: drained or not, clean or hung. A dirty file is never lost, it stays in the cache. */
import type { Mount, PendingFiles } from '../contract/mount.ts';
import { TimeBoxError, timeBox } from '../sdk/time-box.ts';
import { drain } from './drain.ts';
import { withdraw } from './exposure.ts';
import type { ActiveMount } from './active-mount.ts';
import type { RunnerEnvironment } from './environment.ts';

const UNMOUNT_DEADLINE_MS = 60_000;
const SEAL_DEADLINE_MS = 10_000;
const KILL_DEADLINE_MS = 30_000;
const LOOK_AT_CACHE_DEADLINE_MS = 60_000;
/**
 * While a change of settings waits for dirty files, how long writers may go on before new writes are refused.
 */
const GENTLE_DRAIN_MS = 10_000;

/**
 * Servers let go first, so that no client writes into the bare folder; a mount that hangs is killed first,
 * since it would hold them.
 */
export async function lower(
  around: RunnerEnvironment,
  held: ActiveMount,
  state: 'alive' | 'dead' | 'hung',
): Promise<void> {
  const { mount } = held;
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

/** Takes down a mount that came up after everybody had given it up. */
export function discard(around: RunnerEnvironment, mount: Mount): void {
  void unmount(around, mount);
}

/** Dirty files that the mount's cache folder still holds; undefined when that cannot be read. */
export async function leftIn(around: RunnerEnvironment, mount: Mount): Promise<PendingFiles | undefined> {
  try {
    const left = await timeBox(around.clock, LOOK_AT_CACHE_DEADLINE_MS, mount.pending());
    if (left.count > 0)
      around.log.warn(
        { share: mount.shareName, files: left.count, bytes: left.bytes, first: left.paths.slice(0, 5) },
        'files wait in the cache for the next mount',
      );
    return left;
  } catch (error) {
    around.log.error({ share: mount.shareName, err: error }, 'cache not read, what waits in it is unknown');
    return undefined;
  }
}

/** Until nothing waits any more; new writes are refused from the start. */
export async function drainToTheEnd(
  around: RunnerEnvironment,
  held: ActiveMount,
  signal: AbortSignal,
): Promise<boolean> {
  let last = -1;
  return drainFrozen(around, held, {
    signal,
    onProgress: (dirtyFiles) => {
      if (dirtyFiles !== last) around.log.info({ share: held.mount.shareName, dirtyFiles }, 'draining');
      last = dirtyFiles;
    },
  });
}

/**
 * Where dirty files would go elsewhere, the wait ends only by a clean share or the signal; else the cache
 * keeps them.
 */
export async function drainForChange(
  around: RunnerEnvironment,
  held: ActiveMount,
  options: { readonly placeChanges: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { clock } = around;
  const { placeChanges, signal } = options;
  if (!held.isSealed) {
    const isClean = await drain({
      mount: held.mount,
      clock,
      freshStats: () => held.watch.freshStats(),
      signal: clock.deadline(GENTLE_DRAIN_MS, signal),
    });
    if (signal.aborted || (isClean && !placeChanges)) return;
  }
  await drainFrozen(around, held, {
    signal: placeChanges ? signal : clock.deadline(GENTLE_DRAIN_MS, signal),
  });
}

async function drainFrozen(
  around: RunnerEnvironment,
  held: ActiveMount,
  options: { readonly signal: AbortSignal; readonly onProgress?: (dirtyFiles: number) => void },
): Promise<boolean> {
  if (options.signal.aborted) return false;
  const isTight = await freeze(around, held);
  const isClean = await drain({
    mount: held.mount,
    clock: around.clock,
    freshStats: () => held.watch.freshStats(),
    ...options,
  });
  held.isDrained ||= isClean && isTight;
  return isClean;
}

async function freeze(around: RunnerEnvironment, held: ActiveMount): Promise<boolean> {
  held.isSealed = true;
  try {
    await timeBox(around.clock, SEAL_DEADLINE_MS, held.mount.seal());
    return true;
  } catch (error) {
    // A call that did not end may still take hold.
    held.isSealed = error instanceof TimeBoxError;
    around.log.warn(
      { share: held.mount.shareName, err: error },
      'new writes could not be refused, the drain goes on beside them',
    );
    return false;
  }
}
