/**
 * What is known of places on the remote that the upper folder is about. One JSON line per change, on the disk
 * before anybody builds on it, written anew without what is out of date at each start. A place that has no
 * record is looked at afresh, so losing the file costs time alone; a wrong record would cost data, so one is
 * written only for what was proved.
 */
import { open, readFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Conflict, RemoteVersion, UpperEntry } from 'mountkeeper';
import { makeFolder, writeWhole } from 'mountkeeper';
import { carried, isAtOrInside } from './paths.ts';
import { keepReserve, withReserve } from './reserve.ts';

/** What the remote has at a place: a version, a folder or nothing. */
export type Thing =
  | { readonly kind: 'file'; readonly version: RemoteVersion }
  | { readonly kind: 'folder' }
  | { readonly kind: 'nothing' };

export const NOTHING: Thing = { kind: 'nothing' };

/** A local file as it was; text, as JSON has no large numbers. */
export interface Identity {
  readonly inode: string;
  readonly bytes: number;
  readonly modifiedNs: string;
  readonly changedNs: string;
}

export interface PlaceRecord {
  /**
   * What the remote has there as far as users know: they saw it, or they wrote it. What else is found there
   * is someone else's.
   */
  readonly remote: Thing;
  /** The local file whose content the remote was proved to have. */
  readonly proved?: Identity;
  /** An upload that may have come through although its answer was never seen. */
  readonly sending?: { readonly bytes: number; readonly modifiedMs: number };
  /** A folder that may have been made although the answer was never seen. */
  readonly isMaking?: boolean;
  /**
   * The user's version goes to this path instead, since the place has someone else's. `version` is what was
   * brought there.
   */
  readonly copy?: { readonly path: string; readonly version?: RemoteVersion };
  /** Of a folder that users removed or replaced: all that was in it is on record, too. */
  readonly isTree?: boolean;
  /** Of a folder: what others put into it shows to users, so they know all that is in it. */
  readonly isShown?: boolean;
  /** Users deleted it, but others had made something else of it: that stays and is to show again. */
  readonly isKept?: boolean;
  /** Key of the local folder that the remote's was made for. */
  readonly folder?: string;
  /**
   * What users saw there before has the size and time of what was brought there: nobody else could tell the
   * two apart.
   */
  readonly hasFormerLook?: boolean;
  /** The disk was full when the file was as it is: its end may be missing. */
  readonly cut?: Identity;
  /** Being taken out of the upper folder: when it is gone from there, no user deleted it. */
  readonly isLeaving?: boolean;
}

/**
 * Of a folder that users renamed, or a file without data: where the remote has what it stands for. It is
 * known by the entry in the upper folder, not by its mark: overlayfs remembers marks of mounted folders, and
 * writes former ones again.
 */
export interface MoveRecord {
  readonly at: string;
  /** Where it may be instead: it was being moved there, and the answer was never seen. */
  readonly going?: string;
  /** Where it was before, for as long as a mark that is written now may still say so. */
  readonly former?: readonly string[];
}

type Line =
  | { readonly upper: string }
  | { readonly place: string; readonly record: PlaceRecord | null }
  | { readonly mark: string; readonly move: MoveRecord | null }
  | { readonly renamed: readonly [from: string, to: string] }
  | { readonly conflict: Conflict }
  | { readonly settled: Pick<Conflict, 'path' | 'copy'> };

const MOST_CONFLICTS = 1_000;

export class Records {
  readonly places = new Map<string, PlaceRecord>();
  /** By the key of the entry in the upper folder. */
  readonly moves = new Map<string, MoveRecord>();
  conflicts: Conflict[] = [];
  readonly #file: string;
  #upper = '';
  #handle: FileHandle | undefined;
  #waiting: string[] = [];
  #writing: Promise<void> | undefined;

  private constructor(file: string) {
    this.#file = file;
  }

