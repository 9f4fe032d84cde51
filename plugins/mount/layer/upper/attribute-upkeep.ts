/**
 * Marks of folders in the upper layer of a mounted overlay: where what lies below them is, and whether it
 * shows.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { Clock, LeavingEntry, Logger, Processes, RemoteEntry } from 'mountkeeper';
import { findMany } from './find-many.ts';
import { foldersInUse } from './open-for-writing.ts';
import type { Outdated } from '../../rclone/remote-files.ts';
import type { LayerPaths } from '../paths.ts';
import { inSeconds, isUnchanged, parentOf, placesOf } from './entry-check.ts';

export interface AttributeUpkeepOptions {
  readonly paths: LayerPaths;
  readonly mountPoint: string;
  /** What the lower layer has in folders of these names, read anew, whatever the upper one makes of it. */
  readonly listLower: (
    folders: readonly string[],
  ) => Promise<ReadonlyMap<string, readonly RemoteEntry[] | undefined>>;
  /**
   * The lower layer reads these folders anew when they are next asked for. `change`: done right before; it
   * tells which.
   */
  readonly forget: (folders: readonly string[], change?: () => Promise<Outdated>) => Promise<void>;
  readonly dropNames: () => Promise<void>;
  readonly processes: Pick<Processes, 'run'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether rclone has content of a file of that size in its own cache, or may have. */
  readonly isCached: (path: string, bytes: number) => boolean;
}

const MARK_TIMEOUT_MS = 10_000;
const LOOK_TIMEOUT_MS = 20_000;
const MARKS_AT_ONCE = 50;
/** Entries in one child. */
const MOST_AT_ONCE = 100;
/**
 * For each folder or file without data: what it is open as, its time of change (a rename by its user changes
 * that), the new mark. One that has no such mark is no failure. Prints a letter for each.
 */
const ON_EACH = (change: string): string => `
while [ $# -gt 0 ]; do
  if [ "$(stat -L -c %.9Z -- "$1")" = "$2" ] && ${change}; then printf y; else printf n; fi
  shift 3
done`;
const BARE = ON_EACH('{ setfattr -x trusted.overlay.opaque -- "$1" 2>/dev/null; true; }');
const REWRITE = ON_EACH('setfattr -n trusted.overlay.redirect -v "$3" -- "$1"');

export class AttributeUpkeep {
  readonly #options: AttributeUpkeepOptions;

  constructor(options: AttributeUpkeepOptions) {
    this.#options = options;
  }

  /**
   * The marks of folders (and of files without data) that the remote has moved are written anew. They are
   * never removed: overlayfs keeps the former one in memory, and a folder without any would lose what lies
   * below it at its user's next rename. Between the mark and the listings there must be no time: a folder
   * whose mark leads nowhere shows empty, and its user may remove it.
   */
  async rewrite(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    if (entries.length === 0) return [];
    const done: LeavingEntry[] = [];
    for (let start = 0; start < entries.length; start += MARKS_AT_ONCE) {
      done.push(...(await this.#rewriteSome(entries.slice(start, start + MARKS_AT_ONCE))));
    }
    return this.#shown(done);
  }

  /** Few at once: until their listings are read anew, they show nothing of below. */
  async #rewriteSome(entries: readonly LeavingEntry[]): Promise<readonly LeavingEntry[]> {
    const { dropNames, forget } = this.#options;
    let done: readonly LeavingEntry[] = [];
    await forget(placesOf(entries), async () => {
      done = await this.#onEntries(entries, REWRITE, ({ nowAt = '' }) => `/${nowAt}`);
      // Of one that its user has just renamed, the former mark is to lead to something until the next try.
      return { folders: placesOf(done), trees: treesOf(done) };
    });
    await dropNames();
    return done;
  }

  /** The marks alone: nobody sees what lies below just now. */
  async rewriteUnseen(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    const done = await this.#onEntries(entries, REWRITE, ({ nowAt = '' }) => `/${nowAt}`);
    return done.map(({ path }) => path);
  }

  /** Paths of those that the overlay sees by now; of a folder with what is in it. */
  async #shown(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    const { mountPoint, processes } = this.#options;
    const { found } = await findMany(
      entries.map(({ path }) => join(mountPoint, path)),
      { processes, isInside: true, timeoutMs: LOOK_TIMEOUT_MS },
    );
    return entries
      .filter(
        ({ kind, path }) => found.get(join(mountPoint, path))?.self.type === (kind === 'folder' ? 'd' : 'f'),
      )
      .map(({ path }) => path);
  }

