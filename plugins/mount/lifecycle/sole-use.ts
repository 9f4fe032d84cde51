/**
 * A share's cache belongs to one daemon: what another one would set aside, or remove, is what users of a living share
 * write to. Its lock lies on the layer's folder for as long as the share is mounted (`passOn`). Before that, the folder
 * may be moved, so who makes a cache ready holds a lock beside it.
 */
import { lstat } from 'node:fs/promises';
import { createKeyedQueue, holdFolder, makeFolder, undefinedWhenMissing } from 'mountkeeper';
import type { Processes } from 'mountkeeper';
import { unusable } from '../layer/overlay.ts';
import { layerPaths } from '../layer/paths.ts';

const LOCK = 'mounting';
const turns = createKeyedQueue();
/** A former mount's process, which has just been ended, may take a moment. */
const PATIENCE_S = 1;
const TIMEOUT_MS = 5_000;
/** By a descriptor, since flock(1) makes a file where it finds nothing. 1: somebody else has the lock. */
const TRY = 'exec 3<"$1" && exec flock -x -w "$2" 3';
const HELD = 1;

/** `cache`: the layer's folder in a share's cache. */
export function inUse(cache: string): string {
  return (
    `the share's cache ${cache} is in use by another daemon, or by a share that it left mounted; ` +
    'stop it or unmount that share first, or give this daemon another cache.dir'
  );
}

/**
 * Runs `mount` while no other daemon makes this cache ready for its share, and none has the share mounted. Rejects
 * with a plain sentence where one does; nothing was changed then.
 */
export async function asSoleUser<T>(
  cacheDir: string,
  processes: Pick<Processes, 'run'>,
  mount: () => Promise<T>,
): Promise<T> {
  const { folder } = layerPaths(cacheDir);
  const taken = new Error(inUse(folder));
  let isHeld = false;
  const held = async (): Promise<T> => {
    isHeld = true;
    if (await isLocked(folder, processes)) throw taken;
    return mount();
  };
  try {
    await makeFolder(cacheDir);
    // This daemon's own calls wait for each other: they are nobody else's.
    return await turns.run(cacheDir, () => holdFolder(cacheDir, LOCK, () => taken, held));
  } catch (error) {
    throw isHeld || error === taken ? error : unusable(cacheDir, error);
  }
}

async function isLocked(folder: string, processes: Pick<Processes, 'run'>): Promise<boolean> {
  if ((await lstat(folder).catch(undefinedWhenMissing)) === undefined) return false;
  const { code, stderr } = await processes.run({
    command: 'sh',
    args: ['-c', TRY, 'sh', folder, String(PATIENCE_S)],
    env: { LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
  });
  if (code !== 0 && code !== HELD)
    throw unusable(folder, new Error(stderr.trim().split('\n').at(-1) || 'it cannot be locked'));
  return code === HELD;
}
