/**
 * Repeats users' renames on the remote: folders, and files without data of their own. Each step checks the
 * remote first and can be repeated; what others have put at the target is kept under another name.
 */
import type { RemoteFailure } from 'mountkeeper';
import { below, folded, nameOf, parentOf } from '../compare/paths.ts';
import { DETOUR_PREFIX } from '../compare/plan-types.ts';
import type { Item } from '../compare/plan-types.ts';
import { NOTHING } from '../compare/records.ts';
import type { PlaceRecord, Thing } from '../compare/records.ts';
import type { ScanEntry } from '../compare/scan.ts';
import { isSameThing } from '../proof/versions.ts';
import { removeFolder } from './folders.ts';
import { arrivedAt, ask, askForNew, Changed, checkEntry, freePath, misspelt, tell } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

export async function moveEntry(item: Item, tools: StepTools): Promise<void> {
  const { entry, move } = item;
  if (move === undefined) throw new Changed();
  if (move.going !== undefined) {
    await findOut(move.entry.key ?? '', tools, { isGone: entry === undefined });
    throw new Changed();
  }
  if (entry?.key === undefined) throw new Changed();
  // Else a power cut may leave what is on record from here on and take the rename: all that was moved would be deleted.
  // First, since users may change it meanwhile.
  await tools.onDisk();
  await checkEntry(item, tools);
  // From now on, until users rename it otherwise, the remote may have it by both names.
  if (folded(move.source) === folded(item.path)) tools.records.noteTwin(item.path);
  try {
    await bring(
      entry,
      entry.key,
      { from: move.source, to: move.isDetour ? `${DETOUR_PREFIX}${entry.key}` : item.path },
      tools,
    );
  } catch (error) {
    // While its place is unknown, listings cannot be refreshed.
    if ((error as RemoteFailure).remote !== 'silent') await findOut(entry.key, tools).catch(() => undefined);
    throw error;
  }
}

interface Way {
  readonly from: string;
  readonly to: string;
}

async function bring(entry: ScanEntry, key: string, way: Way, tools: StepTools): Promise<void> {
  const { records } = tools;
  const known = records.moves.get(key);
  if (known?.at !== way.from || known.going !== undefined) throw new Changed();
  records.setMove(key, { ...known, going: way.to });
  await records.saved();
  const arrival =
    entry.kind === 'folder'
      ? await unseen(() => bringFolder(way.from, way.to, tools), tools)
      : await bringFile(entry, way.from, way.to, tools);
  if (arrival === undefined) return;
  arrived(key, { from: way.from, ...arrival }, tools);
  await records.saved();
  if (arrival.to !== way.to) throw misspelt(way.to, arrival.to);
}

/**
 * Users' calls wait until the folder's mark is renewed, or the move has failed: its content is at neither place for
 * them meanwhile, rclone takes a folder that is not there for an empty one, and an empty one can be removed.
 */
async function unseen<T>(move: () => Promise<T>, { layer }: Pick<StepTools, 'layer'>): Promise<T> {
  const release = await layer.holdCalls?.();
  try {
    return await move();
  } catch (error) {
    release?.();
    throw error;
  }
}

/**
 * An earlier attempt may have succeeded, although its answer was never received. `isGone`: users have removed it.
 */
export async function findOut(key: string, tools: StepTools, { isGone = false } = {}): Promise<void> {
  const { records } = tools;
  const known = records.moves.get(key);
  if (known?.going === undefined) return;
  const there = await arrivedAt(tools, known.going);
  const [from, to] = [await ask(tools, known.at), await ask(tools, there)];
  const was: PlaceRecord = records.places.get(known.at) ?? { remote: NOTHING };
  const now = { from, to, isByName: there === known.going };
  if (!isArrived(now, was.remote, tools.remote.precisionMs)) {
    const { going: _, ...rest } = known;
    records.setMove(key, rest);
  } else {
    arrived(key, { from: known.at, to: there, now: to }, tools);
    if (isGone && was.isTree === true) wasSeen(key, there, tools);
  }
  await records.saved();
}

