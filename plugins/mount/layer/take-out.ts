/**
 * Takes out of the upper folder what the remote has, too, while users are at work. A name that is removed below a mounted overlay
 * lives on in the kernel's cache, and what is written through it would be lost with it. So nothing is ever deleted at once:
 * it is moved aside, the kernel drops the names, and only when it has lain there untouched and unused for a while does it go.
 * Else it comes back.
 */
import { lstat, readdir, rm, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { closeSync, constants, fstatSync, lstatSync, openSync, renameSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { makeFolder, writeWhole } from 'mountkeeper';
import type { Clock, Logger, Processes, RemoteEntry, LeavingEntry } from 'mountkeeper';
import { NAMES, isTouchedSince, putBack } from './aside.ts';
import type { Note } from './aside.ts';
import { foldersInUse, openForWriting } from './open-for-writing.ts';
import type { LayerPaths } from './paths.ts';
import type { UpperMarks } from './upper-marks.ts';

/** An open call that was under way while names were dropped has ended long since. */
const REST_MS = 60_000;
const MARK_TIMEOUT_MS = 10_000;
const LOOK_TIMEOUT_MS = 20_000;
const NAMES_AT_ONCE = 500;
/** The folder, and its time of change: a rename by its user changes that. One that has no such mark is no failure. */
const REMOVE_MARKS = `
[ "$(stat -L -c %.9Z -- "$1")" = "$2" ] || exit 3
for mark in redirect opaque; do setfattr -x "trusted.overlay.$mark" -- "$1" 2>/dev/null; done
exit 0`;

export interface TakeOutOptions {
  readonly paths: LayerPaths;
  readonly mountPoint: string;
  readonly marks: UpperMarks;
  /** What the lower layer has in a folder of this name, read anew, whatever the upper one makes of it. */
  readonly listLower: (folder: string) => Promise<readonly RemoteEntry[] | undefined>;
  readonly dropNames: () => Promise<void>;
  readonly processes: Pick<Processes, 'run'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** How far two times of one file may lie apart. */
  readonly precisionMs: () => number;
}

/** One thing that lies aside. */
interface Taken {
  readonly path: string;
  readonly aside: string;
  readonly kind: LeavingEntry['kind'];
  /** As it was when it had just been moved. */
  readonly stats: BigIntStats;
  readonly sinceMs: number;
}

export class TakeOut {
  readonly #options: TakeOutOptions;
  #resting: Taken[] = [];
  #count = 0;

  constructor(options: TakeOutOptions) {
    this.#options = options;
  }

  /** Resolves with the paths that were taken out. */
  async take(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    const { dropNames, paths } = this.#options;
    await this.#endRest();
    const marked = await this.#unmark(entries.filter((entry) => entry.kind === 'folder' && (entry.isOpaque || entry.movedFrom !== undefined)));
    const fit = await this.#fit(entries.filter((entry) => !marked.includes(entry.path)));
    if (fit.length === 0) return marked;
    this.#count += 1;
    const folder = join(paths.aside, `${this.#options.clock.now()}-${this.#count}`);
    await makeFolder(folder);
    const note = (all: readonly Note[]): Promise<void> => writeWhole(join(folder, NAMES), JSON.stringify(all));
    await note(fit.map(({ path }) => ({ path })));
    const taken: Taken[] = [];
    for (const [index, entry] of fit.entries()) {
      const one = this.#moveAside(entry, join(folder, String(index)));
      if (one) taken.push(one);
    }
    await dropNames();
    const back = await this.#bringBack(taken, await this.#wanted(taken));
    const out = taken.filter(({ path }) => !back.includes(path));
    await note(fit.map(({ path }) => ({ path, changedNs: String(out.find((one) => one.path === path)?.stats.ctimeNs ?? '') })));
    this.#resting.push(...out);
    return [...marked, ...out.map(({ path }) => path)];
  }

  /** Those that may go: as they were when they were looked at, used by nobody, and shown by what lies below. */
  async #fit(entries: readonly LeavingEntry[]): Promise<readonly LeavingEntry[]> {
    const { mountPoint, listLower } = this.#options;
    const used = foldersInUse(mountPoint);
    const listings = new Map<string, readonly RemoteEntry[] | undefined>();
    const fit: LeavingEntry[] = [];
    // The innermost first: a folder that holds nothing any more goes next time.
    for (const entry of [...entries].sort((a, b) => b.path.length - a.path.length)) {
      const shown = entry.copy ?? entry.path;
      const parent = parentOf(shown);
      if (used.has(entry.path) || !this.#isUnchanged(entry) || !(await this.#isPlain(entry))) continue;
      if (!listings.has(parent)) listings.set(parent, await listLower(parent));
      if (this.#isShownBelow(entry, listings.get(parent)?.find(({ name }) => name === posix.basename(shown)))) fit.push(entry);
    }
    return fit;
  }

  /** In a folder that hides or borrows what lies below, it would be gone from view; and a folder must be empty. */
  async #isPlain({ kind, path }: LeavingEntry): Promise<boolean> {
    const { marks, paths } = this.#options;
    if ((await marks.lowerPath(path, { isInside: false })) !== path) return false;
    return kind !== 'folder' || (await readdir(join(paths.upper, path))).length === 0;
  }

  #isShownBelow(entry: LeavingEntry, below: RemoteEntry | undefined): boolean {
    const precisionMs = this.#options.precisionMs();
    if (entry.kind === 'whiteout') return below === undefined;
    if (entry.kind === 'folder') return below?.kind === 'folder';
    if (entry.kind !== 'file' || below?.kind !== 'file' || below.version.bytes !== entry.bytes) return false;
    // rclone tells versions in its own cache by size and time: where there are no times, it might show a former content.
    if (!Number.isFinite(precisionMs)) return entry.copy !== undefined;
    return Math.abs(below.version.modifiedMs - Number(entry.modifiedNs / 1_000_000n)) <= Math.max(precisionMs, 1);
  }

  #isUnchanged(entry: LeavingEntry): boolean {
    const stats = lookAt(join(this.#options.paths.upper, entry.path));
    return stats !== undefined && isStill(entry, stats) && (entry.kind === 'whiteout' || stats.ctimeNs === entry.changedNs);
  }

  /**
   * Undefined when something else has come there. Looked at, moved and looked at again without a pause: users go on meanwhile, and
   * what they have put there is in its place again before they could miss it.
   */
  #moveAside(entry: LeavingEntry, aside: string): Taken | undefined {
    const { clock, log, paths } = this.#options;
    const place = join(paths.upper, entry.path);
    try {
      if (!this.#isUnchanged(entry)) return undefined;
      renameSync(place, aside);
      const stats = lstatSync(aside, { bigint: true });
      if (isStill(entry, stats)) return { path: entry.path, aside, kind: entry.kind, stats, sinceMs: clock.monotonic() };
      renameSync(aside, place);
    } catch (error) {
      log.warn({ path: entry.path, err: error }, 'not taken out of the write layer');
    }
    return undefined;
  }

  /** Paths of those that somebody uses, or has changed since they were moved. */
  async #wanted(taken: readonly Taken[]): Promise<ReadonlySet<string>> {
    const { mountPoint, paths } = this.#options;
    const used = foldersInUse(mountPoint);
    const writers = openForWriting({ mountPoint, upper: paths.upper });
    const pinned = await this.#pinned(taken);
    const wanted = new Set<string>();
    for (const one of taken) {
      const isChanged = await isTouched(one);
      if (isChanged || pinned.has(one.path) || writers.has(one.path) || used.has(one.path)) wanted.add(one.path);
    }
    return wanted;
  }

  /** Paths under which the overlay still shows what lies aside: somebody keeps the name in the kernel, however he does. */
  async #pinned(taken: readonly Taken[]): Promise<ReadonlySet<string>> {
    const { mountPoint, processes } = this.#options;
    const files = new Map(taken.filter(({ kind }) => kind !== 'whiteout').map((one) => [join(mountPoint, one.path), one]));
    const names = [...files.keys()];
    const pinned = new Set<string>();
    for (let start = 0; start < names.length; start += NAMES_AT_ONCE) {
      const args = [...names.slice(start, start + NAMES_AT_ONCE), '-maxdepth', '0', '-printf', '%C@\\t%p\\0'];
      const { stdout } = await processes.run({ command: 'find', args, env: { LC_ALL: 'C' }, timeoutMs: LOOK_TIMEOUT_MS });
      for (const line of stdout.split('\0').slice(0, -1)) {
        const [time = '', ...name] = line.split('\t');
        const one = files.get(name.join('\t'));
        if (one && time.startsWith(inSeconds(one.stats.ctimeNs))) pinned.add(one.path);
      }
    }
    return pinned;
  }

  async #bringBack(taken: readonly Taken[], wanted: ReadonlySet<string>): Promise<readonly string[]> {
    const { dropNames, log, paths } = this.#options;
    const back = taken.filter(({ path }) => wanted.has(path));
    for (const { aside, path } of back) await putBack(aside, path, paths, log);
    if (back.length > 0) await dropNames();
    return back.map(({ path }) => path);
  }

  /** What has rested long enough goes for good; what was touched comes back. */
  async #endRest(): Promise<void> {
    const { clock, mountPoint, paths } = this.#options;
    const due = this.#resting.filter(({ sinceMs }) => clock.monotonic() - sinceMs >= REST_MS);
    if (due.length === 0) return;
    this.#resting = this.#resting.filter((one) => !due.includes(one));
    const touched = new Set<string>();
    const writers = openForWriting({ mountPoint, upper: paths.upper });
    for (const one of due) {
      if (writers.has(one.path) || (await isTouched(one))) touched.add(one.path);
    }
    await this.#bringBack(due, touched);
    for (const { aside, kind, path } of due) {
      if (!touched.has(path)) await (kind === 'folder' ? rmdir(aside) : unlink(aside)).catch(() => undefined);
    }
    for (const folder of new Set(due.map(({ aside }) => dirname(aside)))) {
      const left = await readdir(folder);
      if (left.every((name) => name === NAMES)) await rm(folder, { recursive: true, force: true });
    }
  }

  /** Takes the marks from folders that are the same below by now; what is in them is taken out another time. */
  async #unmark(folders: readonly LeavingEntry[]): Promise<readonly string[]> {
    const { dropNames } = this.#options;
    const done: string[] = [];
    for (const entry of [...folders].sort((a, b) => a.path.length - b.path.length)) {
      if (!(await this.#mayLoseMarks(entry))) continue;
      if (await this.#removeMarks(entry)) done.push(entry.path);
    }
    if (done.length > 0) await dropNames();
    return done;
  }

  /** From this very folder, wherever its user moves it meanwhile; a mark that he has changed by that stays. */
  async #removeMarks(entry: LeavingEntry): Promise<boolean> {
    const { paths, processes } = this.#options;
    const folder = openSync(join(paths.upper, entry.path), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    try {
      const stats = fstatSync(folder, { bigint: true });
      if (stats.ino !== entry.inode || stats.ctimeNs !== entry.changedNs) return false;
      const args = ['-c', REMOVE_MARKS, 'sh', `/proc/${process.pid}/fd/${folder}`, inSeconds(entry.changedNs)];
      const { code } = await processes.run({ command: 'sh', args, env: { LC_ALL: 'C' }, timeoutMs: MARK_TIMEOUT_MS });
      return code === 0;
    } finally {
      closeSync(folder);
    }
  }

  async #mayLoseMarks(entry: LeavingEntry): Promise<boolean> {
    const { listLower, mountPoint } = this.#options;
    if (foldersInUse(mountPoint).has(entry.path) || !this.#isUnchanged(entry)) return false;
    const parent = await listLower(parentOf(entry.path));
    if (parent?.find(({ name }) => name === posix.basename(entry.path))?.kind !== 'folder') return false;
    return !entry.isOpaque || this.#hidesNothing(entry.path);
  }

  /** All that lies below in the folder of this name lies in the upper folder, too. */
  async #hidesNothing(folder: string): Promise<boolean> {
    const { listLower, paths } = this.#options;
    const here = await readdir(join(paths.upper, folder));
    return ((await listLower(folder)) ?? []).every(({ name }) => here.includes(name));
  }
}

async function isTouched({ aside, stats }: Taken): Promise<boolean> {
  const now = await lstat(aside, { bigint: true }).catch(() => undefined);
  return now === undefined || isTouchedSince(now, stats.ctimeNs);
}

/** As `find` prints it, with nine digits of a fraction. */
function inSeconds(ns: bigint): string {
  return `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, '0')}`;
}

function lookAt(path: string): BigIntStats | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false });
}

/** The same thing with the same content. Its time of change does not count: moving it changes that. */
function isStill({ bytes, inode, kind, modifiedNs }: LeavingEntry, stats: BigIntStats): boolean {
  if (kind === 'whiteout') return stats.isCharacterDevice();
  if (stats.ino !== inode) return false;
  return kind === 'folder' ? stats.isDirectory() : stats.size === BigInt(bytes) && stats.mtimeNs === modifiedNs;
}

function parentOf(path: string): string {
  return path.includes('/') ? posix.dirname(path) : '';
}
