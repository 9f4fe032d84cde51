/**
 * Rewrites overlayfs attributes ("marks") of folders in the upper layer of a mounted overlay: where their
 * lower folder is, and whether it is visible.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { join, posix } from 'node:path';
import { lstatIfThere } from 'mountkeeper';
import type { Clock, LeavingEntry, Logger, Processes, RemoteEntry } from 'mountkeeper';
import { foldersInUse } from './open-for-writing.ts';
import type { Outdated } from '../../rclone/remote-files.ts';
import type { LayerPaths } from '../paths.ts';
import { areUnchanged, haveSameNames, inSeconds, parentOf, placesOf } from './entry-check.ts';
import { waitingCalls } from './waiting-calls.ts';
import type { WaitingCallsOptions } from './waiting-calls.ts';

export interface AttributeUpkeepOptions extends WaitingCallsOptions {
  readonly paths: LayerPaths;
  readonly mountPoint: string;
  /** Lists these folders of the lower layer, freshly read, regardless of the upper layer. */
  readonly listLower: (
    folders: readonly string[],
  ) => Promise<ReadonlyMap<string, readonly RemoteEntry[] | undefined>>;
  /**
   * Makes the lower layer read these folders again when they are next asked for. `change` runs right before
   * and returns which ones.
   */
  readonly forget: (folders: readonly string[], change?: () => Promise<Outdated>) => Promise<void>;
  readonly dropNames: () => Promise<void>;
  /**
   * Users see nothing of what the lower layer has in these folders: what they make there is over nothing. The returned
   * function ends that.
   */
  readonly overNothing: (folders: readonly string[]) => () => void;
  readonly processes: Pick<Processes, 'run'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether rclone has content of a file of that size in its own cache, or may have. */
  readonly isCached: (path: string, bytes: number) => boolean;
}

const MARK_TIMEOUT_MS = 10_000;
/** As many as fit into the time for which calls wait: of a folder that is read anew, all that was moved is marked. */
export const MARKS_AT_ONCE = 500;
/** Most entries per child process. */
const MOST_AT_ONCE = 100;
/**
 * For each folder or file without data, three arguments: the path of its open descriptor, its ctime, the new mark.
 * Prints `+` when it is ready, waits for a line, and prints one letter for each.
 */
const READY = '+';
const ON_EACH = (change: string): string => `
printf ${READY}
read -r go || exit 1
while [ $# -gt 0 ]; do
  if ${change}; then printf y; else printf n; fi
  shift 3
done`;
/** Not what has been renamed, or written in, since it was looked at. A missing mark is not an error. */
const BARE = ON_EACH(
  '[ "$(stat -L -c %.9Z -- "$1")" = "$2" ] && { setfattr -x trusted.overlay.opaque -- "$1" 2>/dev/null; true; }',
);
/** What `BARE` has taken. */
const HIDE = ON_EACH('setfattr -n trusted.overlay.opaque -v y -- "$1"');
/**
 * Whatever users write in it meanwhile: where the remote has it goes by the folder itself, and one that is left out
 * shows empty once the listing of its former place is read anew for others.
 */
const REWRITE = ON_EACH('setfattr -n trusted.overlay.redirect -v "$3" -- "$1"');

export class AttributeUpkeep {
  readonly #options: AttributeUpkeepOptions;

  constructor(options: AttributeUpkeepOptions) {
    this.#options = options;
  }

