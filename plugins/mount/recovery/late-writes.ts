import { asideFolders } from '../cache/identity.ts';
import { holdsLayer } from '../layer/layering.ts';
import { layerPaths } from '../layer/paths.ts';
import { readBootNote } from './boot-note.ts';
import type { PowerCut } from './power-cut.ts';
import type { MountTools } from '../lifecycle/tools.ts';

/**
 * Call it after a power cut, before the boot is noted: what users wrote too late for it to be on the disk for sure is
 * kept from being sent, now or once the share leads back to where it belongs. Rejects where that cannot be told.
 */
export async function keepLateWrites(
  { cacheDir, log, signal }: Pick<PowerCut, 'cacheDir' | 'log' | 'signal'>,
  { uploader }: Pick<MountTools, 'uploader'>,
): Promise<void> {
  // What was set aside may still have been written to, by who had it open.
  const sinceMs = (await readBootNote(cacheDir))?.onDiskUntilMs ?? 0;
  for (const folder of [cacheDir, ...(await asideFolders(cacheDir))]) {
    if (!(await holdsLayer(folder))) continue;
    const { upper, records } = layerPaths(folder);
    const files = await uploader().noteLateWrites({ upper, records, sinceMs, signal });
    if (files > 0)
      log.error(
        { files, folder, writtenSince: new Date(sinceMs).toISOString() },
        'files were being written when the power went; they are not sent before somebody has looked at them',
      );
  }
}
