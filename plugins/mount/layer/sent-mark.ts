/**
 * The mark of a write layer that was unmounted with nothing waiting: the remote has all that lies in its upper folder.
 * The Debian package's purge reads it when the daemon is gone (`config/debian/postrm`), and believes it only of what
 * has not changed since: its time is from before the look.
 */
import { open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder, undefinedWhenMissing } from 'mountkeeper';
import type { Uploader } from 'mountkeeper';
import type { MountTools } from '../lifecycle/tools.ts';
import type { LayerPaths } from './paths.ts';
import { leftAside, recoverUnmounted } from './upper/set-aside.ts';
import { isWrittenTo } from './upper/still-open.ts';

const MARK = 'all-sent';
/** Longer than a tick of any kernel, by which file systems note times. */
const TICK_MS = 20;

/**
 * Call it when the overlay is off its path and the uploader has ended. Without a mark where anything waits, or may
 * still be written through a mount that a program holds. `untilMs`: by the monotonic clock; later there is none
 * either, since the share may be mounted again.
 */
export async function markAllSent(
  paths: LayerPaths,
  { uploader, untilMs }: { readonly uploader: Uploader; readonly untilMs: number },
  tools: Pick<MountTools, 'clock' | 'log' | 'processes'>,
): Promise<void> {
  await recoverUnmounted(paths, tools);
  if ((await readdir(paths.upper)).length === 0) return;
  const mark = markOf(paths);
  const draft = `${mark}.new`;
  await rm(draft, { force: true });
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.sync();
    await tools.clock.sleep(TICK_MS);
    const isAll = await isAllSent(paths, uploader, tools);
    if (isAll && tools.clock.monotonic() < untilMs) await rename(draft, mark);
    await syncFolder(paths.folder);
  } finally {
    await file.close();
    await rm(draft, { force: true });
  }
}

/** It is off the disk, too, when this resolves: call it before users can write. */
export async function dropSentMark(paths: LayerPaths): Promise<void> {
  await rm(markOf(paths), { force: true });
  // A share that was never mounted has none.
  await syncFolder(paths.folder).catch(undefinedWhenMissing);
}

async function isAllSent(
  paths: LayerPaths,
  uploader: Uploader,
  { processes }: Pick<MountTools, 'processes'>,
): Promise<boolean> {
  if ((await leftAside(paths)).size > 0) return false;
  if (await isWrittenTo([paths.upper], processes)) return false;
  return (await uploader.waiting(paths.upper, paths.records)).count === 0;
}

function markOf({ folder }: LayerPaths): string {
  return join(folder, MARK);
}
