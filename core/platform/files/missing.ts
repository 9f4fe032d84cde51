import { lstatSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';

/**
 * Of what is at the path, a symlink included. Node's own `throwIfNoEntry` throws where a file is in a folder's place.
 */
export function lstatIfThere(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch (error) {
    return undefinedWhenMissing(error as NodeJS.ErrnoException);
  }
}

/**
 * For `.catch()` when reading a file: undefined when there is no file at the path, or a file where a folder
 * was expected. Throws any other error again: an unreadable file is not a missing one.
 */
export function undefinedWhenMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
  throw error;
}
