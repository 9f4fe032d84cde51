/** Folders on the remote: made, moved, removed, and files deleted. Each step asks first and can be done again. */
import type { WriteLayer } from 'mountkeeper';
import { below, isAtOrInside, parentOf } from '../compare/paths.ts';
import { DETOUR_PREFIX } from '../compare/plan-types.ts';
import type { Item } from '../compare/plan-types.ts';
import { mayBeThere, NOTHING } from '../compare/records.ts';
import type { MoveRecord, PlaceRecord } from '../compare/records.ts';
import { isSameThing, looksLike } from '../proof/versions.ts';
import { ask, Changed, freePath, localStats, tell } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

export async function makeFolder({ place, path, entry }: Item, tools: StepTools): Promise<void> {
  const { remote, records, layer, signal } = tools;
  await checkFolder(path, entry?.inode, layer);
  const now = await ask(tools, place);
  if (now.kind === 'file') {
    // Someone else's file stands where the folder is to be. It gives way under another name, since all in the folder follows.
    const copy = await freePath(tools, place);
    await remote.moveFile(place, copy, { signal });
    await tell(tools, { path: place, copy, what: 'changed' });
  }
  if (now.kind !== 'folder') {
    records.set(place, { remote: NOTHING, isMaking: true });
    await records.saved();
    await remote.makeFolder(place, { signal });
  }
  tools.touched(parentOf(place));
  records.set(place, { remote: { kind: 'folder' }, inode: String(entry?.inode) });
  await records.saved();
}

async function checkFolder(path: string, inode: bigint | undefined, layer: WriteLayer): Promise<void> {
  const stats = await localStats(layer, path);
  if (stats?.kind !== 'folder' || stats.inode !== inode) throw new Changed();
}

/** Deletes what users saw there when they deleted it; what others made of it since stays and shows again. */
export async function deletePlace(item: Item, tools: StepTools): Promise<void> {
  const { place, path, isInTheWay } = item;
  const { records, layer } = tools;
  const record = records.places.get(place);
  if (record === undefined || !mayBeThere(record)) return;
  const stats = await localStats(layer, path);
  if (stats !== undefined && stats.kind !== 'whiteout' && isInTheWay !== true) throw new Changed();
  const left = await removeFrom(item, record, tools);
  // What is to stand in its place tells of it otherwise.
  if (left === 'untold' && isInTheWay !== true) await tell(tools, { path: place, copy: place, what: 'deleted' });
  tools.touched(parentOf(place));
  records.set(place, { remote: NOTHING, ...(left !== 'nothing' && { isKept: true }) });
  await records.saved();
}

/** What stays there, and whether that was told of. */
async function removeFrom({ place }: Item, record: PlaceRecord, tools: StepTools): Promise<'nothing' | 'told' | 'untold'> {
  const { remote, signal } = tools;
  const now = await ask(tools, place);
  if (now.kind === 'nothing') return 'nothing';
  if (now.kind === 'folder') {
    if (record.remote.kind === 'file') return 'untold';
    if (await removeFolder(place, tools)) return 'nothing';
    return (await hasUntold(place, tools)) ? 'untold' : 'told';
  }
  const isOurs = record.sending !== undefined && looksLike(now.version, record.sending, remote.precisionMs);
  if (!isOurs && !isSameThing(now, record.remote, remote.precisionMs)) return 'untold';
  await remote.deleteFile(place, { signal });
  if ((await ask(tools, place)).kind !== 'nothing') throw new Error('The remote still shows what was deleted.');
  return 'nothing';
}

/** False when something is left in it. */
async function removeFolder(place: string, { remote, signal }: StepTools): Promise<boolean> {
  const left = await remote.list(place, { signal });
  if (left === undefined) return true;
  if (left.length > 0) return false;
  try {
    await remote.removeFolder(place, { signal });
    return true;
  } catch (error) {
    // Somebody may have put something in just now.
    const more = await remote.list(place, { signal });
    if (more === undefined) return true;
    if (more.length > 0) return false;
    throw error;
  }
}

/** Whether a folder that stays has anything in it that was not told of already. */
async function hasUntold(place: string, { remote, records, signal }: StepTools): Promise<boolean> {
  const left = (await remote.list(place, { signal })) ?? [];
  const told = records.conflicts.map(({ copy }) => copy);
  return !left.every(({ name }) => told.some((one) => isAtOrInside(one, below(place, name))));
}

