/** The folders of a share in which people are at work: in use, or with changes in the upper folder. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import { foldersInUse } from './open-for-writing.ts';
import type { OpenFilesPlace } from './open-for-writing.ts';

/** Those in use come first, then those nearest to the root. */
const MOST = 500;

/** Paths relative to the share, some of them of files. Rejects when a folder in which they may be cannot be read. */
export async function activeFolders({ mountPoint, upper }: OpenFilesPlace): Promise<readonly string[]> {
  const found = new Set([...foldersInUse(mountPoint)].slice(0, MOST));
  const waiting = [''];
  for (let folder = waiting.shift(); folder !== undefined && found.size < MOST; folder = waiting.shift()) {
    found.add(folder);
    const entries = await readdir(join(upper, folder), { withFileTypes: true }).catch(
      undefinedWhenUnreachable,
    );
    for (const entry of entries ?? []) if (entry.isDirectory()) waiting.push(join(folder, entry.name));
  }
  return [...found];
}

/** Renamed or removed meanwhile; or its path is too long for any call, so that nobody lists it on the NAS either. */
function undefinedWhenUnreachable(error: NodeJS.ErrnoException): undefined {
  return error.code === 'ENAMETOOLONG' ? undefined : undefinedWhenMissing(error);
}
