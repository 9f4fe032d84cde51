/** Reads small text files that a person or a line of another file names. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/** Rejects with a sentence that names `what`; never waits for a named pipe, never reads a device. */
export async function readSmallFile(path: string, what: string, mostBytes = 65_536): Promise<string> {
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) throw new Error('it is not a plain file');
      if (stats.size > mostBytes) throw new Error(`it is larger than ${mostBytes} bytes`);
      return await handle.readFile('utf8');
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw new Error(`${what} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied';
  return message;
}
