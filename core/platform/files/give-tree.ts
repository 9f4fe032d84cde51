/**
 * Gives a folder with all in it to a user, though another one may write there meanwhile: each thing is opened below its
 * open folder and given by its descriptor, so that no link leads to anything else of the machine.
 */
import { constants, lstat, open, readdir } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { ServiceUser } from '../../contract/platform.ts';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
const FILE = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
const MOST_DEPTH = 64;
const MOST_ENTRIES = 100_000;
/** It is a link or a socket by now, has another kind, or is gone. */
const ANOTHER = new Set(['ELOOP', 'ENXIO', 'ENOTDIR', 'ENOENT']);

interface Walk {
  readonly folder: string;
  readonly owner: ServiceUser;
  entries: number;
}

/**
 * Modes stay as they are. Links, sockets and files with a second name stay whose they are. Rejects where there is no
 * such folder, where there is more in it than the daemon looks at, and as `chown` does.
 */
export async function giveTree(folder: string, owner: ServiceUser): Promise<void> {
  await opened(folder, FOLDER, (handle) => giveFolder(handle, { folder, owner, entries: 0 }, 0));
}

/** The folder itself comes last: where it is given, all in it is. */
async function giveFolder(handle: FileHandle, walk: Walk, depth: number): Promise<void> {
  const through = `/proc/self/fd/${String(handle.fd)}`;
  for (const name of await readdir(through)) {
    walk.entries += 1;
    if (walk.entries > MOST_ENTRIES || depth > MOST_DEPTH)
      throw new Error(
        `${walk.folder} holds more than ${MOST_ENTRIES} files, or folders deeper than ${MOST_DEPTH}, ` +
          'which is more than the daemon gives to another user; take some away',
      );
    await giveEntry(`${through}/${name}`, walk, depth).catch((error: NodeJS.ErrnoException) => {
      if (!ANOTHER.has(error.code ?? '')) throw error;
    });
  }
  const { uid, gid } = walk.owner;
  if ((await handle.stat()).uid !== uid) await handle.chown(uid, gid);
}

async function giveEntry(file: string, walk: Walk, depth: number): Promise<void> {
  const { uid, gid } = walk.owner;
  const seen = await lstat(file);
  if (seen.isDirectory()) return opened(file, FOLDER, (handle) => giveFolder(handle, walk, depth + 1));
  if (!seen.isFile() || seen.uid === uid) return;
  await opened(file, FILE, async (handle) => {
    const found = await handle.stat();
    // With a second name it may be any file of the machine.
    if (found.isFile() && found.nlink === 1) await handle.chown(uid, gid);
  });
}

/** A folder below an open one. A link that is put in its place meanwhile is refused (`ELOOP`, `ENOTDIR`). */
export function openedFolder(file: string, work: (handle: FileHandle) => Promise<void>): Promise<void> {
  return opened(file, FOLDER, work);
}

async function opened(
  file: string,
  flags: number,
  work: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await open(file, flags);
  try {
    await work(handle);
  } finally {
    await handle.close();
  }
}
