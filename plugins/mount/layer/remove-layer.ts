import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import { layerPaths } from './paths.ts';

/** Next to the layer's folder: one that is being removed. */
const FORMER = 'former-layer';

/**
 * Removes a write layer of which the remote has everything, and to which nobody writes. Out of its place by
 * one rename, so that half a removal is never read as deletions by users. What a crash leaves is removed by
 * `clearFormerLayer`.
 */
export async function removeLayer(cacheDir: string): Promise<void> {
  await clearFormerLayer(cacheDir);
  await rename(layerPaths(cacheDir).folder, join(cacheDir, FORMER)).catch(undefinedWhenMissing);
  await clearFormerLayer(cacheDir);
}

/** Finishes a removal that was cut off. Call it before each mount. */
export async function clearFormerLayer(cacheDir: string): Promise<void> {
  await rm(join(cacheDir, FORMER), { recursive: true, force: true });
}