/** Renames a folder on the remote as users did, and puts on record that all in it went along. */
export async function moveFolder({ path, entry, move }: Item, tools: StepTools): Promise<void> {
  const { records, layer } = tools;
  if (move === undefined || entry?.movedFrom === undefined) throw new Changed();
  await checkFolder(path, entry.inode, layer);
  const target = move.isDetour ? `${DETOUR_PREFIX}${entry.inode.toString(36)}` : path;
  const here = { from: entry.movedFrom, at: move.source };
  if (await wentAlready(records.moves.get(String(entry.inode)), tools)) throw new Changed();
  if (move.source === path) {
    // Users took it back, and the remote has never moved it.
    records.setMove(entry.inode, here);
    await records.saved();
    throw new Changed();
  }
  records.setMove(entry.inode, { ...here, going: target });
  await records.saved();
  await bring(move.source, target, tools);
  records.setMove(entry.inode, here);
  records.renamed(move.source, target);
  if (!move.isDetour) records.set(path, { remote: { kind: 'folder' }, inode: String(entry.inode), isShown: true });
  await records.saved();
  for (const folder of [parentOf(move.source), parentOf(target)]) tools.touched(folder);
  tools.touched(target);
}

/** A former try may have come through: then the folder is where it was going. */
async function wentAlready(known: MoveRecord | undefined, tools: StepTools): Promise<boolean> {
  if (known?.going === undefined) return false;
  const [from, to] = [await ask(tools, known.at), await ask(tools, known.going)];
  if (from.kind !== 'nothing' || to.kind !== 'folder') return false;
  tools.records.renamed(known.at, known.going);
  tools.records.set(known.going, { remote: { kind: 'folder' }, isShown: true });
  for (const folder of [parentOf(known.at), parentOf(known.going), known.going]) tools.touched(folder);
  await tools.records.saved();
  return true;
}

async function bring(source: string, target: string, tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const [from, to] = [await ask(tools, source), await ask(tools, target)];
  if (from.kind === 'folder') {
    if (to.kind === 'folder') return merge(source, target, tools);
    if (to.kind === 'file') await giveWay(target, tools);
    if (parentOf(target) !== '') await remote.makeFolder(parentOf(target), { signal });
    await remote.moveFolder(source, target, { signal });
    if ((await ask(tools, target)).kind !== 'folder') throw new Error('The remote does not show the folder that was moved.');
    return;
  }
  // Moved by a try whose answer was lost, or others have removed it: then what users changed in it needs a folder.
  if (to.kind === 'folder') return;
  if (to.kind === 'file') await giveWay(target, tools);
  await tell(tools, { path: target, copy: target, what: 'moved' });
  await remote.makeFolder(target, { signal });
}

async function giveWay(place: string, tools: StepTools): Promise<void> {
  const copy = await freePath(tools, place);
  await tools.remote.moveFile(place, copy, { signal: tools.signal });
  await tell(tools, { path: place, copy, what: 'moved' });
}

/** Both are there: a move that was cut off, or others have made a folder of that name. Nothing in either is replaced. */
async function merge(source: string, target: string, tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const there = new Map(((await remote.list(target, { signal })) ?? []).map((entry) => [entry.name, entry]));
  for (const entry of (await remote.list(source, { signal })) ?? []) {
    const [from, to] = [below(source, entry.name), below(target, entry.name)];
    const other = there.get(entry.name);
    if (entry.kind === 'folder' && other?.kind === 'folder') await merge(from, to, tools);
    else if (entry.kind === 'folder') {
      if (other !== undefined) await giveWay(to, tools);
      await remote.moveFolder(from, to, { signal });
    } else if (other === undefined) await remote.moveFile(from, to, { signal });
    else await mergeFile(from, to, tools);
  }
  await removeFolder(source, tools);
}

async function mergeFile(from: string, to: string, tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const [ours, theirs] = [await ask(tools, from, true), await ask(tools, to, true)];
  const isCopy = ours.kind === 'file' && theirs.kind === 'file' && ours.version.hash !== undefined && isSameThing(ours, theirs, remote.precisionMs);
  if (isCopy) return remote.deleteFile(from, { signal });
  const copy = await freePath(tools, to);
  await remote.moveFile(from, copy, { signal });
  await tell(tools, { path: to, copy, what: 'moved' });
}
