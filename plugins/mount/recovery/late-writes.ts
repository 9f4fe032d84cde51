import { holdsLayer } from '../layer/layering.ts';
import { layerPaths } from '../layer/paths.ts';
import { readBootNote } from './boot-note.ts';
import type { PowerCut } from './power-cut.ts';
import type { MountTools } from '../lifecycle/tools.ts';

/**
 * Call it after a power cut, before the boot is noted: what users wrote too late for it to be on the disk for sure is
 * kept from being sent. Rejects where that cannot be told.
 */
export async function keepLateWrites(
  { cacheDir, log, signal }: Pick<PowerCut, 'cacheDir' | 'log' | 'signal'>,
  { uploader }: Pick<MountTools, 'uploader'>,
): Promise<void> {
  if (!(await holdsLayer(cacheDir))) return;
  const { upper, records } = layerPaths(cacheDir);
  const sinceMs = (await readBootNote(cacheDir))?.onDiskUntilMs ?? 0;
  const files = await uploader().noteLateWrites({ upper, records, sinceMs, signal });
  if (files > 0)
    log.error(
      { files, writtenSince: new Date(sinceMs).toISOString() },
      'files were being written when the power went; they are not sent before somebody has looked at them',
    );
}
