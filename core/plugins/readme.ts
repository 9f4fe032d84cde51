/** The README of a plugin, as its author wrote it: on or off, since nothing of it is run. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import type { FoundPlugin } from './discovery/found.ts';
import { packageDir } from './discovery/stage.ts';

const MOST_BYTES = 262_144;

/** Undefined where there is none that can be read. What is too long ends in the middle. */
export async function readmeOf(found: FoundPlugin | undefined): Promise<string | undefined> {
  if (!found) return undefined;
  const folder = found.thirdParty ? found.folder : path.join(packageDir, 'plugins', found.name);
  try {
    return await plainText(path.join(folder, 'README.md'));
  } catch {
    // There is none, or it is none that may be shown.
    return undefined;
  }
}

/**
 * Of a plain file alone: a link in a stranger's folder could lead to any file that the daemon may read, and the
 * opening of a pipe would wait for ever.
 */
async function plainText(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.nlink > 1) throw new Error('not a plain file');
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(stats.size, MOST_BYTES)), {
      position: 0,
    });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}
