/**
 * Creates and deletes folders on the remote, and deletes files. Each step checks the remote first and can
 * be repeated.
 */
import { below, isAtOrInside, isInside, parentOf } from '../compare/paths.ts';
import type { Item } from '../compare/plan-types.ts';
import { isUnseen } from '../compare/unseen-folders.ts';
import { mayBeThere, NOTHING } from '../compare/records.ts';
import type { PlaceRecord } from '../compare/records.ts';
import { isSameThing, looksLike } from '../proof/versions.ts';
import { ask, askExactly, askForNew, Changed, checkEntry, freePath, localStats, tell } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

export async function makeFolder(item: Item, tools: StepTools): Promise<void> {
  const { place, entry } = item;
  const { remote, records, signal } = tools;
  await checkEntry(item, tools);
  const now = await askForNew(tools, place);
  if (now.kind === 'file') {
    // Someone else's file is where the folder must be. The file is renamed, because everything in the
    // folder depends on it.
    const copy = await freePath(tools, place);
    await remote.moveFile(place, copy, { signal });
    await tell(tools, { path: place, copy, what: 'changed' });
  }
  if (now.kind !== 'folder') {
    records.set(place, { remote: NOTHING, isMaking: true });
    await records.saved();
    await remote.makeFolder(place, { signal });
    // Over WebDAV, rclone takes the refusal of a NAS that is read-only just now (405) for "it is there already".
    if ((await ask(tools, place)).kind !== 'folder')
      throw new Error('The remote said that the folder was made, and does not have it.');
  }
  tools.touched(parentOf(place));
  if (item.isOverUnseen === true) await leaveUnseen(item, tools);
  records.set(place, { remote: { kind: 'folder' }, ...(entry?.key !== undefined && { folder: entry.key }) });
  await records.saved();
}

/**
 * Where users removed a folder before they could see what was in it, and made another: what the remote has in it stays.
 * It is hidden by the new one, and what they put into that meets it as others' content.
 */
async function leaveUnseen({ place, entry }: Item, tools: StepTools): Promise<void> {
  const { records, remote, signal } = tools;
  const left = (await remote.list(place, { signal })) ?? [];
  if (left.length > 0) await tell(tools, { path: place, copy: place, what: 'deleted' });
  for (const [key, move] of records.moves)
    if (move.at === place && key !== entry?.key && isUnseen(move, records)) records.setMove(key, null);
  // What waits to be moved out of it is left as it is, with all in it and the folders around it.
  const sources = [...records.moves.values()].map(({ at }) => at).filter((at) => isInside(at, place));
  const isLeft = (one: string): boolean =>
    isInside(one, place) && !sources.some((source) => isAtOrInside(source, one) || isAtOrInside(one, source));
  for (const one of [...records.places.keys()].filter(isLeft)) records.drop(one);
}

/**
 * Deletes what users saw there when they deleted it; what others changed since stays and becomes visible
 * again.
 */
export async function deletePlace(item: Item, tools: StepTools): Promise<void> {
  const { place } = item;
  const record = tools.records.places.get(place);
  if (record === undefined || !mayBeThere(record)) return;
  await checkDeletion(item, record, tools);
  if (await isTheVeryThing(item, tools)) await noneReplaced(place, tools);
  else await deleteSeen(item, record, tools);
}

async function deleteSeen(item: Item, record: PlaceRecord, tools: StepTools): Promise<void> {
  const { place, isInTheWay } = item;
  const { records } = tools;
  const left = await removeFrom(item, record, tools);
  if (record.sending !== undefined) await tools.remote.clearLeftovers(place, { signal: tools.signal });
  // What replaces it reports the conflict in its own way.
  if (left === 'untold' && isInTheWay !== true)
    await tell(tools, { path: place, copy: place, what: 'deleted' });
  tools.touched(parentOf(place));
  const isKept = left === 'told' || left === 'untold';
  records.set(place, { remote: NOTHING, ...(isKept && { isKept: true }) });
  // It may be on a disk that the remote has just lost.
  if (left === 'absent') tools.proved(place, record);
  if (!isKept) sendOwners(place, tools);
  await records.saved();
}