  /** Folders that users made hide nothing any more; what is in them is taken out another time. */
  async bare(folders: readonly LeavingEntry[]): Promise<readonly string[]> {
    if (folders.length === 0) return [];
    const { dropNames, listLower, mountPoint, paths } = this.#options;
    const used = foldersInUse(mountPoint);
    const free = folders
      .filter((entry) => !used.has(entry.path) && isUnchanged(entry, paths.upper))
      .sort((a, b) => a.path.length - b.path.length);
    if (free.length === 0) return [];
    const listings = await listLower([...new Set(free.flatMap(({ path }) => [parentOf(path), path]))]);
    const isBelow = ({ path }: LeavingEntry): boolean =>
      listings.get(parentOf(path))?.find(({ name }) => name === posix.basename(path))?.kind === 'folder';
    const hiding = await Promise.all(
      free.map(
        async (entry) => isBelow(entry) && this.#hidesNothing(entry.path, listings.get(entry.path) ?? []),
      ),
    );
    const done = await this.#onEntries(
      free.filter((_, index) => hiding[index]),
      BARE,
      () => '',
    );
    if (done.length > 0) await dropNames();
    return done.map(({ path }) => path);
  }

  /** All that lies below in the folder of this name lies in the upper folder, too. */
  async #hidesNothing(folder: string, below: readonly RemoteEntry[]): Promise<boolean> {
    const here = new Set(await readdir(join(this.#options.paths.upper, folder)));
    return below.every(({ name }) => here.has(name));
  }

  /**
   * These very entries, wherever their users move them meanwhile. Resolves with those that were as they had
   * been looked at.
   */
  async #onEntries(
    entries: readonly LeavingEntry[],
    script: string,
    valueOf: (entry: LeavingEntry) => string,
  ): Promise<readonly LeavingEntry[]> {
    const done: LeavingEntry[] = [];
    for (let start = 0; start < entries.length; start += MOST_AT_ONCE) {
      done.push(...(await this.#onSome(entries.slice(start, start + MOST_AT_ONCE), script, valueOf)));
    }
    return done;
  }

  async #onSome(
    entries: readonly LeavingEntry[],
    script: string,
    valueOf: (entry: LeavingEntry) => string,
  ): Promise<readonly LeavingEntry[]> {
    const handles = new Map<LeavingEntry, number>();
    try {
      for (const entry of entries) {
        const handle = this.#open(entry);
        if (handle !== undefined) handles.set(entry, handle);
      }
      const args = [...handles].flatMap(([entry, handle]) => [
        `/proc/${process.pid}/fd/${handle}`,
        inSeconds(entry.changedNs),
        valueOf(entry),
      ]);
      const { stdout } = await this.#options.processes.run({
        command: 'sh',
        args: ['-c', script, 'sh', ...args],
        env: { LC_ALL: 'C' },
        timeoutMs: MARK_TIMEOUT_MS,
      });
      return [...handles.keys()].filter((_, index) => stdout[index] === 'y');
    } finally {
      for (const handle of handles.values()) closeSync(handle);
    }
  }

  /** Undefined when it is not what was looked at any more. */
  #open(entry: LeavingEntry): number | undefined {
    if (!isUnchanged(entry, this.#options.paths.upper)) return undefined;
    const handle = openSync(
      join(this.#options.paths.upper, entry.path),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    const stats = fstatSync(handle, { bigint: true });
    if (stats.ino === entry.inode && stats.ctimeNs === entry.changedNs) return handle;
    closeSync(handle);
    return undefined;
  }
}

/** rclone keeps what it knows of a folder when another one has taken its place in the meantime. */
function treesOf(entries: readonly LeavingEntry[]): readonly string[] {
  const folders = entries.filter(({ kind }) => kind === 'folder');
  return [
    ...new Set(
      folders.flatMap(({ movedFrom, nowAt }) => [movedFrom, nowAt].filter((path) => path !== undefined)),
    ),
  ];
}