  /** `upper` names the upper folder that they are about: records of another one say nothing. */
  static async open(folder: string, upper: string): Promise<Records> {
    await makeFolder(folder);
    const records = new Records(join(folder, 'places.jsonl'));
    await records.#read(upper);
    const text = records
      .#lines()
      .map((line) => `${JSON.stringify(line)}\n`)
      .join('');
    await withReserve(folder, () => writeWhole(records.#file, text));
    await syncFolder(folder);
    await keepReserve(folder);
    records.#handle = await open(records.#file, 'a', 0o600);
    return records;
  }

  /** What they say, without writing them anew: somebody else may have them open. */
  static async peek(folder: string, upper: string): Promise<Pick<Records, 'places' | 'moves'>> {
    const records = new Records(join(folder, 'places.jsonl'));
    await records.#read(upper);
    return records;
  }

  /** Takes effect at once; on the disk when `saved` resolves. */
  set(place: string, record: PlaceRecord): void {
    this.#add({ place, record });
  }

  drop(place: string): void {
    if (this.places.has(place)) this.#add({ place, record: null });
  }

  setMove(key: string, move: MoveRecord | null): void {
    if (move !== null || this.moves.has(key)) this.#add({ mark: key, move });
  }

  /** The remote has renamed it: what is known of places in it goes along. */
  renamed(from: string, to: string): void {
    this.#add({ renamed: [from, to] });
  }

  addConflict(conflict: Conflict): void {
    this.#add({ conflict });
  }

  /** People have said what is to become of it. */
  dropConflict({ path, copy }: Pick<Conflict, 'path' | 'copy'>): void {
    this.#add({ settled: { path, copy } });
  }

  /** Resolves when everything so far is on the disk. Many callers share one write. */
  async saved(): Promise<void> {
    while (this.#waiting.length > 0 || this.#writing !== undefined) {
      this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
      await this.#writing;
    }
  }

  async close(): Promise<void> {
    await this.saved();
    await this.#handle?.close();
    this.#handle = undefined;
  }

  #add(line: Line): void {
    this.#apply(line);
    this.#waiting.push(`${JSON.stringify(line)}\n`);
  }

  async #write(): Promise<void> {
    const lines = this.#waiting;
    this.#waiting = [];
    try {
      if (this.#handle === undefined) throw new Error('the records are closed');
      await this.#append(this.#handle, lines.join(''));
    } catch (error) {
      this.#waiting = [...lines, ...this.#waiting];
      throw error;
    }
  }

  /** A part of it that was written before the disk was full goes again, or a line would be torn. */
  async #append(handle: FileHandle, text: string): Promise<void> {
    const { size } = await handle.stat();
    await withReserve(dirname(this.#file), async () => {
      await handle.truncate(size);
      await handle.appendFile(text);
      await handle.datasync();
    });
  }

  #apply(line: Line): void {
    if ('upper' in line) this.#upper = line.upper;
    else if ('place' in line) put(this.places, line.place, line.record);
    else if ('mark' in line) put(this.moves, line.mark, line.move);
    else if ('conflict' in line) this.conflicts = [...this.conflicts, line.conflict].slice(-MOST_CONFLICTS);
    else if ('settled' in line)
      this.conflicts = this.conflicts.filter(
        ({ path, copy }) => path !== line.settled.path || copy !== line.settled.copy,
      );
    else this.#carry(...line.renamed);
  }

  #carry(from: string, to: string): void {
    const inside = [...this.places].filter(([place]) => isAtOrInside(place, from));
    for (const [place] of inside) this.places.delete(place);
    for (const [place, record] of inside) this.places.set(carried(place, from, to), record);
    for (const [key, { at, former = [] }] of this.moves) {
      if (!isAtOrInside(at, from)) continue;
      const now = carried(at, from, to);
      this.moves.set(key, { at: now, former: [...new Set([...former, at])].filter((one) => one !== now) });
    }
  }

  async #read(upper: string): Promise<void> {
    const text = await readFile(this.#file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    // The last line may have been cut off by a power cut: nobody has built on it.
    for (const line of text.split('\n')) {
      const parsed = parse(line);
      if (parsed === undefined) break;
      this.#apply(parsed);
    }
    if (this.#upper === upper) return;
    this.places.clear();
    this.moves.clear();
    this.#upper = upper;
  }

  #lines(): Line[] {
    return [
      { upper: this.#upper },
      ...[...this.places].map(([place, record]) => ({ place, record })),
      ...[...this.moves].map(([mark, move]) => ({ mark, move })),
      ...this.conflicts.map((conflict) => ({ conflict })),
    ];
  }
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

function put<T>(map: Map<string, T>, key: string, value: T | null): void {
  if (value === null) map.delete(key);
  else map.set(key, value);
}

function parse(line: string): Line | undefined {
  try {
    return JSON.parse(line) as Line;
  } catch {
    // Cut off, or the empty end of the file.
    return undefined;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** True when the remote may have something at the place that users know of. */
export function mayBeThere({ remote, sending, isMaking }: PlaceRecord): boolean {
  return remote.kind !== 'nothing' || sending !== undefined || isMaking === true;
}

/** True when a file of the user's may be there: one that users saw, or one that was being sent. */
export function mayBeFile(record: PlaceRecord | undefined): boolean {
  return record?.remote.kind === 'file' || record?.sending !== undefined;
}
