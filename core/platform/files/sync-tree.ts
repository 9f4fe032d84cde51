/** A whole folder on the disk, before a name leads to it. */
import { constants, open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { syncFolder } from './atomic-file.ts';

/** At once: the file system writes its journal once for all of them. */
const MOST_AT_ONCE = 16;
const OPEN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Files, folders and links in `folder` are on the disk when it resolves, its own name excepted. Follows no link.
 * Rejects with the error of the system.
 */
export async function syncTree(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ name }) => path.join(folder, name));
  for (let at = 0; at < files.length; at += MOST_AT_ONCE)
    await Promise.all(files.slice(at, at + MOST_AT_ONCE).map(syncFile));
  for (const entry of entries) if (entry.isDirectory()) await syncTree(path.join(folder, entry.name));
  await syncFolder(folder);
}

async function syncFile(file: string): Promise<void> {
  const handle = await open(file, OPEN_FILE);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