/** On record as a whole where it was: it did not show empty when users removed it. That is deleted, and no more. */
function wasSeen(key: string, place: string, { records }: Pick<StepTools, 'records'>): void {
  const remote = records.places.get(place)?.remote;
  if (remote?.kind !== 'folder') return;
  records.set(place, { remote, isTree: true, isShown: false });
  records.setMove(key, null);
}

interface Ends {
  readonly from: Thing;
  readonly to: Thing;
  /** Not by a name that the remote takes for the target's. */
  readonly isByName: boolean;
}

function isArrived({ from, to, isByName }: Ends, seen: Thing, precisionMs: number): boolean {
  // Others may have put something at the source, or at the other name. No folder becomes a file: that is of others.
  if (from.kind === 'nothing' && (isByName || to.kind === 'folder'))
    return to.kind === 'folder' || (to.kind === 'file' && seen.kind === 'file');
  const isSeen = (now: Thing): boolean => seen.kind === 'file' && isSameThing(now, seen, precisionMs);
  return isSeen(to) && !isSeen(from);
}

interface Arrival {
  /** Where the remote has it; another path than the one that was asked for when it spelt the name otherwise. */
  readonly to: string;
  /** What the remote has there. */
  readonly now: Thing;
}

/**
 * The mount refreshes the folders together with the marks, and not before: a marked folder would look
 * empty.
 */
export function arrived(
  key: string,
  { from, to, now }: Arrival & Pick<Way, 'from'>,
  { records }: Pick<StepTools, 'records'>,
): void {
  const { going: _, ...known } = records.moves.get(key) ?? { at: from };
  records.setMove(key, known);
  records.renamed(from, to);
  records.set(to, now.kind === 'folder' ? { remote: now, folder: key, isShown: true } : { remote: now });
}

/**
 * Undefined when there is nothing left to move: others have changed or deleted the version that users
 * renamed.
 */
async function bringFile(
  entry: ScanEntry,
  source: string,
  target: string,
  tools: StepTools,
): Promise<Arrival | undefined> {
  const { remote, records, signal } = tools;
  const [from, to] = [await ask(tools, source), await askForNew(tools, target)];
  const seen = records.places.get(source)?.remote;
  if (seen === undefined) throw new Changed();
  if (!isVersion(from, seen, entry, tools)) {
    await giveUp(entry, { source, isLeft: from.kind !== 'nothing' }, tools);
    return undefined;
  }
  if (to.kind !== 'nothing') await giveWay(target, to.kind, tools);
  if (parentOf(target) !== '') await remote.makeFolder(parentOf(target), { signal });
  await remote.moveFile(source, target, { signal });
  const there = await arrivedAt(tools, target);
  const now = await ask(tools, there);
  // Some remotes change the time of a renamed file. By a former name it may be others', while the listing is late.
  const isOurs =
    there === target
      ? now.kind === 'file' && now.version.bytes === entry.bytes
      : isVersion(now, seen, entry, tools);
  if (!isOurs) throw new Error('The remote does not show the file that was moved.');
  return { to: there, now };
}

function isVersion(now: Thing, seen: Thing, { bytes }: ScanEntry, { remote }: StepTools): boolean {
  return now.kind === 'file' && now.version.bytes === bytes && isSameThing(now, seen, remote.precisionMs);
}

/**
 * What users renamed no longer exists, and there is no copy here: what others made of it becomes visible at
 * its own place.
 */
async function giveUp(
  entry: ScanEntry,
  { source, isLeft }: { readonly source: string; readonly isLeft: boolean },
  tools: StepTools,
): Promise<void> {
  const { records } = tools;
  await tell(tools, { path: entry.path, copy: isLeft ? source : entry.path, what: 'moved' });
  records.set(source, { remote: NOTHING, ...(isLeft && { isKept: true }) });
  // At its own path it only hides the lower entry, and is removed.
  records.setMove(entry.key!, { at: entry.path });
  tools.touched(parentOf(source));
  await records.saved();
}

