/**
 * Removes from the upper folder what the remote has, too, while users are working. A name that is removed
 * below a mounted overlay stays in the kernel's cache, and writes through it would be lost. So nothing is
 * deleted at once: the entry is moved aside, the kernel drops its names, and only when the entry has been
 * there untouched and unused for a while, it is deleted. Otherwise it is moved back. What a user gave up goes
 * the same way, to a place where it is kept.
 */
import { lstat, readdir, rm, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { lstatSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { makeFolder, renewReserve, undefinedWhenMissing, withReserve, writeWhole } from 'mountkeeper';
import type { LeavingEntry, RemoteEntry } from 'mountkeeper';
import type { Outdated } from '../../rclone/remote-files.ts';
import type { Move, MovedAtNs } from '../overlay.ts';
import { NAMES, changeOf, isTouchedSince, leftAside, restoreAside, versionOf } from './set-aside.ts';
import { AttributeUpkeep, MARKS_AT_ONCE } from './attribute-upkeep.ts';
import type { AttributeUpkeepOptions } from './attribute-upkeep.ts';
import type { Left, Note } from './set-aside.ts';
import { findMany } from './find-many.ts';
import { isInPlace, isShownBelow } from './shown-instead.ts';
import { foldersInUse, openForWriting } from './open-for-writing.ts';
import { isStill, isUnchanged, parentOf, placesOf } from './entry-check.ts';
import { showAnew } from './show-anew.ts';
import { withoutLease } from './still-open.ts';
import type { Lease } from './still-open.ts';
import { waitingCalls } from './waiting-calls.ts';
import type { UpperMarks } from './overlay-attributes.ts';

/** An open() that was running while names were dropped has ended long before this. */
const REST_MS = 60_000;
const LOOK_TIMEOUT_MS = 20_000;
export interface TakeOutOptions extends AttributeUpkeepOptions {
  readonly marks: UpperMarks;
  /**
   * Renames entries and makes the kernel drop its names at once; calls `begin` right before. Resolves with when each
   * was renamed.
   */
  readonly moveAside: (moves: readonly Move[], begin: () => Promise<void>) => Promise<readonly MovedAtNs[]>;
  /** Two times of one file that differ by at most this many milliseconds count as equal. */
  readonly precisionMs: () => number;
}

/** What is to come back. */
type Back = Pick<Left, 'aside' | 'path' | 'noData'>;

/** One entry in the aside folder, or where it is kept. */
interface Taken {
  readonly path: string;
  readonly aside: string;
  /** Of its note, in the aside folder. */
  readonly folder: string;
  readonly entry: LeavingEntry;
  /** Its stats right after it was moved. */
  readonly stats: BigIntStats;
  readonly sinceMs: number;
}

export class TakeOut {
  readonly #options: TakeOutOptions;
  readonly #marks: AttributeUpkeep;
  #resting: Taken[] = [];
  #resuming: Promise<void> | undefined;
  /** What could not be brought back, or may still be on its way aside. */
  readonly #owed = new Set<Back>();
  #count = 0;

  constructor(options: TakeOutOptions) {
    this.#options = options;
    this.#marks = new AttributeUpkeep(options);
  }

  rewriteMarks(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    return this.#marks.rewriteUnseen(entries);
  }

  /** Resolves with the paths that were removed. */
  async take(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    await renewReserve(this.#options.paths.folder);
    await this.#restoreOwed();
    await this.#resumed();
    await this.#endRest();
    const stale = entries.filter(({ nowAt }) => nowAt !== undefined);
    const bared = await this.#marks.bare(
      entries.filter((entry) => entry.kind === 'folder' && entry.nowAt === undefined && entry.isOpaque),
    );
    const fit = await this.#fit(
      entries.filter(({ kind, nowAt }) => kind !== 'folder' && nowAt === undefined),
    );
    // Together, so that one listing is read anew for both; as many as fit into the time for which calls wait.
    const isTogether = fit.length > 0 && stale.length <= MARKS_AT_ONCE;
    const before = isTogether ? [] : await this.#marks.rewrite(stale);
    const { out, marked: beside } =
      fit.length === 0 ? { out: [], marked: [] } : await this.#takeOut(fit, isTogether ? stale : []);
    const marked = [...before, ...beside];
    this.#resting.push(...out);
    // They have left: from here on nothing may fail, or their absence would count as deleted by users.
    const moves = withoutData(out.filter((one) => !isGivenUp(one)).map(({ entry }) => entry));
    const shown = await showAnew([...marked, ...moves.filter(({ kind }) => kind === 'file')], this.#options);
    const seen = marked.map(({ path }) => path).filter((path) => shown.has(path));
    return [...seen, ...bared, ...out.map(({ path }) => path)];
  }

  /** `stale`: whose marks are to lead elsewhere at the same time. */
  async #takeOut(
    fit: readonly LeavingEntry[],
    stale: readonly LeavingEntry[],
  ): Promise<{ readonly out: readonly Taken[]; readonly marked: readonly LeavingEntry[] }> {
    const { clock, paths } = this.#options;
    this.#count += 1;
    const folder = join(paths.aside, `${clock.now()}-${this.#count}`);
    // On a full disk this is what frees space.
    const note = (all: readonly Note[]): Promise<void> =>
      withReserve(paths.folder, () => writeWhole(join(folder, NAMES), JSON.stringify(all)));
    const notes = fit.map((entry) => ({
      path: entry.path,
      ...(entry.discardTo !== undefined && { keptAt: entry.discardTo }),
      ...noDataOf(entry),
    }));
    try {
      await withReserve(paths.folder, () => makeFolder(folder));
      for (const { discardTo } of fit)
        if (discardTo !== undefined) await withReserve(paths.folder, () => makePlace(discardTo));
      await note(notes);
    } catch (error) {
      // Nothing has been moved there.
      await rmdir(folder).catch(() => undefined);
      throw error;
    }
    const { taken, marked } = await this.#outOfSight(fit, folder, stale);
    const out = await this.#settled(taken, (gone) =>
      note(notes.map((one) => ({ ...one, changedNs: noteOf(gone.find(({ path }) => path === one.path)) }))),
    );
    if (out.length === 0 && this.#owed.size === 0) await this.#clear(folder);
    return { out, marked };
  }

  /** Entries that can be removed: unchanged since the scan, unused, and equal in the lower layer. */
  async #fit(entries: readonly LeavingEntry[]): Promise<readonly LeavingEntry[]> {
    if (entries.length === 0) return [];
    const { marks, mountPoint, paths } = this.#options;
    const used = foldersInUse(mountPoint);
    const free = entries.filter((entry) => !used.has(entry.path) && isUnchanged(entry, paths.upper));
    await marks.prepare(free.map(({ path }) => path));
    const home: LeavingEntry[] = [];
    for (const entry of free) if (await this.#isHome(entry)) home.push(entry);
    const asked = home.filter((entry) => !isFitAnyway(entry));
    const listings = await this.#listed([...new Set(asked.map((entry) => parentOf(shownAt(entry))))]);
    const below = (entry: LeavingEntry): RemoteEntry | undefined =>
      listings.get(parentOf(shownAt(entry)))?.get(posix.basename(shownAt(entry)));
    return home.filter((entry) => isFitAnyway(entry) || isShownBelow(entry, below(entry), this.#options));
  }

  /**
   * False in a folder that is opaque or redirected: there the lower version would not be visible. Where nothing is
   * to be visible, an opaque one does no harm.
   */
  async #isHome({ path, hasNoData, discardTo, theirs }: LeavingEntry): Promise<boolean> {
    if (hasNoData === true) return true;
    const lower = await this.#options.marks.lowerPath(path, { isInside: false });
    return lower === path || (lower === undefined && discardTo !== undefined && theirs?.entry === undefined);
  }

  /** Lower entries by folder and name. */
  async #listed(folders: readonly string[]): Promise<ReadonlyMap<string, ReadonlyMap<string, RemoteEntry>>> {
    if (folders.length === 0) return new Map();
    const listings = await this.#options.listLower(folders);
    return new Map(
      [...listings].map(([folder, entries = []]) => [
        folder,
        new Map(entries.map((entry) => [entry.name, entry])),
      ]),
    );
  }

  /**
   * Moves the entries aside, and has rclone read anew what they had hidden. Calls wait for it: in between, a name
   * without data here would show nothing. The kernel drops its names at once, since renaming or deleting one that
   * leads to what was moved fails (ESTALE). When that cannot be done, all are brought back. Marks are written at the
   * same time: of a listing that is read anew, whatever was renamed in it must be shown at its place.
   */
  async #outOfSight(
    fit: readonly LeavingEntry[],
    folder: string,
    stale: readonly LeavingEntry[],
  ): Promise<{ readonly taken: readonly Taken[]; readonly marked: readonly LeavingEntry[] }> {
    const { dropNames, forget } = this.#options;
    const places = fit.map((entry, index) => ({
      entry,
      aside: entry.discardTo ?? join(folder, String(index)),
    }));
    let taken: readonly Taken[] = [];
    let marked: readonly LeavingEntry[] = [];
    let isMoving = false;
    const hold = waitingCalls(this.#options);
    const move = async (): Promise<Outdated> => {
      // First: when none can be written, nothing has changed yet.
      const renewed = await this.#marks.mark(stale, hold.begin);
      marked = renewed.marked;
      isMoving = true;
      // As late as can be: a call that has begun before the move, and waits, is told of the former name's end.
      taken = await this.#moveAside(places, folder, hold.begin);
      const gone = withoutData(taken.map(({ entry }) => entry));
      return { ...renewed.outdated, folders: placesOf([...gone, ...marked]) };
    };
    const hidden = placesOf([...withoutData(fit), ...stale]);
    try {
      await (hidden.length === 0 ? move() : forget(hidden, move));
      if (marked.length > 0) await dropNames();
      return { taken, marked };
    } catch (error) {
      // Also what a helper that was given up may still be moving.
      const back = isMoving ? places.map(({ entry, aside }) => backOf(entry, aside)) : [];
      await this.#restore(back, { isUnsure: true });
      throw error;
    } finally {
      hold.release();
    }
  }

  /**
   * Resolves with those that are aside. Checked before and after the move: if a user has put something else there
   * meanwhile, it is moved back at once. Size and time alone do not tell: who writes in place may set the time back. So
   * the ctime counts until the very rename, and from there on.
   */
  async #moveAside(
    places: readonly { readonly entry: LeavingEntry; readonly aside: string }[],
    folder: string,
    begin: () => Promise<void>,
  ): Promise<readonly Taken[]> {
    const { clock, moveAside, paths } = this.#options;
    const due = places.filter(({ entry }) => isUnchanged(entry, paths.upper));
    if (due.length === 0) return [];
    const moves = due.map(({ entry, aside }) => ({
      path: entry.path,
      to: aside,
      changedNs: entry.kind === 'whiteout' ? undefined : entry.changedNs,
    }));
    const moved = await moveAside(moves, begin);
    const taken: Taken[] = [];
    const others: Back[] = [];
    for (const [index, { entry, aside }] of due.entries()) {
      const movedAtNs = moved[index];
      if (movedAtNs === undefined) continue;
      const stats = lstatSync(aside, { bigint: true });
      const { path } = entry;
      if (isStill(entry, stats) && !isTouchedSince(stats, movedAtNs))
        taken.push({ path, aside, folder, entry, stats, sinceMs: clock.monotonic() });
      // Somebody's new file, or one that was written to.
      else others.push({ aside, path, noData: undefined });
    }
    if (others.length > 0) await this.#restore(others);
    return taken;
  }

  /**
   * Makes the overlay show the lower version. Resolves with what is out, and noted as such. The others are moved
   * back; all of them when that cannot be determined or noted.
   */
  async #settled(
    taken: readonly Taken[],
    note: (out: readonly Taken[]) => Promise<void>,
  ): Promise<readonly Taken[]> {
    const { dropNames } = this.#options;
    try {
      // Who has waited until now has come by names that lead to the former places.
      await dropNames();
      const back = await this.#bringBack(taken, await this.#wanted(taken));
      const out = taken.filter(({ path }) => !back.includes(path));
      await note(out);
      return out;
    } catch (error) {
      await this.#bringBack(taken, new Set(taken.map(({ path }) => path)));
      throw error;
    }
  }

  /** Paths of entries that are in use, were changed since they were moved, or have no visible replacement. */
  async #wanted(taken: readonly Taken[]): Promise<ReadonlySet<string>> {
    const used = foldersInUse(this.#options.mountPoint);
    const held = await this.#held(taken);
    const unshown = await this.#unshown(taken);
    const wanted = new Set<string>();
    for (const one of taken) {
      const isChanged = await isTouched(one);
      if (isChanged || unshown.has(one.path) || held.has(one.path) || used.has(one.path))
        wanted.add(one.path);
    }
    return wanted;
  }

  /** Paths of entries that somebody has open. */
  async #held(taken: readonly Taken[]): Promise<ReadonlySet<string>> {
    const { mountPoint, paths } = this.#options;
    const files = taken.filter(({ entry }) => entry.kind === 'file');
    if (files.length === 0) return new Set();
    const writers = openForWriting({ mountPoint, upper: paths.upper });
    const unleased = await this.#unleased(files, 'write');
    return new Set(files.map(({ path }) => path).filter((path) => unleased.has(path) || writers.has(path)));
  }

  /** Paths of files that are open in any way, or for writing: through any path and namespace, also mapped. */
  async #unleased(files: readonly Taken[], lease: Lease): Promise<ReadonlySet<string>> {
    const asides = files.map(({ aside }) => aside);
    const refused = await withoutLease(asides, lease, this.#options.processes);
    return new Set(files.filter(({ aside }) => refused.has(aside)).map(({ path }) => path));
  }

  /**
   * Paths at which the overlay still shows the entry that was moved aside, because somebody keeps its name
   * in the kernel; and of files whose remote version is not visible, for example in a folder that was
   * somebody's working directory before the file existed.
   */
  async #unshown(taken: readonly Taken[]): Promise<ReadonlySet<string>> {
    const { mountPoint, processes } = this.#options;
    const files = new Map(
      taken.filter(({ entry }) => entry.kind === 'file').map((one) => [join(mountPoint, one.path), one]),
    );
    const { found } = await findMany([...files.keys()], {
      processes,
      isInside: false,
      timeoutMs: LOOK_TIMEOUT_MS,
    });
    return new Set(
      [...files]
        .filter(([name, one]) => !isInPlace(one.entry, one.stats, found.get(name)?.self))
        .map(([, { path }]) => path),
    );
  }

  async #bringBack(taken: readonly Taken[], wanted: ReadonlySet<string>): Promise<readonly string[]> {
    const back = taken.filter(({ path }) => wanted.has(path));
    if (back.length > 0) await this.#restore(back.map(({ aside, entry }) => backOf(entry, aside)));
    return back.map(({ path }) => path);
  }

  /** Each on its own; what does not come back now is tried again at every take-out. */
  async #restore(places: readonly Back[], { isUnsure = false } = {}): Promise<void> {
    const { dropNames, log, paths } = this.#options;
    for (const one of places) this.#owed.add(one);
    for (const one of places) {
      try {
        await restoreAside(one, paths, log);
        if (!isUnsure) this.#owed.delete(one);
      } catch (error) {
        log.error({ path: one.path, err: error }, 'not brought back to the write layer yet; tried again');
      }
    }
    await dropNames();
  }

  async #restoreOwed(): Promise<void> {
    if (this.#owed.size > 0) await this.#restore([...this.#owed]);
  }

  unrestored(): ReadonlySet<string> {
    return new Set([...this.#owed].map(({ path }) => path));
  }

  /** Paths of files that have left, and come back if somebody touches them within their minute. */
  async resting(): Promise<ReadonlySet<string>> {
    await this.#resumed();
    const files = this.#resting.filter(({ entry }) => entry.kind === 'file');
    return new Set(files.map(({ path }) => path));
  }

  /** Once; again where it failed. */
  #resumed(): Promise<void> {
    this.#resuming ??= this.#resume().catch((error: unknown) => {
      this.#resuming = undefined;
      throw error;
    });
    return this.#resuming;
  }

  /** Takes over what a former daemon removed from an overlay that is still mounted. */
  async #resume(): Promise<void> {
    const sinceMs = this.#options.clock.monotonic();
    const found = [...(await leftAside(this.#options.paths))];
    for (const { folder, path, aside, stats, changedNs, isKept, noData } of found.flatMap(([folder, left]) =>
      left.map((one) => ({ folder, ...one })),
    )) {
      if (changedNs === undefined) continue;
      const kind = stats.isFile() ? 'file' : 'whiteout';
      const entry: LeavingEntry = {
        path,
        kind,
        inode: stats.ino,
        bytes: Number(stats.size),
        modifiedNs: stats.mtimeNs,
        changedNs,
        isOpaque: false,
        ...(isKept && { discardTo: aside }),
        ...(noData === versionOf(stats.ino, stats.size, stats.mtimeNs) && { hasNoData: true }),
      };
      this.#resting.push({ path, aside, folder, entry, stats, sinceMs });
    }
  }

  /** Deletes what has waited long enough; moves back what was touched. What is not decided rests on. */
  async #endRest(): Promise<void> {
    const { clock } = this.#options;
    const due = this.#resting.filter(({ sinceMs }) => clock.monotonic() - sinceMs >= REST_MS);
    if (due.length === 0) return;
    const kept = due.filter(isGivenUp);
    const others = due.filter((one) => !isGivenUp(one));
    // A person may read what is kept, and somebody else write the file that has its name now.
    await this.#bringBackTouched(kept, await this.#unleased(kept, 'read'));
    this.#decided(kept);
    await this.#bringBackTouched(others, await this.#held(others));
    for (const one of others.filter((each) => this.#resting.includes(each))) await this.#delete(one);
    for (const folder of new Set(due.map(({ folder: one }) => one))) await this.#clear(folder);
  }

  #decided(some: readonly Taken[]): void {
    this.#resting = this.#resting.filter((one) => !some.includes(one));
  }

  async #bringBackTouched(rested: readonly Taken[], held: ReadonlySet<string>): Promise<void> {
    const touched = new Set<string>();
    for (const one of rested) if (held.has(one.path) || (await isTouched(one))) touched.add(one.path);
    this.#decided(rested.filter(({ path }) => touched.has(path)));
    // From here on they are owed until they are back.
    await this.#bringBack(rested, touched);
  }

  /** One that cannot be deleted rests once more, and keeps no other from its end. */
  async #delete(one: Taken): Promise<void> {
    this.#decided([one]);
    try {
      // Already gone, which is the goal.
      await unlink(one.aside).catch(undefinedWhenMissing);
    } catch (error) {
      this.#options.log.warn({ path: one.path, err: error }, 'not deleted beside the write layer');
      this.#resting.push({ ...one, sinceMs: this.#options.clock.monotonic() });
    }
  }

  /** A folder that stays is looked at again by the next daemon. */
  async #clear(folder: string): Promise<void> {
    try {
      const left = await readdir(folder);
      if (left.every((name) => name === NAMES)) await rm(folder, { recursive: true, force: true });
    } catch (error) {
      this.#options.log.warn({ folder, err: error }, 'notes beside the write layer not removed');
    }
  }
}

