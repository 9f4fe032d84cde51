/**
 * Atomic replacement of files that other programs read: they never see half a file, not even after a power
 * cut.
 */
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder } from './make-folder.ts';

/** What a file system says that cannot write out the names of a folder. */
const CANNOT_SYNC = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP']);

export interface WriteWholeOptions {
  /** Where it is written first, in the same folder; default `<file>.new`. What is there is replaced. */
  readonly beside?: string;
  /** False: whole after a crash of this process, not after a loss of power. Default true. */
  readonly isDurable?: boolean;
}

/**
 * Whole or not at all, also after a loss of power: content and name are on the disk when it resolves. Makes the
 * folder where it is missing. Readable by the daemon's user alone. Follows no link that somebody put there.
 * One writer of a file at a time. Rejects with the error of the system; the former content stays then.
 */
export async function writeWhole(
  file: string,
  text: string,
  { beside = `${file}.new`, isDurable = true }: WriteWholeOptions = {},
): Promise<void> {
  await makeFolder(dirname(file));
  await rm(beside, { force: true });
  try {
    const handle = await open(beside, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      if (isDurable) await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(beside, file);
    if (isDurable) await syncFolder(dirname(file));
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

/**
 * The names in it are on the disk when it resolves; where the file system has no such call, as soon as it
 * writes them by itself.
 */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } catch (error) {
    if (!CANNOT_SYNC.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    await handle.close();
  }
}
