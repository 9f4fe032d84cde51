/**
 * Resolves a conflict as a person has chosen. Removes only exactly the version that the conflict was
 * reported for.
 */
import { parentOf } from '../compare/paths.ts';
import type { Conflict, RemoteVersion } from 'mountkeeper';
import { NOTHING } from '../compare/records.ts';
import type { RecordedConflict, Thing } from '../compare/records.ts';
import { isSameVersion, looksLike } from '../proof/versions.ts';
import { ask, freePath, localStats } from '../transfer/step-tools.ts';
import type { StepTools } from '../transfer/step-tools.ts';

export type Keep = 'mine' | 'theirs' | 'both';

/**
 * Rejects with a plain sentence when it cannot be done in the present state; all versions then still
 * exist. Broken off at any point, it can be asked for again.
 */
export async function resolveConflict(
  named: Pick<Conflict, 'path' | 'copy'>,
  keep: Keep,
  tools: StepTools,
): Promise<void> {
  const { records } = tools;
  const found = records.conflicts.find(({ path, copy }) => path === named.path && copy === named.copy);
  if (found === undefined) throw new Error('There is no such conflict; look at the list again.');
  try {
    if (!(await isDoneBefore(found, keep, tools))) {
      const conflict = await backInPlace(found, keep, tools);
      if (keep !== 'both') await keepOne(conflict, keep, tools);
    }
    records.dropConflict(found);
    await records.saved();
  } finally {
    tools.touched(parentOf(found.path));
  }
}

async function keepOne(conflict: RecordedConflict, keep: 'mine' | 'theirs', tools: StepTools): Promise<void> {
  const { path, copy, versions } = conflict;
  if (versions === undefined || copy === path)
    throw new Error(
      'There are no two files to choose from here: keep both, and remove what you do not want.',
    );
  for (const one of [path, copy]) {
    if ((await localStats(tools.layer, one)) !== undefined)
      throw new Error(`${one} has a change here that is not settled yet: try again in a minute.`);
  }
  const [theirs, mine] = [await versionAt(path, tools), await versionAt(copy, tools)];
  if (!isSameVersion(theirs, versions.theirs, tools.remote.precisionMs)) throw changed(path);
  if (!isMine(mine, conflict, tools)) throw changed(copy);
  await (keep === 'mine'
    ? putInPlace(conflict, theirs, tools)
    : tools.remote.deleteFile(copy, { signal: tools.signal }));
}

/**
 * By what the remote showed when it had been brought there. A conflict without that, of a former version or cut short,
 * is told by size and time; where the remote has no times, nobody knows: then it is not removed.
 */
function isMine(
  now: RemoteVersion,
  { copy, arrived, versions }: RecordedConflict,
  { remote: { precisionMs } }: StepTools,
): boolean {
  if (arrived !== undefined) return isSameVersion(now, arrived, precisionMs);
  if (versions === undefined) return false;
  if (!Number.isFinite(precisionMs) && now.bytes === versions.mine.bytes)
    throw new Error(
      `It cannot be told on this NAS whether ${copy} is still what was written here, for it keeps no times: look ` +
        'at both, and remove what you do not want.',
    );
  return looksLike(now, versions.mine, precisionMs);
}

async function versionAt(path: string, tools: StepTools): Promise<RemoteVersion> {
  const now = await ask(tools, path, true);
  if (now.kind !== 'file') throw changed(path);
  return now.version;
}

function changed(path: string): Error {
  return new Error(
    `${path} is another one on the remote since the conflict was told: look at both, and remove what you do not want.`,
  );
}

/**
 * Removes the other version last: an interruption at any point leaves both. What others have saved since it was looked
 * at goes back to its place. Where the other version is meanwhile is on record before it goes there.
 */
async function putInPlace(
  conflict: RecordedConflict,
  theirs: RemoteVersion,
  tools: StepTools,
): Promise<void> {
  const { records, remote, signal } = tools;
  const { path, copy } = conflict;
  const aside = await freePath(tools, path);
  const begun = { ...conflict, aside };
  records.setConflict(begun);
  await records.saved();
  try {
    await remote.moveFile(path, aside, { signal });
    if (!isSameVersion(await versionAt(aside, tools), theirs, remote.precisionMs)) throw changed(path);
    await remote.moveFile(copy, path, { signal });
  } catch (error) {
    // What cannot be put back now is, when it is asked for again.
    await backInPlace(begun, 'mine', tools).catch(() => undefined);
    throw error;
  }
  await remote.deleteFile(aside, { signal });
}

/** Both versions have their names again, which a broken-off try had changed. Resolves with what is on record. */
async function backInPlace(
  conflict: RecordedConflict,
  keep: Keep,
  tools: StepTools,
): Promise<RecordedConflict> {
  const { aside, ...rest } = conflict;
  if (aside === undefined) return conflict;
  const { records, remote, signal } = tools;
  const { path, copy } = conflict;
  const now = await ask(tools, path, true);
  if ((await ask(tools, aside)) !== NOTHING) {
    const isReplaced = isMineAt(now, conflict, tools) && (await ask(tools, copy)) === NOTHING;
    if (isReplaced) await remote.moveFile(path, copy, { signal });
    if (isReplaced || now === NOTHING) await remote.moveFile(aside, path, { signal });
    else if (keep !== 'both')
      throw new Error(
        `Others have saved ${path} while it was being replaced. What they had there before is ${aside}: keep both, ` +
          'look at all of them, and remove what you do not want.',
      );
  }
  records.setConflict(rest);
  await records.saved();
  return rest;
}

/** Mine has its place, and the other version is gone: only that nobody has heard of. */
async function isDoneBefore(conflict: RecordedConflict, keep: Keep, tools: StepTools): Promise<boolean> {
  const { aside, copy, path } = conflict;
  if (aside === undefined || keep !== 'mine') return false;
  const gone = [await ask(tools, aside), await ask(tools, copy)];
  return gone.every((one) => one === NOTHING) && isMineAt(await ask(tools, path, true), conflict, tools);
}

function isMineAt(now: Thing, conflict: RecordedConflict, tools: StepTools): boolean {
  return now.kind === 'file' && isMine(now.version, conflict, tools);
}
