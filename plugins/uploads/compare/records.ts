/**
 * What is known about places on the remote that concern the upper folder. One JSON line per change, on disk
 * before anybody relies on it; rewritten without outdated lines at each start, and when most of it is outdated. A
 * wrong record could cost data, so records are written only for proven facts. Of a place without a record, what the
 * remote has by then counts as what users saw: so what is known of a file that is still here is kept also where the
 * rest cannot be believed, since it only makes what others saved meanwhile a conflict.
 */
import { open, readFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Conflict, RemoteVersion, UpperEntry } from 'mountkeeper';
import { lstatIfThere, makeFolder, writeWhole, keepReserve, renewReserve, withReserve } from 'mountkeeper';
import { ancestors, carried, folded, isAtOrInside } from './paths.ts';
import { Twins } from './twins.ts';

/** What the remote has at a place: a version, a folder or nothing. */
export type Thing =
  | { readonly kind: 'file'; readonly version: RemoteVersion }
  | { readonly kind: 'folder' }
  | { readonly kind: 'nothing' };

export const NOTHING: Thing = { kind: 'nothing' };

/** The state of a local file. Numbers are text, because JSON has no large integers. */
export interface Identity {
  readonly inode: string;
  readonly bytes: number;
  readonly modifiedNs: string;
  readonly changedNs: string;
}

export interface PlaceRecord {
  /**
   * What the remote has there as far as users know: they saw it, or they wrote it. Anything else found
   * there is someone else's.
   */
  readonly remote: Thing;
  /** The local file whose content the remote was proven to have. */
  readonly proved?: Identity;
  /** An upload that may have succeeded, although its answer was never received. */
  readonly sending?: { readonly bytes: number; readonly modifiedMs: number };
  /** A folder that may have been created, although the answer was never received. */
  readonly isMaking?: boolean;
  /**
   * The user's version is uploaded to this path instead, because someone else's version is at the place.
   * `version` is what was uploaded.
   */
  readonly copy?: { readonly path: string; readonly version?: RemoteVersion };
  /** For a folder that users deleted or replaced: its whole content is recorded, too. */
  readonly isTree?: boolean;
  /**
   * For a folder that the uploader has put there: what others put into it is visible to users, so they know all of its
   * content. False once they have taken it away.
   */
  readonly isShown?: boolean;
  /** Users deleted it, but others had changed it: that version stays and is to become visible again. */
  readonly isKept?: boolean;
  /** Key of the local folder for which the remote's was created. */
  readonly folder?: string;
  /**
   * The version that users saw there before has the size and time of the uploaded one: nobody could tell
   * the two apart.
   */
  readonly hasFormerLook?: boolean;
  /** The state of a file written while the disk was full: its end may be missing. */
  readonly cut?: Identity;
  /** It is being removed from the upper folder: its absence there then is not a deletion by a user. */
  readonly isLeaving?: boolean;
  /**
   * Key of the file that has left: for a minute it comes back if somebody touches it, and is still a change of what
   * is on record here. Users see what the remote has; any other file at the place is a change of that.
   */
  readonly away?: string;
}

/** With what resolving it takes. */
export interface RecordedConflict extends Conflict {
  /** What the remote showed at `copy` when it had been brought there: with its own time, rounded or not. */
  readonly arrived?: RemoteVersion;
  /** Where the remote's version is while the other one takes its place; it may be there still. */
  readonly aside?: string;
}

/**
 * For a folder that users renamed, or a file without data: its place on the remote. Identified by the entry
 * in the upper folder, not by its mark: overlayfs caches marks of mounted folders, and writes former ones
 * again.
 */
export interface MoveRecord {
  readonly at: string;
  /** Where it may be instead: it was being moved there, and the answer was never received. */
  readonly going?: string;
  /** Former places, for as long as a mark written now may still name them. */
  readonly former?: readonly string[];
}

type Line =
  | { readonly upper: string }
  | { readonly place: string; readonly record: PlaceRecord | null }
  | { readonly mark: string; readonly move: MoveRecord | null }
  | { readonly renamed: readonly [from: string, to: string] }
  | { readonly twin: string }
  /** JSON has no infinity: null. */
  | { readonly precision: number | null }
  | { readonly conflict: RecordedConflict }
  | { readonly settled: Pick<Conflict, 'path' | 'copy'> };

