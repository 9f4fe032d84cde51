/** Reads small text files that a person or a line of another file names. */
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

export interface SmallFile {
  readonly path: string;
  /** As messages name it. */
  readonly what: string;
  /** Default 65,536. */
  readonly mostBytes?: number;
  /** Why it must not be read; undefined when it may. */
  readonly problem?: (stats: Stats) => string | undefined;
}

/** Rejects with a sentence; never waits for a named pipe, never reads a device. */
export function readSmallFile(file: SmallFile): Promise<string> {
  return withSmallFile(file, (handle) => handle.readFile('utf8'));
}

/** `use` gets the file that was judged, whatever its path leads to meanwhile. */
export async function withSmallFile<T>(
  { path, what, mostBytes = 65_536, problem }: SmallFile,
  use: (handle: FileHandle) => Promise<T>,
): Promise<T> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw unreadable(what, error);
  });
  try {
    const stats = await handle.stat();
    const wrong = stats.isFile() ? problem?.(stats) : 'it is not a plain file';
    if (wrong !== undefined) throw unreadable(what, new Error(wrong));
    if (stats.size > mostBytes) throw unreadable(what, new Error(`it is larger than ${mostBytes} bytes`));
    return await use(handle);
  } finally {
    await handle.close();
  }
}

function unreadable(what: string, error: unknown): Error {
  return new Error(`${what} cannot be read: ${reasonOf(error)}`, { cause: error });
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied';
  return message;
}
