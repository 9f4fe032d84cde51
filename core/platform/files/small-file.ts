/** Reads small files that an administrator names: secrets, certificates, keys. */
import type { Stats } from 'node:fs';
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

const MAX_BYTES = 65_536;

/**
 * The text of a plain file of at most 64 KiB. `what` names it in error messages. `judge` may throw for what the
 * opened file is. Throws a sentence.
 */
export function readSmallFile(path: string, what: string, judge?: (stats: Stats) => void): string {
  let descriptor: number | undefined;
  try {
    // Opening a named pipe without a writer would block for ever.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || stats.size > MAX_BYTES) throw new Error('not a plain file of at most 64 KiB');
    judge?.(stats);
    return readFileSync(descriptor, 'utf8');
  } catch (error) {
    throw new Error(`${what} cannot be read: ${readReason(error)}`, { cause: error });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function readReason(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied';
  return (error as Error).message;
}
