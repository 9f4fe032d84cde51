/** The mark of a cache in which only rclone's own reading has ever left something. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import { layerPaths } from '../layer/paths.ts';

/**
 * This file exists from the first start of a read-only rclone on a cache without dirty files. From then on
 * nothing in the cache was written by users, so what is torn in it is thrown away. In the layer's folder,
 * since it goes aside with it, and comes back with it, after rclone's trees.
 */
const READ_ONLY_FILE = 'cache-is-read-only';

/** Whether rclone has only read with this cache. */
export async function isReadOnlyCache(cacheDir: string): Promise<boolean> {
  return (await stat(markOf(cacheDir)).catch(undefinedWhenMissing)) !== undefined;
}

/** Call it before a read-only rclone starts, when nothing in its cache is dirty. */
export async function beginReadOnlyCache(cacheDir: string): Promise<void> {
  await makeFolder(layerPaths(cacheDir).folder);
  if (!(await isReadOnlyCache(cacheDir))) await writeWhole(markOf(cacheDir), '', { isDurable: true });
}

function markOf(cacheDir: string): string {
  return join(layerPaths(cacheDir).folder, READ_ONLY_FILE);
}
