/** Takes out of the upper folder what would only hide the remote from now on. */
import type { LeavingEntry, UpperEntry } from 'mountkeeper';
import { NOTHING } from '../compare/records.ts';
import { ask } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

/**
 * First the share's mount is to read these folders anew, so that what shows then is the remote's. Files are noted as leaving
 * before, or their absence would be taken for a deletion. Resolves with the paths that were taken out.
 */
export async function takeOutDone(entries: readonly LeavingEntry[], folders: readonly string[], tools: StepTools): Promise<ReadonlySet<string>> {
  const { layer, records, remote, signal } = tools;
  await remote.forget(folders, { signal });
  if (entries.length === 0) return new Set();
  const leaving = entries.filter(leavesItself);
  for (const { path } of leaving) setLeaving(path, true, tools);
  await records.saved();
  const taken = new Set(await layer.takeOut(entries));
  for (const entry of entries) {
    if (!taken.has(entry.path)) await stays(entry, tools);
    else if (entry.movedFrom !== undefined) records.setMove(entry.inode, null);
    else if (leavesItself(entry)) records.drop(entry.path);
    else setShown(entry.path, tools);
  }
  await records.saved();
  return taken;
}

/** Of a folder with a mark only the mark goes. */
function leavesItself({ kind, isOpaque, movedFrom }: UpperEntry): boolean {
  return kind !== 'folder' || (!isOpaque && movedFrom === undefined);
}

/** A whiteout that stays although the deletion is done may hide what others have put there since: that is to show. */
async function stays({ path, kind, copy }: LeavingEntry, tools: StepTools): Promise<void> {
  setLeaving(path, false, tools);
  const record = tools.records.places.get(path) ?? { remote: NOTHING };
  const isHiding = kind === 'whiteout' && copy === undefined && record.remote.kind === 'nothing';
  if (isHiding && (await ask(tools, path)).kind !== 'nothing') tools.records.set(path, { ...record, isKept: true });
}

function setShown(path: string, { records }: StepTools): void {
  const record = records.places.get(path);
  if (record !== undefined) records.set(path, { ...record, isShown: true });
}

function setLeaving(path: string, isLeaving: boolean, { records }: StepTools): void {
  const record = records.places.get(path);
  if (record !== undefined && (record.isLeaving ?? false) !== isLeaving) records.set(path, { ...record, isLeaving });
}
