/**
 * For `.catch()` when reading a file: undefined when there is no file at the path, or a file where a folder
 * was expected. Throws any other error again: an unreadable file is not a missing one.
 */
export function undefinedWhenMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
  throw error;
}
