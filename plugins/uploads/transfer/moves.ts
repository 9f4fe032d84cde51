/**
 * Renames on the remote what users renamed: folders, and files that overlayfs keeps no data of. Each step
 * asks first and can be done again; what others have put in the way stays beside.
 */
import type { RemoteFailure } from 'mountkeeper';
import { below, parentOf } from '../compare/paths.ts';
import { DETOUR_PREFIX } from '../compare/plan-types.ts';
import type { Item } from '../compare/plan-types.ts';
import { NOTHING } from '../compare/records.ts';
import type { Thing } from '../compare/records.ts';
import type { ScanEntry } from '../compare/scan.ts';
import { isSameThing } from '../proof/versions.ts';
import { removeFolder } from './folders.ts';
import { ask, Changed, checkEntry, freePath, tell } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

export async function moveEntry(item: Item, tools: StepTools): Promise<void> {
  const { entry, move } = item;
  if (move === undefined || entry?.key === undefined) throw new Changed();
  if (move.going !== undefined) {
    await findOut(entry.key, tools);
    throw new Changed();
  }
  await checkEntry(item, tools);
  try {
    await bring(
      entry,
      entry.key,
      { from: move.source, to: move.isDetour ? `${DETOUR_PREFIX}${entry.key}` : item.path },
      tools,
    );
  } catch (error) {
    // As long as nobody knows where it is, listings cannot be read anew.
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
  const now =
    entry.kind === 'folder'
      ? await bringFolder(way.from, way.to, tools)
      : await bringFile(entry, way.from, way.to, tools);
  if (now === undefined) return;
  arrived(key, { ...way, now }, tools);
  await records.saved();
}

/** A former try may have come through although its answer was never seen. */
export async function findOut(key: string, tools: StepTools): Promise<void> {
  const { records } = tools;
  const known = records.moves.get(key);
  if (known?.going === undefined) return;
  const [from, to] = [await ask(tools, known.at), await ask(tools, known.going)];
  const seen = records.places.get(known.at)?.remote ?? NOTHING;
  const isSeen = (now: Thing): boolean =>
    seen.kind === 'file' && isSameThing(now, seen, tools.remote.precisionMs);
  // Others may have put something where it was.
  const isThere = from.kind === 'nothing' ? to.kind !== 'nothing' : isSeen(to) && !isSeen(from);
  if (isThere) arrived(key, { from: known.at, to: known.going, now: to }, tools);
  else {
    const { going: _, ...rest } = known;
    records.setMove(key, rest);
  }
  await records.saved();
}

interface Arrival extends Way {
  /** What the remote shows there. */
  readonly now: Thing;
}

/** The mount reads the folders anew when marks are, and no sooner: what is marked would show nothing. */
function arrived(key: string, { from, to, now }: Arrival, { records }: StepTools): void {
  const { going: _, ...known } = records.moves.get(key) ?? { at: from };
  records.setMove(key, known);
  records.renamed(from, to);
  records.set(to, now.kind === 'folder' ? { remote: now, folder: key, isShown: true } : { remote: now });
}

/**
 * Undefined when there is nothing to move any more: others have changed or removed the version that users
 * renamed.
 */
async function bringFile(
  entry: ScanEntry,
  source: string,
  target: string,
  tools: StepTools,
): Promise<Thing | undefined> {
  const { remote, records, signal } = tools;
  const [from, to] = [await ask(tools, source), await ask(tools, target)];
  const seen = records.places.get(source)?.remote;
  if (seen === undefined) throw new Changed();
  if (!isVersion(from, seen, entry, tools)) {
    await giveUp(entry, { source, isLeft: from.kind !== 'nothing' }, tools);
    return undefined;
  }
  if (to.kind !== 'nothing') await giveWay(target, to.kind, tools);
  if (parentOf(target) !== '') await remote.makeFolder(parentOf(target), { signal });
  await remote.moveFile(source, target, { signal });
  const now = await ask(tools, target);
  // Not all remotes keep the time of what is renamed.
  if (now.kind !== 'file' || now.version.bytes !== entry.bytes)
    throw new Error('The remote does not show the file that was moved.');
  return now;
}

function isVersion(now: Thing, seen: Thing, { bytes }: ScanEntry, { remote }: StepTools): boolean {
  return now.kind === 'file' && now.version.bytes === bytes && isSameThing(now, seen, remote.precisionMs);
}

/**
 * What users renamed is not there any more, and here is nothing of it: what others made of it shows again at
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
  // At home: then it hides what lies below, and leaves.
  records.setMove(entry.key!, { at: entry.path });
  tools.touched(parentOf(source));
  await records.saved();
}

async function bringFolder(source: string, target: string, tools: StepTools): Promise<Thing> {
  const { remote, signal } = tools;
  const [from, to] = [await ask(tools, source), await ask(tools, target)];
  if (to.kind === 'file') await giveWay(target, to.kind, tools);
  if (from.kind === 'folder' && to.kind === 'folder') await merge(source, target, tools);
  else if (from.kind === 'folder') {
    if (parentOf(target) !== '') await remote.makeFolder(parentOf(target), { signal });
    await remote.moveFolder(source, target, { signal });
  } else if (to.kind !== 'folder') {
    // Others have removed it: what users changed in it needs a folder.
    await tell(tools, { path: target, copy: target, what: 'moved' });
    await remote.makeFolder(target, { signal });
  }
  const now = await ask(tools, target);
  if (now.kind !== 'folder') throw new Error('The remote does not show the folder that was moved.');
  return now;
}

/** Others have put something where it is to go: that stays, beside. */
async function giveWay(place: string, kind: 'file' | 'folder', tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const copy = await freePath(tools, place);
  await (kind === 'folder'
    ? remote.moveFolder(place, copy, { signal })
    : remote.moveFile(place, copy, { signal }));
  await tell(tools, { path: place, copy, what: 'moved' });
}

/**
 * Both are there: a move that was cut off, or others have made a folder of that name. Nothing in either is
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
      await remote.moveFolder(from, to, { signal });
    } else if (other === undefined) await remote.moveFile(from, to, { signal });
    else await mergeFile(from, to, tools);
  }
  await removeFolder(source, tools);
}

async function mergeFile(from: string, to: string, tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const [ours, theirs] = [await ask(tools, from, true), await ask(tools, to, true)];
  const isCopy =
    ours.kind === 'file' &&
    theirs.kind === 'file' &&
    ours.version.hash !== undefined &&
    isSameThing(ours, theirs, remote.precisionMs);
  if (isCopy) return remote.deleteFile(from, { signal });
  const copy = await freePath(tools, to);
  await remote.moveFile(from, copy, { signal });
  await tell(tools, { path: to, copy, what: 'moved' });
}
