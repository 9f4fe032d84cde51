/** Reads a file of the upper folder that is to be compared, whatever its users put in its place meanwhile. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { undefinedWhenMissing } from 'mountkeeper';
import { identityOf, isSameFile } from '../compare/records.ts';
import type { Identity } from '../compare/records.ts';

/**
 * A link is not followed: the daemon may read what its users may not. A pipe is not waited for: that would keep one
 * of the few threads that all file calls of the daemon share, for ever.
 */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * What the work makes of the file at the absolute path. Undefined where another one is there, or none: also one that
 * was reached by a link in the place of a folder is told by its identity.
 */
export async function withLocalFile<T>(
  file: string,
  identity: Identity,
  work: (handle: FileHandle) => Promise<T>,
): Promise<T | undefined> {
  const handle = await open(file, FLAGS).catch(undefinedWhenReplaced);
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat({ bigint: true });
    const { ino: inode, size, mtimeNs: modifiedNs, ctimeNs: changedNs } = stats;
    const found = identityOf({ inode, bytes: Number(size), modifiedNs, changedNs });
    return stats.isFile() && isSameFile(identity, found) ? await work(handle) : undefined;
  } finally {
    await handle.close();
  }
}

/** A link gives ELOOP, a socket ENXIO. */
function undefinedWhenReplaced(error: NodeJS.ErrnoException): undefined {
  return error.code === 'ELOOP' || error.code === 'ENXIO' ? undefined : undefinedWhenMissing(error);
}
