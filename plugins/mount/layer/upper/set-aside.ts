/**
 * The aside folder: entries that are being removed from the upper folder stay there for a while, with notes
 * for the daemon that comes after a crash.
 */
import { constants } from 'node:fs';
import { link, lstat, mkdir, open, readFile, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { BigIntStats } from 'node:fs';
import { secondPath, undefinedWhenMissing } from 'mountkeeper';
import type { Logger, Processes } from 'mountkeeper';
import type { LayerPaths } from '../paths.ts';
import { parentOf } from './entry-check.ts';
import { isWrittenTo } from './still-open.ts';

export const NAMES = 'names.json';

/** Note about one entry, for the next daemon. With a time, it had been removed completely. */
export interface Note {
  readonly path: string;
  readonly changedNs?: string;
  /** Of a file that was given up: where it is kept, in place of the aside folder. */
  readonly keptAt?: string;
  /** Of a file whose content is on the remote alone: which one (`versionOf`). Any other has been written to. */
  readonly noData?: string;
}

/** One entry that an interrupted removal left. */
export interface Left {
  readonly path: string;
  readonly aside: string;
  /**
   * Set when the removal was complete: the entry's ctime then. An unchanged ctime means that nobody has
   * touched it since.
   */
  readonly changedNs?: bigint;
  /** It was given up, and is kept where it is. */
  readonly isKept: boolean;
  readonly noData: string | undefined;
  readonly stats: BigIntStats;
}

/** The entries of all removals in the aside folder. */
export async function leftAside({
  aside,
}: Pick<LayerPaths, 'aside'>): Promise<ReadonlyMap<string, readonly Left[]>> {
  const found = new Map<string, readonly Left[]>();
  for (const name of (await readdir(aside).catch(undefinedWhenMissing)) ?? []) {
    const folder = join(aside, name);
    const text = await readFile(join(folder, NAMES), 'utf8').catch(undefinedWhenMissing);
    if (text === undefined) continue;
    const notes = JSON.parse(text) as readonly Note[];
    const left: Left[] = [];
    for (const [index, { path, changedNs = '', keptAt, noData }] of notes.entries()) {
      const place = keptAt ?? join(folder, String(index));
      const stats = await lstat(place, { bigint: true }).catch(undefinedWhenMissing);
      if (!stats) continue;
      const isOut = changedNs !== '' && !isTouchedSince(stats, BigInt(changedNs), keptAt !== undefined);
      left.push({
        path,
        aside: place,
        isKept: keptAt !== undefined,
        noData,
        stats,
        ...(isOut && { changedNs: BigInt(changedNs) }),
      });
    }
    found.set(folder, left);
  }
  return found;
}

/**
 * Restores entries that a former daemon left half-removed, and entries that were changed in the aside
 * folder. The others were removed completely and are deleted, but not while the overlay is mounted
 * (`isLive`), because somebody may still write through a name that the kernel caches. Call it before an
 * uploader scans. Resolves with the number of restored entries.
 */
export async function recoverAside(paths: LayerPaths, log: Logger, { isLive = false } = {}): Promise<number> {
  let count = 0;
  await clearUnnoted(paths);
  for (const [folder, left] of await leftAside(paths)) {
    const isOut = ({ changedNs }: Left): boolean => changedNs !== undefined;
    for (const one of left.filter((each) => !isOut(each))) {
      if (await restoreAside(one, paths, log)) count += 1;
    }
    if (isLive && left.some(isOut)) continue;
    for (const { aside, stats } of left.filter((one) => isOut(one) && !one.isKept))
      await (stats.isDirectory() ? rmdir(aside) : unlink(aside));
    await rm(join(folder, NAMES), { force: true });
    // Something that no note names lies in it: it stays for a person to look at.
    await rmdir(folder).catch(() => undefined);
  }
  return count;
}

/** A full disk, or a kill, came before anything was noted and moved. What holds anything stays. */
async function clearUnnoted({ aside }: Pick<LayerPaths, 'aside'>): Promise<void> {
  for (const name of (await readdir(aside).catch(undefinedWhenMissing)) ?? [])
    // It holds something: that is looked at below, or by a person.
    await rmdir(join(aside, name)).catch(() => undefined);
}

/**
 * The same while no overlay is mounted. A program may still write to a file through a mount that was taken
 * off its path: then nothing is deleted.
 */
export async function recoverUnmounted(
  paths: LayerPaths,
  { log, processes }: { readonly log: Logger; readonly processes: Pick<Processes, 'run'> },
): Promise<number> {
  if ((await leftAside(paths)).size === 0) return 0;
  return recoverAside(paths, log, {
    isLive: await isWrittenTo([paths.aside], processes),
  });
}

/**
 * Whether the entry was changed. All whiteouts are hard links of one file: their ctime changes with each
 * one that is added or removed, and nothing can be written to them.
 */
export function isTouchedSince(now: BigIntStats, changedNs: bigint, isKept = false): boolean {
  return !now.isCharacterDevice() && changeOf(now, isKept) !== changedNs;
}

/** Of what is kept, the content alone counts: a person may give it another owner, and it must not come back. */
export function changeOf({ ctimeNs, mtimeNs }: BigIntStats, isKept: boolean): bigint {
  return isKept ? mtimeNs : ctimeNs;
}

/** Which file it is, and which content it has. Making another name of it changes neither. */
export function versionOf(inode: bigint, bytes: bigint, modifiedNs: bigint): string {
  return `${inode} ${bytes} ${modifiedNs}`;
}

/**
 * Moves it back to the upper folder. When something new has its name by then, both are kept; but of a file without
 * data only its name is new there: under another one it would claim the content of the remote's file, and the
 * uploader would move that away from the name that people know. Without its folder it comes back to the share's root.
 */
export async function restoreAside(
  { aside, path, noData }: Pick<Left, 'aside' | 'path' | 'noData'>,
  { upper }: LayerPaths,
  log: Logger,
): Promise<boolean> {
  const stats = await lstat(aside, { bigint: true }).catch(undefinedWhenMissing);
  if (!stats) return false;
  const hasData = stats.isFile() && noData !== versionOf(stats.ino, stats.size, stats.mtimeNs);
  const folder = await openFolder(upper, parentOf(path));
  try {
    if (stats.isDirectory()) {
      // An empty folder, so nothing is lost when its name, or the folder that it was in, is gone by now.
      await (folder ? rename(aside, folder.at(basename(path))) : rmdir(aside)).catch(() => rmdir(aside));
      return true;
    }
    if (!(folder && (await isBack(aside, folder.at(basename(path)), stats))) && hasData) {
      const recovered = await putBeside(path, { aside, stats, upper }, folder);
      log.warn({ path, recovered }, 'two versions of a file were found, both are kept');
    }
    await unlink(aside);
    return true;
  } finally {
    await folder?.handle.close();
  }
}

/** In the share's root without its folder. Resolves with its name. */
async function putBeside(
  path: string,
  { aside, stats, upper }: Pick<Left, 'aside' | 'stats'> & Pick<LayerPaths, 'upper'>,
  folder: OpenFolder | undefined,
): Promise<string> {
  for (let again = 0; ; again += 1) {
    const name = recoveredName(path, stats, again);
    if (await isBack(aside, folder?.at(name) ?? join(upper, name), stats)) return name;
  }
}

/** False where something else has the name. */
async function isBack(aside: string, place: string, { ino }: BigIntStats): Promise<boolean> {
  try {
    await link(aside, place);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // A crash came between the two steps of coming back.
    return (await lstat(place, { bigint: true }).catch(undefinedWhenMissing))?.ino === ino;
  }
}

function recoveredName(path: string, { mtimeMs }: BigIntStats, again: number): string {
  const at = new Date(Number(mtimeMs)).toISOString().slice(0, 16).replace('T', ' ').replace(':', '-');
  return secondPath(basename(path), `recovered ${at}`, again);
}

interface OpenFolder {
  readonly handle: FileHandle;
  /** A path that leads into this very folder, whatever takes its place. */
  readonly at: (name: string) => string;
}

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Something else has the name, or a name above it. */
const IN_THE_WAY: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

/**
 * Made where it is missing. Undefined where something else is in the way. Entered step by step, since a user may have
 * put a symlink in the place of a folder, which would lead out of the share.
 */
async function openFolder(upper: string, folder: string): Promise<OpenFolder | undefined> {
  let handle = await open(upper, constants.O_RDONLY | constants.O_DIRECTORY);
  for (const name of folder === '' ? [] : folder.split('/')) {
    const above = handle;
    let next: FileHandle | undefined;
    try {
      next = await openOrMake(join(`/proc/self/fd/${above.fd}`, name));
    } finally {
      await above.close();
    }
    if (!next) return undefined;
    handle = next;
  }
  return { handle, at: (name) => join(`/proc/self/fd/${handle.fd}`, name) };
}

async function openOrMake(place: string): Promise<FileHandle | undefined> {
  // What it could not make is found by opening it.
  await mkdir(place).catch(() => undefined);
  return open(place, FOLDER).catch((error: NodeJS.ErrnoException) => {
    if (IN_THE_WAY.has(error.code)) return undefined;
    throw error;
  });
}
