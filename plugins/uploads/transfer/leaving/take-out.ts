/**
 * Removes from the upper folder what would only hide the remote from now on, and updates marks of folders.
 */
import type { LeavingEntry } from 'mountkeeper';
import { NOTHING } from '../../compare/records.ts';
import type { ScanEntry } from '../../compare/scan.ts';
import { ask, localStats } from '../step-tools.ts';
import type { StepTools } from '../step-tools.ts';

/**
 * First the share's mount refreshes these folders, so that the remote's version becomes visible. Files are
 * recorded as leaving before, because their absence would look like a deletion. `shown`: what becomes visible with a
 * folder that hides nothing any more. Resolves with the removed paths.
 */
export async function takeOutDone(
  entries: readonly LeavingEntry[],
  folders: readonly string[],
  tools: StepTools,
  shown: (folder: string) => Iterable<string> = (folder) => [folder],
): Promise<ReadonlySet<string>> {
  const { records, remote, signal } = tools;
  await remote.forget(folders, { signal });
  if (entries.length === 0) return new Set();
  const taken = await taking(entries, tools);
  for (const entry of entries) {
    if (!taken.has(entry.path)) stayed(entry.path, tools);
    else if (leavesItself(entry)) left(entry, tools);
    else for (const path of shown(entry.path)) setShown(path, tools);
  }
  await records.saved();
  // The remote may be slow, or not answer: what has left and what has not is known by then.
  for (const entry of entries.filter(({ path }) => !taken.has(path))) {
    await noteHiding(entry, tools);
    await noteAlone(entry, tools);
  }
  await records.saved();
  return taken;
}

/**
 * For entries that users still look for at a former place: rewrites their mark; removes files without data.
 * The mount refreshes the folders at the right moment. Resolves with the keys of entries that users now see
 * at their place on the remote.
 */
export async function renewMoved(
  entries: readonly ScanEntry[],
  tools: StepTools,
): Promise<{ readonly keys: readonly string[]; readonly isWhole: boolean }> {
  const { records } = tools;
  const taken = await taking(entries, tools);
  for (const entry of entries.filter(leavesItself)) {
    if (taken.has(entry.path)) left(entry, tools);
    else stayed(entry.path, tools);
  }
  await records.saved();
  const keys: string[] = [];
  for (const { path, key } of entries.filter((entry) => taken.has(entry.path) && !leavesItself(entry)))
    // Told by its path: another one may have taken its place, and hide what the remote has there.
    if (key !== undefined && (await localStats(tools.layer, path))?.key === key) keys.push(key);
  return { keys, isWhole: entries.every(({ path }) => taken.has(path)) };
}

/**
 * When it fails, all of them are in the upper folder again: one that is missing later was deleted by users. Those that
 * leave are recorded as leaving before.
 */
async function taking(entries: readonly LeavingEntry[], tools: StepTools): Promise<ReadonlySet<string>> {
  const leaving = entries.filter(leavesItself);
  // A look meanwhile finds them missing: what comes back must still be a change of the version that users saw. Before
  // they are marked: a look that finds one here with its mark, and not on its way, takes the mark from it.
  const end = tools.leaving(leaving.map(({ path }) => path));
  let taken: ReadonlySet<string> = new Set();
  try {
    for (const { path } of leaving) setLeaving(path, true, tools);
    await tools.records.saved();
    taken = new Set(await tools.layer.takeOut(entries));
    return taken;
  } catch (error) {
    for (const { path } of leaving) stayed(path, tools);
    await tools.records.saved();
    throw error;
  } finally {
    end(taken);
  }
}

/**
 * Where users deleted its folder meanwhile, it is on record as what they deleted. What is known of a file with data
 * stays on record until it can come back no more.
 */
function left({ path, kind, hasNoData, key }: ScanEntry, { records }: StepTools): void {
  const record = records.places.get(path);
  const mayReturn = kind === 'file' && hasNoData !== true;
  if (record?.isLeaving === true && mayReturn) records.set(path, { ...record, away: key ?? '' });
  else if (record?.isLeaving === true) records.drop(path);
  if (key !== undefined) records.setMove(key, null);
}

/** For an entry with a mark, only the mark changes. */
function leavesItself({ kind, nowAt }: LeavingEntry): boolean {
  return kind !== 'folder' && nowAt === undefined;
}

/**
 * A whiteout that stays although the deletion is done may hide what others have put there since: that must
 * become visible.
 */
async function noteHiding({ path, kind, copy }: LeavingEntry, tools: StepTools): Promise<void> {
  const { places } = tools.records;
  const record = places.get(path);
  const isHiding =
    kind === 'whiteout' && copy === undefined && (record?.remote ?? NOTHING).kind === 'nothing';
  if (!isHiding || (await ask(tools, path)).kind === 'nothing') return;
  // While the remote was asked, users may have put something there.
  if (places.get(path) === record) tools.records.set(path, { remote: NOTHING, ...record, isKept: true });
}

/**
 * A conflict's file that stays here, where nothing is by the name that it went up by: somebody has taken that away, or
 * given it another name. What is here would be on record as being there: it goes up again.
 */
async function noteAlone({ path, kind, copy }: LeavingEntry, tools: StepTools): Promise<void> {
  const { records } = tools;
  const record = records.places.get(path);
  if (kind !== 'file' || copy === undefined || record?.copy?.path !== copy) return;
  // What does not answer is asked when it is to leave again.
  const now = await ask(tools, copy).catch(() => undefined);
  if (now?.kind === 'nothing' && records.places.get(path) === record) records.unprove(path);
}

/** What is on record of its content is no longer all of it. */
function setShown(path: string, { records }: StepTools): void {
  const { isTree: _, ...record } = records.places.get(path) ?? { remote: NOTHING };
  if (record.remote.kind === 'folder') records.set(path, { ...record, isShown: true });
}

/** What could not be brought back yet is missing, and not because users deleted it. */
function stayed(path: string, tools: StepTools): void {
  if (tools.layer.unrestored?.().has(path) !== true) setLeaving(path, false, tools);
}

function setLeaving(path: string, isLeaving: boolean, { records }: StepTools): void {
  const record = records.places.get(path);
  // It has left: a plan that is older asks once more. Whether it is back, a look finds out.
  if (record === undefined || record.away !== undefined) return;
  if ((record.isLeaving ?? false) !== isLeaving) records.set(path, { ...record, isLeaving });
}