  /**
   * Rewrites the marks of folders (and of files without data) that have moved on the remote. Marks are
   * never removed: overlayfs caches the former one, and a folder without a mark would lose its lower
   * content at the next rename. Mark and listings must change together: a folder whose mark leads nowhere
   * looks empty, and a user might delete it. Resolves with those that are marked; whether users see them is
   * told by `showAnew`.
   */
  async rewrite(entries: readonly LeavingEntry[]): Promise<readonly LeavingEntry[]> {
    const done: LeavingEntry[] = [];
    for (let start = 0; start < entries.length; start += MARKS_AT_ONCE) {
      done.push(...(await this.#rewriteSome(entries.slice(start, start + MARKS_AT_ONCE))));
    }
    return done;
  }

  /** Until their listings are refreshed, these folders hide their lower content: calls wait meanwhile. */
  async #rewriteSome(entries: readonly LeavingEntry[]): Promise<readonly LeavingEntry[]> {
    const { dropNames, forget } = this.#options;
    let done: readonly LeavingEntry[] = [];
    const hold = waitingCalls(this.#options);
    try {
      await forget(placesOf(entries), async () => {
        const { marked, outdated } = await this.mark(entries, hold.begin);
        done = marked;
        return outdated;
      });
      await dropNames();
    } finally {
      hold.release();
    }
    // Who has waited ends now, and has come by names that lead to the former places.
    await dropNames();
    return done;
  }

  /**
   * Only the marks: until the listing is read anew, and the kernel looks at them, what is marked shows nothing. `begin`
   * is called right before, once or more, as late as can be: a call that has read the former mark, and waits, finds
   * nothing there. Resolves with those that are marked, whatever becomes of the others, and what is to be read anew;
   * rejects when none could be.
   */
  async mark(
    entries: readonly LeavingEntry[],
    begin: () => Promise<void>,
  ): Promise<{ readonly marked: readonly LeavingEntry[]; readonly outdated: Outdated }> {
    const marked: LeavingEntry[] = [];
    const portion = (some: readonly LeavingEntry[]): Promise<readonly LeavingEntry[]> =>
      this.#onSome(some, REWRITE, pathOf, begin);
    try {
      // What is left out shows nothing once the listing is read anew for the others: so each is tried twice.
      for (const some of inPortions(entries))
        marked.push(...(await portion(some).catch(async () => portion(some))));
    } catch (error) {
      if (marked.length === 0) throw error;
      this.#options.log.warn({ err: error }, 'marks of renamed entries not written; tried again');
    }
    // If a user has just renamed one, its former mark must lead to something until the next attempt.
    return { marked, outdated: { folders: placesOf(marked), trees: treesOf(marked) } };
  }

  /** Only the marks, while no overlay is mounted. */
  async rewriteUnseen(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    const done = await this.#onEntries(entries, REWRITE, pathOf);
    return done.map(({ path }) => path);
  }

  /**
   * Makes folders that users created show their lower content again; their entries are removed another
   * time. Resolves with those that show it.
   */
  async bare(folders: readonly LeavingEntry[]): Promise<readonly string[]> {
    if (folders.length === 0) return [];
    const { mountPoint, overNothing, paths } = this.#options;
    const used = foldersInUse(mountPoint);
    const free = folders
      .filter((entry) => !used.has(entry.path) && areUnchanged(entry, paths.upper))
      .sort((a, b) => a.path.length - b.path.length);
    if (free.length === 0) return [];
    const end = overNothing(
      free.flatMap(({ path, shownWith = [] }) => [path, ...shownWith.map((one) => one.path)]),
    );
    try {
      return await this.#bareFree(free);
    } finally {
      end();
    }
  }

  /**
   * What the lower folder has by names that are not here is others': what users have deleted, the remote has not, or a
   * deletion waits, and nobody asks for the folder.
   */
  async #bareFree(free: readonly LeavingEntry[]): Promise<readonly string[]> {
    const { dropNames, listLower } = this.#options;
    // Its own listing as well: one from before may have what users have deleted since.
    const listings = await listLower([...new Set(free.flatMap(({ path }) => [parentOf(path), path]))]);
    const isBelow = ({ path }: LeavingEntry): boolean =>
      listings.get(parentOf(path))?.find(({ name }) => name === posix.basename(path))?.kind === 'folder';
    const done = await this.#onEntries(free.filter(isBelow), BARE, () => '');
    if (done.length === 0) return [];
    // Twice: who looks at a folder in the very moment of the first keeps it from being dropped.
    await dropNames();
    await dropNames();
    return this.#shown(done);
  }

  /**
   * What somebody has opened meanwhile goes on hiding its lower content, from all users, for as long as it is open:
   * what others put there would count as seen. It gets its mark back, and is tried again as one that hides. So does one
   * in which something has changed: what users deleted before the names were dropped left no whiteout.
   */
  async #shown(bared: readonly LeavingEntry[]): Promise<readonly string[]> {
    const { dropNames, log, mountPoint, paths } = this.#options;
    const used = foldersInUse(mountPoint);
    const isSeen = (entry: LeavingEntry): boolean =>
      !used.has(entry.path) && haveSameNames(entry, paths.upper);
    const seen = bared.filter(isSeen);
    const hiding = bared.filter((entry) => !seen.includes(entry));
    if (hiding.length > 0) {
      await this.#onEntries(hiding, HIDE, () => '').catch((error: unknown) =>
        log.warn({ err: error }, 'marks of folders in use not written again'),
      );
      await dropNames();
    }
    return seen.map(({ path }) => path);
  }

  /**
   * Runs a command on exactly these entries, even if users move them meanwhile. Resolves with those on which it has
   * done what it should.
   */
  async #onEntries(
    entries: readonly LeavingEntry[],
    script: string,
    valueOf: (entry: LeavingEntry) => string,
  ): Promise<readonly LeavingEntry[]> {
    const done: LeavingEntry[] = [];
    for (const some of inPortions(entries)) done.push(...(await this.#onSome(some, script, valueOf)));
    return done;
  }

  /** At most `MOST_AT_ONCE`; `begin` is called right before. */
  async #onSome(
    entries: readonly LeavingEntry[],
    script: string,
    valueOf: (entry: LeavingEntry) => string,
    begin: () => Promise<void> = async () => undefined,
  ): Promise<readonly LeavingEntry[]> {
    const handles = new Map<LeavingEntry, number>();
    try {
      for (const entry of entries) {
        const handle = this.#open(entry, script === BARE);
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
        input: async () => {
          await begin();
          return '\n';
        },
        timeoutMs: MARK_TIMEOUT_MS,
      });
      return [...handles.keys()].filter((_, index) => stdout[READY.length + index] === 'y');
    } finally {
      for (const handle of handles.values()) closeSync(handle);
    }
  }

  /** Undefined when the entry that was scanned is no longer at its path, or has changed where it must not. */
  #open(entry: LeavingEntry, isWhole: boolean): number | undefined {
    const path = join(this.#options.paths.upper, entry.path);
    if (isWhole && !areUnchanged(entry, this.#options.paths.upper)) return undefined;
    // A pipe or a link may be in its place by now.
    if (lstatIfThere(path)?.ino !== entry.inode) return undefined;
    const handle = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = fstatSync(handle, { bigint: true });
    if (stats.ino === entry.inode && (!isWhole || stats.ctimeNs === entry.changedNs)) return handle;
    closeSync(handle);
    return undefined;
  }
}

function inPortions(entries: readonly LeavingEntry[]): readonly (readonly LeavingEntry[])[] {
  const starts = Array.from(
    { length: Math.ceil(entries.length / MOST_AT_ONCE) },
    (_, index) => index * MOST_AT_ONCE,
  );
  return starts.map((start) => entries.slice(start, start + MOST_AT_ONCE));
}

/** A mark's value: where the remote has it. */
function pathOf({ nowAt = '' }: LeavingEntry): string {
  return `/${nowAt}`;
}

/** Needed because rclone keeps the listing of a folder even when another folder has taken its path. */
function treesOf(entries: readonly LeavingEntry[]): readonly string[] {
  const folders = entries.filter(({ kind }) => kind === 'folder');
  return [
    ...new Set(
      folders.flatMap(({ movedFrom, nowAt }) => [movedFrom, nowAt].filter((path) => path !== undefined)),
    ),
  ];
}