/**
 * True for entries without user data, and for whiteouts that hide what others changed: that must become
 * visible again.
 */
function isFitAnyway({ hasNoData, kind, copy }: LeavingEntry): boolean {
  return hasNoData === true || (kind === 'whiteout' && copy !== undefined);
}

function noDataOf({ bytes, hasNoData, inode, modifiedNs }: LeavingEntry): Pick<Note, 'noData'> {
  return hasNoData === true ? { noData: versionOf(inode, BigInt(bytes), modifiedNs) } : {};
}

function backOf(entry: LeavingEntry, aside: string): Back {
  return { aside, path: entry.path, noData: noDataOf(entry).noData };
}

function withoutData(entries: readonly LeavingEntry[]): readonly LeavingEntry[] {
  return entries.filter(({ hasNoData }) => hasNoData === true);
}

function shownAt({ copy, path }: LeavingEntry): string {
  return copy ?? path;
}

function noteOf(out: Taken | undefined): string {
  return out === undefined ? '' : String(changeOf(out.stats, isGivenUp(out)));
}

/** A user gave it up. */
function isGivenUp({ entry }: Taken): boolean {
  return entry.discardTo !== undefined;
}

/** Rejects when nothing can be moved there: no note may name such a place. */
async function makePlace(keptAt: string): Promise<void> {
  await makeFolder(dirname(keptAt));
  if ((await lstat(keptAt).catch(undefinedWhenMissing)) !== undefined)
    throw new Error(`${keptAt} exists already`);
}

async function isTouched(one: Taken): Promise<boolean> {
  const { aside, stats } = one;
  // Counts as touched: then it comes back.
  const now = await lstat(aside, { bigint: true }).catch(() => undefined);
  if (now === undefined || isTouchedSince(now, changeOf(stats, isGivenUp(one)), isGivenUp(one))) return true;
  // Written to within the tick of the kernel's clock in which it was moved: with the same time of change.
  return now.isFile() && (now.size !== stats.size || now.mtimeNs !== stats.mtimeNs);
}
