/**
 * Resolves a conflict as a person has chosen. Removes only exactly the version that the conflict was
 * reported for.
 */
import { parentOf } from '../compare/paths.ts';
import type { Conflict, RemoteVersion } from 'mountkeeper';
import { isSameVersion, looksLike } from '../proof/versions.ts';
import { ask, freePath, localStats } from '../transfer/step-tools.ts';
import type { StepTools } from '../transfer/step-tools.ts';

export type Keep = 'mine' | 'theirs' | 'both';

/**
 * Rejects with a plain sentence when it cannot be done in the present state; both versions then still
 * exist.
 */
export async function resolveConflict(
  named: Pick<Conflict, 'path' | 'copy'>,
  keep: Keep,
  tools: StepTools,
): Promise<void> {
  const { records } = tools;
  const conflict = records.conflicts.find(({ path, copy }) => path === named.path && copy === named.copy);
  if (conflict === undefined) throw new Error('There is no such conflict; look at the list again.');
  if (keep !== 'both') await keepOne(conflict, keep, tools);
  records.dropConflict(conflict);
  await records.saved();
}

async function keepOne(conflict: Conflict, keep: 'mine' | 'theirs', tools: StepTools): Promise<void> {
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
  const { precisionMs } = tools.remote;
  if (!isSameVersion(theirs, versions.theirs, precisionMs)) throw changed(path);
  // On a remote without modification times it is unknown whether the copy was changed since: then it is not
  // removed.
  if (!looksLike(mine, versions.mine, precisionMs)) throw changed(copy);
  await (keep === 'mine'
    ? putInPlace(conflict, theirs, tools)
    : tools.remote.deleteFile(copy, { signal: tools.signal }));
  tools.touched(parentOf(path));
}

async function versionAt(path: string, tools: StepTools): Promise<RemoteVersion> {
  const now = await ask(tools, path);
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
 * at goes back to its place.
 */
async function putInPlace({ path, copy }: Conflict, theirs: RemoteVersion, tools: StepTools): Promise<void> {
  const { remote, signal } = tools;
  const aside = await freePath(tools, path);
  await remote.moveFile(path, aside, { signal });
  if (!isSameVersion(await versionAt(aside, tools), theirs, remote.precisionMs)) {
    await remote.moveFile(aside, path, { signal });
    throw changed(path);
  }
  await remote.moveFile(copy, path, { signal });
  await remote.deleteFile(aside, { signal });
}