/** Where that was a user's version in a conflict, and is still at its place here, it is here alone: it goes up. */
function sendOwners(copy: string, { records }: StepTools): void {
  for (const [place, record] of records.places) if (record.copy?.path === copy) records.unprove(place);
}

/**
 * Whether what is to be moved there is nowhere else: then it may have gone there already, though no record says so, as
 * with a cache that was moved to another disk. What is there stays, and the move finds out.
 */
async function isTheVeryThing({ makesWayFor }: Item, tools: StepTools): Promise<boolean> {
  return makesWayFor !== undefined && (await ask(tools, makesWayFor)).kind === 'nothing';
}

async function noneReplaced(place: string, { records }: StepTools): Promise<void> {
  for (const one of records.places.keys()) if (isAtOrInside(one, place)) records.drop(one);
  await records.saved();
}

/**
 * Rejects when something else is wanted there by now, or is there: it may be what the deletion was to make
 * way for.
 */
async function checkDeletion(
  { path, isInTheWay, planned }: Item,
  { remote }: PlaceRecord,
  { layer }: StepTools,
): Promise<void> {
  if (planned !== undefined && !isSameThing(remote, planned.remote, 0)) throw new Changed();
  const stats = await localStats(layer, path);
  if (stats !== undefined && stats.kind !== 'whiteout' && isInTheWay !== true) throw new Changed();
}

/** What stays there, and whether that was reported; `absent`: it was not there any more. */
async function removeFrom(
  { place, isSimilar }: Item,
  record: PlaceRecord,
  tools: StepTools,
): Promise<'absent' | 'nothing' | 'told' | 'untold'> {
  const { records, remote, signal } = tools;
  if (isSimilar === true) records.noteTwin(place);
  const isNamed = isSimilar === true || records.twins.hasAround(place);
  const now = await (isNamed ? askExactly : ask)(tools, place);
  if (now.kind === 'nothing') return 'absent';
  if (now.kind === 'folder') return removeFolderFrom(place, record, tools);
  const isOurs = record.sending !== undefined && looksLike(now.version, record.sending, remote.precisionMs);
  if (!isOurs && !isSameThing(now, record.remote, remote.precisionMs)) return 'untold';
  // The answer may be lost, and users may give its name back to what they renamed.
  records.unprove(place);
  await records.saved();
  await remote.deleteFile(place, { signal });
  if ((await ask(tools, place)).kind !== 'nothing')
    throw new Error('The remote still shows what was deleted.');
  return 'nothing';
}

async function removeFolderFrom(
  place: string,
  record: PlaceRecord,
  tools: StepTools,
): Promise<'nothing' | 'told' | 'untold'> {
  if (record.remote.kind === 'file') return 'untold';
  if (await removeFolder(place, tools)) return 'nothing';
  return (await hasUntold(place, tools)) ? 'untold' : 'told';
}

/** False when the folder is not empty. */
export async function removeFolder(place: string, { remote, signal }: StepTools): Promise<boolean> {
  const left = await remote.list(place, { signal });
  if (left === undefined) return true;
  if (left.length > 0) return false;
  try {
    await remote.removeFolder(place, { signal });
    return true;
  } catch (error) {
    // Somebody may just have put something in.
    const more = await remote.list(place, { signal });
    if (more === undefined) return true;
    if (more.length > 0) return false;
    throw error;
  }
}

/** Whether a folder that stays contains anything that was not reported already. */
async function hasUntold(place: string, { remote, records, signal }: StepTools): Promise<boolean> {
  const left = (await remote.list(place, { signal })) ?? [];
  const told = records.conflicts.map(({ copy }) => copy);
  return !left.every(({ name }) => told.some((one) => isAtOrInside(one, below(place, name))));
}
