/** Takes out of the upper folder what would only hide the remote from now on. */
import type { UpperEntry } from 'mountkeeper';
import type { StepTools } from './step-tools.ts';

/**
 * First the share's mount is to read these folders anew, so that what shows then is the remote's. Files are noted as leaving
 * before, or their absence would be taken for a deletion. Resolves with the paths that were taken out.
 */
export async function takeOutDone(entries: readonly UpperEntry[], folders: readonly string[], tools: StepTools): Promise<ReadonlySet<string>> {
  const { layer, records, remote, signal } = tools;
  await remote.forget(folders, { signal });
  if (entries.length === 0) return new Set();
  const files = entries.filter(({ kind }) => kind === 'file');
  for (const { path } of files) setLeaving(path, true, tools);
  await records.saved();
  const taken = new Set(await layer.takeOut(entries));
  for (const { path, kind, movedFrom, inode } of entries) {
    if (!taken.has(path)) {
      if (kind === 'file') setLeaving(path, false, tools);
    } else if (movedFrom !== undefined) records.setMove(inode, null);
    else records.drop(path);
  }
  await records.saved();
  return taken;
}

function setLeaving(path: string, isLeaving: boolean, { records }: StepTools): void {
  const record = records.places.get(path);
  if (record !== undefined) records.set(path, { ...record, isLeaving });
}
