/**
 * Users have renamed `A.txt` to `a.txt`, and it goes up. A remote that takes both for one gets the new name first:
 * it would refuse the upload, and its deletion of the former one would take both.
 */
import { nameOf, parentOf } from '../compare/paths.ts';
import { DETOUR_PREFIX } from '../compare/plan-types.ts';
import type { Item } from '../compare/plan-types.ts';
import { mayBeFile, NOTHING } from '../compare/records.ts';
import type { PlaceRecord, Thing } from '../compare/records.ts';
import { couldBe, isSameThing } from '../proof/versions.ts';
import { ask, Changed, localStats, otherName } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

export async function renameFirst({ formerNames = [], place, entry }: Item, tools: StepTools): Promise<void> {
  const between = `${DETOUR_PREFIX}${entry?.key}`;
  for (const { place: from, planned } of formerNames) {
    const former = tools.records.places.get(from);
    if (former === undefined || !mayBeFile(former)) continue;
    await checkStill(from, { former, planned }, tools);
    await rename({ from, to: place, between }, former, tools);
  }
}

/** Rejects where the former name has changed since the plan: users may have made it anew. */
async function checkStill(
  from: string,
  { former, planned }: { readonly former: PlaceRecord; readonly planned: PlaceRecord | undefined },
  { layer }: StepTools,
): Promise<void> {
  if (planned === undefined || !isSameThing(former.remote, planned.remote, 0)) throw new Changed();
  const stats = await localStats(layer, from);
  if (stats !== undefined && stats.kind !== 'whiteout') throw new Changed();
}

interface Names {
  readonly from: string;
  readonly to: string;
  readonly between: string;
}

/**
 * By way of a third name, for neither such a remote nor rclone renames a file to what they find to be there. The
 * third one is on record, so that it is cleared away wherever this ends.
 */
async function rename({ from, to, between }: Names, former: PlaceRecord, tools: StepTools): Promise<void> {
  const { records, remote, signal } = tools;
  let now = await ask(tools, between);
  if (now === NOTHING) {
    now = await ask(tools, to);
    const found = await nameOfBoth(from, to, { now, former }, tools);
    if (found === undefined) return;
    if (found === 'former') {
      records.set(between, { remote: now });
      await records.saved();
      await remote.moveFile(from, between, { signal });
    }
  }
  if ((await ask(tools, between)) !== NOTHING) {
    // Others have taken the name meanwhile.
    if ((await ask(tools, to)) !== NOTHING) return;
    await remote.moveFile(between, to, { signal });
  }
  records.set(to, { ...records.places.get(to), remote: now });
  for (const place of [from, between]) records.set(place, { remote: NOTHING });
  tools.touched(parentOf(to));
  await records.saved();
}

/** Which of two names a file has that the remote shows under both; undefined where they are two, or others'. */
async function nameOfBoth(
  from: string,
  to: string,
  { now, former }: { readonly now: Thing; readonly former: PlaceRecord },
  tools: StepTools,
): Promise<'former' | 'new' | undefined> {
  const { precisionMs } = tools.remote;
  const isSent =
    now.kind === 'file' && former.sending !== undefined && couldBe(now.version, former.sending, precisionMs);
  if (now === NOTHING || (!isSent && !isSameThing(now, former.remote, precisionMs))) return undefined;
  const other = await otherName(tools, to);
  if (other !== undefined) return other === nameOf(from) ? 'former' : undefined;
  // It came through, and the answer was lost; else they are two.
  return (await otherName(tools, from)) === undefined ? undefined : 'new';
}
