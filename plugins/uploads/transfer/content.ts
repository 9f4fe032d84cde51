/**
 * The content of the one file that is to be sent, whatever its name leads to meanwhile. A file that users rename
 * without its data (`metacopy`) can take the place of the one that a step is about to send; rclone, which opens
 * what it sends by a path, would read as many zeros there. So a step opens the file, makes sure that it is the one
 * that the scan saw with data, which the kernel never takes from it, and has rclone read through that descriptor.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Batch } from 'mountkeeper';
import { undefinedWhenMissing } from 'mountkeeper';
import { withReserve } from '../compare/reserve.ts';
import type { Item } from '../compare/plan-types.ts';
import { keyOf } from '../compare/scan.ts';
import { Changed } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

const PREFIX = 'sending-';
/** Neither a link nor a pipe that has taken the place is followed or waited for. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** One file, held open. */
export interface Content {
  /** Absolute path of a link to the descriptor; the daemon's rclone can read by it, too. */
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
    await withReserve(records, () => symlink(`/proc/${process.pid}/fd/${handle.fd}`, file));
    return await work({ file, handle });
  } finally {
    try {
      await rm(file, { force: true });
    } finally {
      await handle.close();
    }
  }
}

/** As `withContent`, for files that go together. Those that are not there any more are left out. */
export async function withContents<T>(
  items: readonly Item[],
  { layer: { upper, records } }: Pick<StepTools, 'layer'>,
  work: (contents: ReadonlyMap<Item, Content>, layOut: LayOut) => Promise<T>,
): Promise<T> {
  const room = join(records, `${PREFIX}${randomBytes(9).toString('hex')}`);
  const [folder, list] = [join(room, 'files'), join(room, 'list')];
  const handles = await openAll(items, upper);
  const contents = new Map(
    [...handles].map(([item, handle]) => [item, { handle, file: join(folder, item.place) }] as const),
  );
  try {
    return await work(contents, async (going) => {
      await withReserve(records, () => layOut(going, { folder, list, contents }));
      return { folder, list };
    });
  } finally {
    try {
      await rm(room, { recursive: true, force: true });
    } finally {
      for (const handle of handles.values()) await handle.close();
    }
  }
}

/** Makes the files of these items alone, and the list of them, to be found by the remote. Once. */
export type LayOut = (going: readonly Item[]) => Promise<Batch>;

/** Can be done again where it has failed midway. */
async function layOut(
  going: readonly Item[],
  { folder, list, contents }: Batch & { readonly contents: ReadonlyMap<Item, Content> },
): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const item of going) {
    const { file, handle } = contents.get(item)!;
    await mkdir(dirname(file), { recursive: true });
    await symlink(`/proc/${process.pid}/fd/${handle.fd}`, file);
  }
  await writeFile(list, going.map(({ place }) => `${place}\n`).join(''));
}

/** Without those that are not there any more. */
async function openAll(items: readonly Item[], upper: string): Promise<ReadonlyMap<Item, FileHandle>> {
  const handles = new Map<Item, FileHandle>();
  try {
    for (const item of items) {
      const handle = await openItem(item, upper).catch(undefinedWhenChanged);
      if (handle !== undefined) handles.set(item, handle);
    }
    return handles;
  } catch (error) {
    for (const handle of handles.values()) await handle.close();
    throw error;
  }
}

function undefinedWhenChanged(error: unknown): undefined {
  if (!(error instanceof Changed)) throw error;
  return undefined;
}

async function openItem({ path, entry }: Item, upper: string): Promise<FileHandle> {
  if (entry?.kind !== 'file' || entry.hasNoData === true || entry.isUnread === true) throw new Changed();
  const handle = await open(join(upper, path), FLAGS).catch(undefinedWhenReplaced);
  if (handle === undefined) throw new Changed();
  try {
    const stats = await handle.stat({ bigint: true });
    if (!stats.isFile() || keyOf(stats.ino, stats.birthtimeNs) !== entry.key) throw new Changed();
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
    if (name.startsWith(PREFIX)) await rm(join(records, name), { recursive: true, force: true });
}