/** True for a path at which the upper folder has a file. */
type IsFile = (place: string) => boolean;
const NO_FILE: IsFile = () => false;

const MOST_CONFLICTS = 1_000;
/** So many times what it holds may be in the file before it is written anew; a small one is left alone. */
const MOST_OUTDATED = 4;
const SMALL_BYTES = 65_536;
/** Writes after which it is seen to that the reserve is there. */
const RESERVE_EVERY = 256;

export class Records {
  readonly places = new Map<string, PlaceRecord>();
  /** By the key of the entry in the upper folder. */
  readonly moves = new Map<string, MoveRecord>();
  readonly twins = new Twins();
  conflicts: RecordedConflict[] = [];
  /** How far off the remote's times have shown to be, in milliseconds: Infinity where it does not keep them. */
  precisionMs = 0;
  /** Another one after each change. */
  version = 0;
  /** How often what the remote has was moved, in this run. */
  renames = 0;
  readonly #file: string;
  #upper = '';
  #handle: FileHandle | undefined;
  #waiting: string[] = [];
  /** Lines so far, and of these on disk. */
  #added = 0;
  #written = 0;
  #writing: Promise<void> | undefined;
  /** Bytes of the whole lines in the file: now, and without what is outdated when that was last known. */
  #bytes = 0;
  #heldBytes = 0;
  /** The file may have been replaced by one that says the same: it has to be opened anew. */
  #isReplaced = false;
  #writes = 0;

  private constructor(file: string) {
    this.#file = file;
  }