async function bringFolder(source: string, target: string, tools: StepTools): Promise<Arrival> {
  const { remote, signal } = tools;
  const [from, to] = [await ask(tools, source), await askForNew(tools, target)];
  if (to.kind === 'file') await giveWay(target, to.kind, tools);
  if (from.kind === 'folder' && to.kind === 'folder') await mergeLeft(source, target, tools);
  else if (from.kind === 'folder') {
    if (parentOf(target) !== '') await remote.makeFolder(parentOf(target), { signal });
    await moveOrMerge(source, target, tools);
  } else if (to.kind !== 'folder') {
    // Others have deleted it: files that users changed in it still need a folder.
    await tell(tools, { path: target, copy: target, what: 'moved' });
    await remote.makeFolder(target, { signal });
  }
  const there = await arrivedAt(tools, target);
  const now = await ask(tools, there);
  if (now.kind !== 'folder') throw new Error('The remote does not show the folder that was moved.');
  return { to: there, now };
}

/** Others have put something at the target: it is kept under another name. */
async function giveWay(place: string, kind: 'file' | 'folder', tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const copy = await freePath(tools, place);
  await (kind === 'folder'
    ? remote.moveFolder(place, copy, { signal })
    : remote.moveFile(place, copy, { signal }));
  await tell(tools, { path: place, copy, what: 'moved' });
}

/** What others have put at the target meanwhile is not replaced: it stays, and the rest of the folder comes to it. */
async function moveOrMerge(source: string, target: string, tools: StepTools): Promise<void> {
  await tools.remote.moveFolder(source, target, { signal: tools.signal });
  await mergeLeft(source, target, tools);
}

/**
 * Where the remote still has the source, by the listing of the folder that it is in: backends that address folders by
 * numbers find a moved one by its former path as well, and what is in it would be taken for two of each.
 */
async function mergeLeft(source: string, target: string, tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  if ((await ask(tools, source)).kind !== 'folder') return;
  const around = (await remote.list(parentOf(source), { signal })) ?? [];
  const isLeft = around.some(({ kind, name }) => kind === 'folder' && name === nameOf(source));
  if (isLeft) await merge(source, target, tools);
}

/**
 * Both folders exist: a move was interrupted, or others have created one of that name. Nothing in either is
 * replaced.
 */
async function merge(source: string, target: string, tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const there = new Map(((await remote.list(target, { signal })) ?? []).map((entry) => [entry.name, entry]));
  for (const entry of (await remote.list(source, { signal })) ?? []) {
    const [from, to] = [below(source, entry.name), below(target, entry.name)];
    const other = there.get(entry.name);
    if (entry.kind === 'folder' && other?.kind === 'folder') await merge(from, to, tools);
    else if (entry.kind === 'folder') {
      if (other !== undefined) await giveWay(to, other.kind, tools);
      await moveOrMerge(from, to, tools);
    } else if (other === undefined) await remote.moveFile(from, to, { signal });
    else await mergeFile(from, to, tools);
  }
  await removeMerged(source, target, tools);
}

async function removeMerged(source: string, target: string, tools: StepTools): Promise<void> {
  await removeFolder(source, tools);
  // Both names led to one folder, which was empty.
  if ((await ask(tools, target)).kind !== 'nothing') return;
  await tools.remote.makeFolder(target, { signal: tools.signal });
}

async function mergeFile(from: string, to: string, tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const [ours, theirs] = [await ask(tools, from, true), await ask(tools, to, true)];
  const isCopy =
    ours.kind === 'file' &&
    theirs.kind === 'file' &&
    ours.version.hash !== undefined &&
    isSameThing(ours, theirs, remote.precisionMs);
  const copy = await freePath(tools, to);
  await remote.moveFile(from, copy, { signal });
  const still = await ask(tools, to, true);
  // That has taken the other one with it: both names led to one file.
  if (still.kind === 'nothing') return remote.moveFile(copy, to, { signal });
  if (isCopy && still.kind === 'file' && isSameThing(still, theirs, remote.precisionMs))
    return remote.deleteFile(copy, { signal });
  await tell(tools, { path: to, copy, what: 'moved' });
}
