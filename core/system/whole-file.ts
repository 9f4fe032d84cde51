/** Files that another program reads: there is never half of one, not even after a loss of power. */
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder } from './make-folder.ts';

/** Whole or not at all, and on the disk before the name points to it. Readable by the daemon's user alone. One writer at a time. */
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
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}
