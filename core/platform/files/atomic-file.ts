/** Files that another program reads: there is never half of one, not even after a loss of power. */
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder } from './make-folder.ts';

/**
 * Whole or not at all, also after a loss of power: content and name are on the disk when it resolves. Makes the
 * folder where it is missing. Readable by the daemon's user alone. One writer of a file at a time. Rejects with
 * the error of the system; the former content stays then.
 */
export async function writeWhole(file: string, text: string): Promise<void> {
  const beside = `${file}.new`;
  await makeFolder(dirname(file));
  try {
    const handle = await open(beside, 'w', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(beside, file);
    await syncFolder(dirname(file));
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

/** The name itself. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
