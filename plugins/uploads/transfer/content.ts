/**
 * The content of the one file that is to be sent, whatever its name leads to meanwhile. A file that users rename
 * without its data (`metacopy`) can take the place of the one that a step is about to send; rclone, which opens
 * what it sends by a path, would read as many zeros there. So a step opens the file, makes sure that it is the one
 * that the scan saw with data, which the kernel never takes from it, and has rclone read through that descriptor.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import {
  open,
  readdir,
  readlink,
  realpath,
  rename,
  rm,
  statfs,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { undefinedWhenMissing, withReserve } from 'mountkeeper';
import type { Item } from '../compare/plan-types.ts';
import type { Identity } from '../compare/records.ts';
import { keyOf } from '../compare/scan.ts';
import { Changed } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

const PREFIX = 'sending-';
/** A larger file is read where it is: it is rarely written to twice before it is opened, and its copy takes time. */
const MOST_COPIED_BYTES = 4 * 2 ** 20;
/** With less room than this, in bytes, no copy is made: users need it more. */
const SCARCE_BELOW_BYTES = 64 * 2 ** 20;
/** Neither a link nor a pipe that has taken the place is followed or waited for. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** One file, held open. */
export interface Content {
  /** Absolute path of a link to the descriptor, or of a copy; the daemon's rclone can read by it, too. */
  readonly file: string;
  readonly handle: FileHandle;
}

/**
 * The path ends with the work, before its descriptor does: a call that an rclone takes up late must not read another
 * file that has got the descriptor's number. Rejects with a `Changed` where the item's file is not there any more.
 */
export async function withContent<T>(
  item: Item,
  { layer: { upper, records } }: Pick<StepTools, 'layer'>,
  work: (content: Content) => Promise<T>,
): Promise<T> {
  const handle = await openItem(item, upper);
  const file = join(records, `${PREFIX}${randomBytes(9).toString('hex')}`);
  try {
    await withReserve(records, () => symlink(linkTo(handle), file));
    return await work({ file, handle });
  } finally {
    try {
      await rm(file, { force: true });
    } finally {
      await handle.close();
    }
  }
}

/**
 * Has rclone read a copy of a small file from now on, in the state that is given. A program may write into the file
 * before rclone opens it; where the answer is lost then, what the remote has is neither what was noted nor what the
 * file holds, and would be taken for somebody else's. What cannot be copied is read where it is. Resolves to false
 * where the file could not be read to its end.
 */
export async function freeze(content: Content, local: Identity): Promise<boolean> {
  const { file, handle } = content;
  const copy = `${file}-copy`;
  const { bytes, modifiedNs } = local;
  let isWhole = true;
  try {
    if (!(await isFit(content, local))) throw new Error('it is read where it is');
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
    // A disk that fails in the midst of a file gives what stands before that, and no error.
    isWhole = bytesRead === bytes;
    await writeFile(copy, buffer, { mode: 0o600 });
    const seconds = Number(BigInt(modifiedNs) / 1_000n) / 1_000_000;
    await utimes(copy, seconds, seconds);
  } catch {
    // It is read where it is, also where the path is that of a copy of a former state.
    await rm(copy, { force: true });
    await withReserve(dirname(file), () => symlink(linkTo(handle), copy));
  }
  await rename(copy, file);
  return isWhole;
}

/** `utimes` takes a time before 1970 for now. */
async function isFit({ file }: Content, { bytes, modifiedNs }: Identity): Promise<boolean> {
  if (bytes > MOST_COPIED_BYTES || modifiedNs.startsWith('-')) return false;
  const { bavail, bsize } = await statfs(dirname(file));
  return bavail * bsize >= SCARCE_BELOW_BYTES;
}

function linkTo(handle: FileHandle): string {
  return `/proc/${process.pid}/fd/${handle.fd}`;
}

async function openItem({ path, entry }: Item, upper: string): Promise<FileHandle> {
  if (entry?.kind !== 'file' || entry.hasNoData === true || entry.isUnread === true) throw new Changed();
  const handle = await open(join(upper, path), FLAGS).catch(undefinedWhenReplaced);
  if (handle === undefined) throw new Changed();
  try {
    const stats = await handle.stat({ bigint: true });
    if (!stats.isFile() || keyOf(stats.ino, stats.birthtimeNs) !== entry.key) throw new Changed();
    // Users can put a link in the place of a folder: what is opened then may be any file that root can read, also
    // the one that the scan has seen there.
    const isThere = (await readlink(`/proc/self/fd/${handle.fd}`)) === join(await realpath(upper), path);
    if (!isThere) throw new Changed();
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function undefinedWhenReplaced(error: NodeJS.ErrnoException): undefined {
  return error.code === 'ELOOP' || error.code === 'ENXIO' ? undefined : undefinedWhenMissing(error);
}

/** Removes the links of a daemon that was killed. No step may be running. */
export async function clearLinks(records: string): Promise<void> {
  for (const name of (await readdir(records).catch(undefinedWhenMissing)) ?? [])
    if (name.startsWith(PREFIX)) await rm(join(records, name), { force: true });
}
