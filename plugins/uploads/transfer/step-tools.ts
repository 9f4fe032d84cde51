/** What all steps use: both sides, the records, and the reporting of conflicts. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { conflictPath } from 'mountkeeper';
import type { Clock, Conflict, RemoteFiles, UpperEntry, WriteLayer } from 'mountkeeper';
import { thingOf } from '../compare/learn.ts';
import { ancestors, below, folded, nameOf, parentOf } from '../compare/paths.ts';
import type { PlaceRecord, Records, Thing } from '../compare/records.ts';
import { mayBeThere, NOTHING } from '../compare/records.ts';
import type { Item } from '../compare/plan-types.ts';
import { keyOf } from '../compare/scan.ts';
import type { KeptTimes } from '../proof/kept-times.ts';
import type { Proof } from '../proof/same-content.ts';

export interface StepTools {
  readonly layer: WriteLayer;
  readonly remote: RemoteFiles;
  readonly records: Records;
  readonly clock: Clock;
  /** Name of this machine, for the names of second versions. */
  readonly host: string;
  readonly signal: AbortSignal;
  readonly proof: Proof;
  readonly times: KeptTimes;
  readonly onConflict: (conflict: Conflict) => void;
  /** Called with a folder in which something changed on the remote. */
  readonly touched: (folder: string) => void;
  /**
   * Called with the place of an upload that was proved, and its record while it was under way; or of a deletion of what
   * was not there, and its record before.
   */
  readonly proved: (place: string, before: PlaceRecord) => void;
  /**
   * Called before what is at these places is taken out of the upper folder. The returned function is called with
   * what has left: a scan that began before may still show it, and miss what has come back.
   */
  readonly leaving: (places: readonly string[]) => (left: ReadonlySet<string>) => void;
  /** Resolves when what the last scan has seen in the upper folder is on the disk. */
  readonly onDisk: () => Promise<void>;
}

export interface LocalStats extends Omit<UpperEntry, 'path' | 'isOpaque'> {
  readonly key: string;
}

/** The upper folder has changed since the step was planned: scan again. */
export class Changed extends Error {}

export async function localStats(layer: WriteLayer, path: string): Promise<LocalStats | undefined> {
  const stats = await lstat(join(layer.upper, path), { bigint: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
      throw error;
    },
  );
  if (stats === undefined) return undefined;
  const kind = stats.isFile()
    ? 'file'
    : stats.isDirectory()
      ? 'folder'
      : stats.isCharacterDevice() && stats.rdev === 0n
        ? 'whiteout'
        : 'other';
  return {
    kind,
    inode: stats.ino,
    bytes: Number(stats.size),
    modifiedNs: stats.mtimeNs,
    changedNs: stats.ctimeNs,
    key: keyOf(stats.ino, stats.birthtimeNs),
  };
}

/** Rejects when the entry at the item's path was replaced or removed. */
export async function checkEntry({ path, entry }: Item, { layer }: StepTools): Promise<LocalStats> {
  const stats = await localStats(layer, path);
  if (stats === undefined || stats.kind !== entry?.kind || stats.key !== entry.key) throw new Changed();
  return stats;
}

/** What the remote has at a place now. */
export async function ask({ remote, signal }: StepTools, place: string, hash = false): Promise<Thing> {
  return thingOf(await remote.stat(place, { signal, hash }));
}

type Asking = Pick<StepTools, 'records' | 'signal'> & {
  readonly remote: Pick<RemoteFiles, 'list'>;
};

/**
 * The name under which the remote has an entry that it shows at the place, where it is another one: many tell
 * neither case nor Unicode forms apart. Undefined where the place is there by this name, or not at all.
 */
export async function otherName(
  { remote, records, signal }: Asking,
  place: string,
): Promise<string | undefined> {
  const entries = (await remote.list(parentOf(place), { signal })) ?? [];
  const wanted = nameOf(place);
  if (entries.some(({ name }) => name === wanted)) return undefined;
  const other = entries.find(({ name }) => folded(name) === folded(wanted))?.name;
  if (other !== undefined) records.noteTwin(place);
  return other;
}

/**
 * The path by which the remote has what has just been brought to the target, the target itself at most times. To be
 * called before anything is asked by the target: smbd remembers that it was found by another spelling.
 */
export async function arrivedAt(tools: Asking, target: string): Promise<string> {
  const other = tools.records.twins.has(target) ? await otherName(tools, target) : undefined;
  return other === undefined ? target : below(parentOf(target), other);
}

/** For a step that is to be done again, since the remote has what it brought by another name. */
export function misspelt(target: string, there: string): Error {
  return new Error(
    `The remote has given '${nameOf(target)}' the former name '${nameOf(there)}' again, as Samba before 4.18.7 ` +
      'sometimes does; it is renamed once more.',
  );
}

/** As `ask`, by this very name and folder; what the remote has under another one counts as nothing. */
export async function askExactly(tools: StepTools, place: string): Promise<Thing> {
  const now = await ask(tools, place);
  if (now === NOTHING) return now;
  const named = [place, ...ancestors(place).filter((folder) => tools.records.twins.has(folder))];
  for (const one of named) if ((await otherName(tools, one)) !== undefined) return NOTHING;
  return now;
}

/** More than the connections that rclone has at most times; each call asks by two. */
const ASKS = 10;

/**
 * As `ask`, before something is brought there. An smbd that is asked for a name while nothing has it forgets the
 * spelling that it once found, and each connection has its own: where that matters, all are asked.
 */
export async function askAll(tools: StepTools, place: string): Promise<Thing> {
  let now = await ask(tools, place);
  for (let asked = 1; asked < ASKS && now === NOTHING && tools.records.twins.has(place); asked += 1)
    now = await ask(tools, place);
  return now;
}

/** As `ask`. Rejects where the remote takes the name for another one's that is not on record. */
export async function askForNew(tools: StepTools, place: string): Promise<Thing> {
  const now = await askAll(tools, place);
  const record = tools.records.places.get(place);
  if (now === NOTHING || (record !== undefined && mayBeThere(record))) return now;
  const other = await otherName(tools, place);
  if (other === undefined) return now;
  throw new Error(
    `The remote takes '${nameOf(place)}' and '${other}' for one name, so it can keep only one of the two. ` +
      'Rename or delete one of them.',
  );
}

/** A free path on the remote, in the same folder. */
export async function freePath(tools: StepTools, path: string): Promise<string> {
  for (let again = 0; ; again += 1) {
    const candidate = conflictPath(path, { now: tools.clock.now(), host: tools.host }, again);
    if (!isTaken(tools.records, candidate) && (await ask(tools, candidate)) === NOTHING) return candidate;
  }
}

function isTaken({ places, conflicts }: Records, path: string): boolean {
  return places.has(path) || conflicts.some(({ copy }) => copy === path);
}

/** Recorded first: reporting an event twice would be worse than listing it without an event. */
export async function tell(tools: StepTools, conflict: Omit<Conflict, 'at'>): Promise<void> {
  const whole = { ...conflict, at: tools.clock.now() };
  tools.records.setConflict(whole);
  await tools.records.saved();
  tools.onConflict(whole);
}
