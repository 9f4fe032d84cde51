/**
 * A share writes in one of two ways: by the write layer, or by rclone's own write cache. What waits in one
 * would be hidden by the other, or sent over what is newer. So the disk decides: files that wait go up in
 * the way in which they were written, and only then does the share go over to the one that is configured.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import type { Logger, PendingFiles, Processes } from 'mountkeeper';
import { pendingIn } from '../cache/scan.ts';
import type { MountTools } from '../lifecycle/tools.ts';
import { holdsLayer, pendingInLayer } from './layering.ts';
import { isWrittenTo } from './upper/still-open.ts';
import { layerPaths } from './paths.ts';
import { recoverUnmounted } from './upper/set-aside.ts';

export type WriteWay = 'layer' | 'cache';

export type WayTools = Pick<MountTools, 'config' | 'uploader' | 'processes'>;

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

/**
 * How the share must be mounted now. Call it while nothing of it is mounted. Rejects with a plain sentence
 * when files wait for both ways.
 */
export async function chooseWay(cacheDir: string, log: Logger, tools: WayTools): Promise<WriteWay> {
  const configured = tools.config().mount.write_layer ? 'layer' : 'cache';
  // Also where the upper folder is empty: its only file may be the one that was being taken out.
  await recoverUnmounted(layerPaths(cacheDir), {
    log,
    processes: tools.processes,
  });
  // To count what waits in a large cache takes seconds, and nothing can wait in a layer that is not there.
  if (configured === 'cache' && !(await holdsLayer(cacheDir))) return 'cache';
  const [cached, written] = await Promise.all([pendingIn(cacheDir), pendingInLayer(cacheDir, tools)]);
  if (cached.count > 0 && written.count > 0)
    throw new Error(
      `${cached.count} files wait in rclone's cache in ${cacheDir} and ${written.count} in the write layer in ` +
        `${layerPaths(cacheDir).folder}: neither can be uploaded without hiding the other; ` +
        'move one of the two folders away and start the share again',
    );
  const isKept = cached.count === 0 && (await keepsLayer(cacheDir, written, tools));
  const way = cached.count > 0 ? 'cache' : isKept ? 'layer' : configured;
  if (way !== configured)
    log.warn(
      { files: cached.count + written.count, writeLayer: way === 'layer' },
      'share is mounted as before mount.write_layer was changed, until its files are on the remote',
    );
  return way;
}

/**
 * Whether the layer must stay, whatever is configured: files in it wait, or a program still writes to one. A
 * program keeps a file of a former mount open, and what it writes there would end with the file.
 */
async function keepsLayer(
  cacheDir: string,
  { count }: Pick<PendingFiles, 'count'>,
  { processes }: WayTools,
): Promise<boolean> {
  return count > 0 || (await isLayerWrittenTo(cacheDir, processes));
}

/** Whether programs have files of the layer open for writing. Call it while nothing of it is mounted. */
export function isLayerWrittenTo(cacheDir: string, processes: Pick<Processes, 'run'>): Promise<boolean> {
  const { upper, aside } = layerPaths(cacheDir);
  return isWrittenTo([upper, aside], processes);
}

/** Whether the next mount has a write layer, as far as the disk tells: such a one needs no remote. */
export async function isLayerDue(cacheDir: string, tools: WayTools): Promise<boolean> {
  if (!tools.config().mount.write_layer)
    return keepsLayer(cacheDir, await pendingInLayer(cacheDir, tools), tools);
  return (await isReadOnlyCache(cacheDir)) || (await pendingIn(cacheDir)).count === 0;
}
