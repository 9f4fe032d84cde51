/** The folders that the proxy works in, and whose they are. */
import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from 'mountkeeper';
import type { ProcessRights, ServiceUser } from 'mountkeeper';
import type { Upload } from '../proxy/writes/journal.ts';
import type { WebdavPaths } from './paths.ts';

/** In the folder of the cache: bodies that overwrite a file, until they are complete. */
export const SPOOL = '~webdav';
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const ROOT: ServiceUser = { uid: 0, gid: 0 };
const FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
/** Longer than the note of any upload, whose headers are bounded. */
const MAX_NOTE_BYTES = 256 * 1_024;
/** Of former caches: each is a descriptor of the proxy's. */
const MOST_FORMER = 16;
const FILE = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

/**
 * Makes them, and gives them to the user that the proxy runs as, or back to the daemon's. What a proxy of another user
 * has left in them is given away with them, be it of a newer or of an older version. To be called while no proxy runs.
 */
export async function giveFolders(
  paths: WebdavPaths,
  spool: string,
  user: ServiceUser | undefined,
): Promise<void> {
  for (const folder of [paths.own, paths.journal, paths.sockets, spool]) await makeFolder(folder);
  if (process.geteuid?.() !== 0) return;
  const owner = user ?? ROOT;
  for (const folder of [paths.own, paths.journal, spool]) await give(folder, owner);
  // Mounts put their sockets there. The proxy looks them up and can neither add nor remove one.
  await opened(paths.sockets, FOLDER, async (handle) => {
    await handle.chown(0, owner.gid);
    await handle.chmod(user ? 0o710 : 0o700);
  });
}

/**
 * What a process that is to write in the folder can be left with: without capabilities even root writes only in what is
 * its own. Makes the folder. Undefined: with all that the daemon has.
 */
export async function rightsIn(
  folder: string,
  rights: ProcessRights | undefined,
): Promise<ProcessRights | undefined> {
  if (!rights || (await canOwn(folder, rights.user ?? ROOT))) return rights;
  return rights.user && (await canOwn(folder, ROOT)) ? { capabilities: rights.capabilities } : undefined;
}

/** Makes the folder, and gives it away. False where its file system has no owners, as exFAT. */
export async function canOwn(folder: string, { uid, gid }: ServiceUser): Promise<boolean> {
  await makeFolder(folder);
  try {
    await opened(folder, FOLDER, (handle) => handle.chown(uid, gid));
    return (await lstat(folder)).uid === uid;
  } catch {
    // Whatever the reason, it stays whose it is.
    return false;
  }
}

async function give(folder: string, owner: ServiceUser): Promise<void> {
  for (const name of await readdir(folder))
    await opened(join(folder, name), FILE, async (handle) => {
      const found = await handle.stat();
      // With a second name it may be any file of the machine.
      if (found.isFile() && found.nlink === 1 && found.uid !== owner.uid)
        await handle.chown(owner.uid, owner.gid);
    }).catch(passOver);
  await opened(folder, FOLDER, (handle) => handle.chown(owner.uid, owner.gid)).catch(leave);
}

/** Links and sockets are not opened, and none of them is an upload. */
function passOver(error: NodeJS.ErrnoException): void {
  if (!['ELOOP', 'ENXIO', 'ENOENT'].includes(error.code ?? '')) leave(error);
}

/** On a disk without owners, or a read-only one, it stays whose it is; `rightsIn` has looked who can write there. */
function leave(error: NodeJS.ErrnoException): void {
  if (!['EPERM', 'EROFS'].includes(error.code ?? '')) throw error;
}

async function noteAt(file: string): Promise<string> {
  return opened(file, FILE, async (handle) => {
    const found = await handle.stat();
    if (!found.isFile() || found.size > MAX_NOTE_BYTES) throw new Error(`${file} is no note`);
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(found.size), position: 0 });
    return buffer.toString('utf8', 0, bytesRead);
  });
}

async function opened<T>(path: string, flags: number, work: (handle: FileHandle) => Promise<T>): Promise<T> {
  const handle = await open(path, flags);
  try {
    return await work(handle);
  } finally {
    await handle.close();
  }
}

/**
 * Where interrupted uploads have their content, if the cache was elsewhere when they came. The proxy has written those
 * notes: it is given no folder but what is its user's own.
 */
export async function formerSpools(
  paths: WebdavPaths,
  spool: string,
  user: ServiceUser | undefined,
): Promise<readonly string[]> {
  const uid = user?.uid ?? process.geteuid?.() ?? 0;
  // What keeps the proxy from its notes is said by the proxy.
  const names = (await readdir(paths.journal).catch(() => [])).filter((name) => name.endsWith('.json'));
  const folders = new Set<string>();
  for (const name of names) {
    const body = await bodyIn(join(paths.journal, name));
    if (body !== undefined) folders.add(dirname(body));
    folders.delete(spool);
    if (folders.size === MOST_FORMER) break;
  }
  const own = await Promise.all(
    [...folders].map(async (folder) => {
      // A folder that is not there cannot be given.
      const found = await lstat(folder).catch(() => undefined);
      return basename(folder) === SPOOL && found?.isDirectory() === true && found.uid === uid ? [folder] : [];
    }),
  );
  return own.flat();
}

/** The proxy may have put anything there: a link to a file without end, a pipe that nobody writes to. */
async function bodyIn(file: string): Promise<string | undefined> {
  try {
    const { body } = JSON.parse(await noteAt(file)) as Partial<Upload>;
    return typeof body === 'string' ? body : undefined;
  } catch {
    // The proxy says what is wrong with its notes.
    return undefined;
  }
}
