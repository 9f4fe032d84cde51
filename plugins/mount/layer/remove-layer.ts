import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import { layerPaths } from './paths.ts';

/** Next to the layer's folder: one that is being removed. */
const FORMER = 'former-layer';

/**
 * Removes a write layer of which the remote has everything. Out of its place by one rename, so that half a
 * removal is never read as deletions by users. What a crash leaves is removed by the next call.
 */
export async function removeLayer(cacheDir: string): Promise<void> {
  const former = join(cacheDir, FORMER);
  await rm(former, { recursive: true, force: true });
  await rename(layerPaths(cacheDir).folder, former).catch(undefinedWhenMissing);
  await rm(former, { recursive: true, force: true });
}
