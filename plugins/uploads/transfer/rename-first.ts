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
import { arrivedAt, ask, askAll, Changed, localStats, misspelt, otherName } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

export async function renameFirst({ formerNames = [], place, entry }: Item, tools: StepTools): Promise<void> {
  const between = betweenOf(entry);
  for (const { place: from, planned } of formerNames) {
    const former = tools.records.places.get(from);
    if (former === undefined || !mayBeFile(former)) continue;
    await checkStill(from, { former, planned }, tools);
    await rename({ from, to: place, between }, former, tools);
  }
}

/** True while the version that users saw at its place is between two names: users have renamed it back. */
export async function isBetween({ entry }: Item, seen: Thing, tools: StepTools): Promise<boolean> {
  return isSameThing(await ask(tools, betweenOf(entry)), seen, tools.remote.precisionMs);
}

function betweenOf(entry: Item['entry']): string {
  return `${DETOUR_PREFIX}${entry?.key}`;
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
  records.noteTwin(to);
  let now = await ask(tools, between);
  if (now === NOTHING) {
    const found = await nameOfBoth(from, to, former, tools);
    if (found === undefined) return;
    now = found.now;
    if (found.place === from) {
      records.unprove(from);
      records.set(between, { remote: now });
      await records.saved();
      await remote.moveFile(from, between, { signal });
    }
  }
  if ((await ask(tools, between)) !== NOTHING) {
    // Others have taken the name meanwhile.
    if ((await askAll(tools, to)) !== NOTHING) return;
    await remote.moveFile(between, to, { signal });
  }
  const there = await arrivedAt(tools, to);
  for (const place of [from, between]) records.set(place, { remote: NOTHING });
  records.set(there, { ...records.places.get(there), remote: now });
  tools.touched(parentOf(to));
  await records.saved();
  if (there !== to) throw misspelt(to, there);
}

/** By which of two names the remote has a file that it shows by both; undefined where they are two, or others'. */
async function nameOfBoth(
  from: string,
  to: string,
  former: PlaceRecord,
  tools: StepTools,
): Promise<{ readonly place: string; readonly now: Thing } | undefined> {
  const other = await otherName(tools, to);
  if (other !== undefined && other !== nameOf(from)) return undefined;
  const place = other === undefined ? to : from;
  const now = await ask(tools, place);
  if (!isFormer(now, former, tools.remote.precisionMs)) return undefined;
  // By the new name it came through, and the answer was lost; else they are two.
  const isOne = place === from || (await otherName(tools, from)) !== undefined;
  return isOne ? { place, now } : undefined;
}

/** True for the version that users saw by the former name, and for one that was sent there. */
function isFormer(now: Thing, { remote, sending }: PlaceRecord, precisionMs: number): boolean {
  const isSent = now.kind === 'file' && sending !== undefined && couldBe(now.version, sending, precisionMs);
  return now !== NOTHING && (isSent || isSameThing(now, remote, precisionMs));
}