  /**
   * `upper` identifies the upper folder. Of the records of another one, as of a cache that was moved to another disk,
   * only what the remote had at places that `isFile` finds in it is kept: a file that is missing is no deletion.
   */
  static async open(folder: string, upper: string, isFile: IsFile = NO_FILE): Promise<Records> {
    await makeFolder(folder);
    const records = new Records(join(folder, 'places.jsonl'));
    await records.#read(upper, isFile);
    const text = records.#text();
    await withReserve(folder, () => writeWhole(records.#file, text));
    records.#heldBytes = Buffer.byteLength(text);
    records.#bytes = records.#heldBytes;
    await keepReserve(folder);
    records.#handle = await open(records.#file, 'a', 0o600);
    return records;
  }

  /** Reads the records without rewriting them, because another process may have them open. */
  static async peek(folder: string, upper: string): Promise<Pick<Records, 'places' | 'moves'>> {
    const records = new Records(join(folder, 'places.jsonl'));
    await records.#read(upper, NO_FILE);
    return records;
  }

  /** Takes effect at once; it is on disk when `saved` resolves. */
  set(place: string, record: PlaceRecord): void {
    this.#add({ place, record });
  }

  drop(place: string): void {
    if (this.places.has(place)) this.#add({ place, record: null });
  }

  /**
   * To be called before what the remote has at a place is taken from there, also by a call that is not answered: what
   * is missing then was not deleted by others, and may be here alone.
   */
  unprove(place: string): void {
    const { proved, ...record } = this.places.get(place) ?? { remote: NOTHING };
    if (proved !== undefined) this.set(place, record);
  }

  setMove(key: string, move: MoveRecord | null): void {
    if (move !== null || this.moves.has(key)) this.#add({ mark: key, move });
  }

  /**
   * The remote has renamed an entry: the records of places in it are renamed as well, and nothing of what users saw
   * is at its former place. So what is found there was put there by others.
   */
  renamed(from: string, to: string): void {
    this.renames += 1;
    this.#add({ renamed: [from, to] });
  }

  /** The name of this place was written in another way, too. */
  noteTwin(place: string): void {
    if (!this.twins.has(place)) this.#add({ twin: folded(place) });
  }

  /** The remote's times are as far off as that, in milliseconds. It is never taken to be more precise again. */
  notePrecision(ms: number): void {
    if (ms > this.precisionMs) this.#add({ precision: ms });
  }

  /** One of the same two paths is replaced. */
  setConflict(conflict: RecordedConflict): void {
    this.#add({ conflict });
  }

  /** Removes a conflict that somebody has resolved. */
  dropConflict({ path, copy }: Pick<Conflict, 'path' | 'copy'>): void {
    this.#add({ settled: { path, copy } });
  }

  /** Resolves when everything so far is on disk. Concurrent callers share one write, and wait for no later one. */
  async saved(): Promise<void> {
    const last = this.#added;
    while (this.#written < last) {
      this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
      await this.#writing;
    }
  }

  /** Rejects when what was noted last cannot be written; the file is closed then as well. */
  async close(): Promise<void> {
    try {
      while (this.#written < this.#added) await this.saved();
    } finally {
      await this.#handle?.close();
      this.#handle = undefined;
    }
  }

  #add(line: Line): void {
    this.#apply(line);
    this.#added += 1;
    this.#waiting.push(`${JSON.stringify(line)}\n`);
  }

  async #write(): Promise<void> {
    const lines = this.#waiting;
    this.#waiting = [];
    try {
      if (this.#handle === undefined) throw new Error('the records are closed');
      await this.#append(await this.#current(this.#handle), lines.join(''));
    } catch (error) {
      this.#waiting = [...lines, ...this.#waiting];
      throw error;
    }
    const isDue = this.#bytes > MOST_OUTDATED * Math.max(this.#heldBytes, SMALL_BYTES);
    // What waits would be in it, and be added once more.
    if (isDue && this.#waiting.length === 0) await this.#rewrite();
    this.#written += lines.length;
    this.#writes += 1;
    if (this.#writes % RESERVE_EVERY === 0) await renewReserve(dirname(this.#file));
  }

  /** Writes what is known to another file, and puts that in the place of this one, which says the same. */
  async #rewrite(): Promise<void> {
    const text = this.#text();
    this.#isReplaced = true;
    this.#heldBytes = Buffer.byteLength(text);
    // No room, for instance: the file goes on as it is, and that is tried again when it has grown as much once more.
    await writeWhole(this.#file, text).catch(() => (this.#heldBytes = this.#bytes));
  }

  /** What a former write may have put in the place of the file, with its name on the disk. */
  async #current(handle: FileHandle): Promise<FileHandle> {
    if (!this.#isReplaced) return handle;
    await syncNames(dirname(this.#file));
    const fresh = await open(this.#file, 'a', 0o600);
    const [{ ino, size }, former] = await Promise.all([fresh.stat(), handle.stat()]);
    if (ino !== former.ino) this.#bytes = size;
    this.#handle = fresh;
    this.#isReplaced = false;
    await handle.close();
    return fresh;
  }

  /** What a failed write left behind the last whole line is cut off first: nothing behind it would ever be read. */
  async #append(handle: FileHandle, text: string): Promise<void> {
    await withReserve(dirname(this.#file), async () => {
      await handle.truncate(this.#bytes);
      await handle.appendFile(text);
      await handle.datasync();
    });
    this.#bytes += Buffer.byteLength(text);
  }

  #apply(line: Line): void {
    this.version += 1;
    if ('upper' in line) this.#upper = line.upper;
    else if ('place' in line) put(this.places, line.place, line.record);
    else if ('mark' in line) put(this.moves, line.mark, line.move);
    else if ('twin' in line) this.twins.add(line.twin);
    else if ('precision' in line) this.precisionMs = line.precision ?? Infinity;
    else if ('conflict' in line) this.conflicts = withConflict(this.conflicts, line.conflict);
    else if ('settled' in line)
      this.conflicts = this.conflicts.filter((one) => !isSameConflict(one, line.settled));
    else this.#carry(...line.renamed);
  }

  #carry(from: string, to: string): void {
    const inside = [...this.places].filter(([place]) => isAtOrInside(place, from));
    for (const [place] of inside) this.places.delete(place);
    this.places.set(from, { remote: NOTHING });
    // A copy beside it is renamed with its folder.
    const along = (path: string): string => (isAtOrInside(path, from) ? carried(path, from, to) : path);
    for (const [place, { copy, ...record }] of inside)
      this.places.set(along(place), {
        ...record,
        ...(copy && { copy: { ...copy, path: along(copy.path) } }),
      });
    this.conflicts = this.conflicts.map(({ aside, ...one }) => ({
      ...one,
      path: along(one.path),
      copy: along(one.copy),
      ...(aside !== undefined && { aside: along(aside) }),
    }));
    for (const [key, { at, former = [] }] of this.moves) {
      if (!isAtOrInside(at, from)) continue;
      const now = carried(at, from, to);
      this.moves.set(key, { at: now, former: [...new Set([...former, at])].filter((one) => one !== now) });
    }
  }

  async #read(upper: string, isFile: IsFile): Promise<void> {
    const text = await readFile(this.#file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    const lines = text.split('\n').map(parse);
    const end = lines.includes(undefined) ? lines.indexOf(undefined) : lines.length;
    for (const line of lines.slice(0, end)) this.#apply(line!);
    // A power cut may have truncated the last line; nobody has relied on it. Of what stands behind another one, some
    // may say that a file has left: without it, that would count as deleted by its users.
    const isDamaged = lines.slice(end).some((line) => line !== undefined);
    if (this.#upper === upper && !isDamaged) return;
    const kept = [...this.places].filter(([place]) => isFile(place));
    this.places.clear();
    // Which state of the file it was is known by its inode, which is another one by now.
    for (const [place, { remote, copy, sending }] of kept)
      this.places.set(place, { remote, ...(copy && { copy }), ...(sending && { sending }) });
    this.moves.clear();
    this.twins.clear();
    this.#upper = upper;
  }

  #text(): string {
    return this.#lines()
      .map((line) => `${JSON.stringify(line)}\n`)
      .join('');
  }

  #lines(): Line[] {
    return [
      { upper: this.#upper },
      ...[...this.places].map(([place, record]) => ({ place, record })),
      ...[...this.moves].map(([mark, move]) => ({ mark, move })),
      ...[...this.twins.names].map((twin) => ({ twin })),
      ...(this.precisionMs > 0 ? [{ precision: this.precisionMs }] : []),
      ...this.conflicts.map((conflict) => ({ conflict })),
    ];
  }
}

type Named = Pick<Conflict, 'path' | 'copy'>;

function isSameConflict(one: Named, other: Named): boolean {
  return one.path === other.path && one.copy === other.copy;
}

function withConflict(all: readonly RecordedConflict[], conflict: RecordedConflict): RecordedConflict[] {
  if (all.some((one) => isSameConflict(one, conflict)))
    return all.map((one) => (isSameConflict(one, conflict) ? conflict : one));
  return [...all, conflict].slice(-MOST_CONFLICTS);
}

export function identityOf(
  entry: Pick<UpperEntry, 'inode' | 'bytes' | 'modifiedNs' | 'changedNs'>,
): Identity {
  return {
    inode: String(entry.inode),
    bytes: entry.bytes,
    modifiedNs: String(entry.modifiedNs),
    changedNs: String(entry.changedNs),
  };
}

export function isSameFile(a: Identity | undefined, b: Identity): boolean {
  return (
    a !== undefined &&
    a.inode === b.inode &&
    a.bytes === b.bytes &&
    a.modifiedNs === b.modifiedNs &&
    a.changedNs === b.changedNs
  );
}

/** The same content in the same file, whatever was done to its names and its owner. */
export function isSameWriting(a: Identity | undefined, b: Identity): boolean {
  return a !== undefined && isSameFile({ ...a, changedNs: b.changedNs }, b);
}

/** Until then a loss of power may bring back the file that was replaced, without what is added to the new one. */
async function syncNames(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function put<T>(map: Map<string, T>, key: string, value: T | null): void {
  if (value === null) map.delete(key);
  else map.set(key, value);
}

function parse(line: string): Line | undefined {
  try {
    return JSON.parse(line) as Line;
  } catch {
    // A truncated line, or the empty end of the file.
    return undefined;
  }
}

/** True when the remote may have something at the place that users know of. */
export function mayBeThere({ remote, sending, isMaking }: PlaceRecord): boolean {
  return remote.kind !== 'nothing' || sending !== undefined || isMaking === true;
}

/** True when a file of the user may be there: one that users saw, or one that was being uploaded. */
export function mayBeFile(record: PlaceRecord | undefined): boolean {
  return record?.remote.kind === 'file' || record?.sending !== undefined;
}

/** For `Records.open`. Follows no link that users may have put in the place of a folder. */
export function isFileIn(upper: string, place: string): boolean {
  const kindOf = (path: string) => lstatIfThere(join(upper, path));
  return (
    ancestors(place)
      .reverse()
      .every((folder) => kindOf(folder)?.isDirectory() === true) && kindOf(place)?.isFile() === true
  );
}
