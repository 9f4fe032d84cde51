import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { sizeBytes } from 'mountkeeper';
import type { Config } from 'mountkeeper';
import { eachOf, filesBelow, treesOf } from './cache-meta.ts';

const FILES_AT_ONCE = 16;
/** Also where nothing is free: no limit at all would be worse. */
const LEAST_LIMIT_BYTES = 1_048_576;

/** The room that one share's cache has, in bytes. */
export interface CacheRoom {
  readonly freeBytes: number;
  /** Held by this cache already. */
  readonly ownBytes: number;
  /** How many shares fill the same file system. */
  readonly shares: number;
}

/**
 * The size that keeps `min_free_space` free, for an rclone that cannot watch that by itself; a smaller `max_size` stays. Never
 * "no limit": rclone 1.60 without one waits for ever once the disk is full, even when there is room again.
 */
export function cacheLimitBytes(cache: Pick<Config['cache'], 'max_size' | 'min_free_space'>, room: CacheRoom): number {
  const wantedBytes = sizeBytes(cache.max_size);
  const spareBytes = room.freeBytes - sizeBytes(cache.min_free_space);
  // Below the minimum each share makes all the room that is missing: the others may have nothing to give.
  const fitting = room.ownBytes + (spareBytes > 0 ? spareBytes / Math.max(1, room.shares) : spareBytes);
  const limitBytes = Math.max(LEAST_LIMIT_BYTES, Math.floor(fitting));
  return wantedBytes > 0 ? Math.min(wantedBytes, limitBytes) : limitBytes;
}

/** Of a cache folder that exists. */
export async function cacheRoom(cacheDir: string, shares: number): Promise<CacheRoom> {
  return { freeBytes: await freeBytes(cacheDir), ownBytes: await heldBytes(treesOf(cacheDir).data), shares };
}

/** What a program may still write to the file system that holds the path. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

async function heldBytes(root: string): Promise<number> {
  let held = 0;
  await eachOf(filesBelow(root), FILES_AT_ONCE, async (path) => {
    held += await stat(join(root, path)).then(({ blocks }) => blocks * 512, () => 0);
  });
  return held;
}
