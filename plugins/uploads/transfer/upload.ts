/**
 * Brings one file up. The order of asking, writing down and doing is what makes it safe: after a stop at any
 * line, the next try comes to the same end, and nothing that somebody else put on the remote is replaced.
 */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { RemoteVersion } from 'mountkeeper';
import { parentOf } from '../compare/paths.ts';
import type { Item } from '../compare/plan-types.ts';
import { identityOf, isSameFile, NOTHING } from '../compare/records.ts';
import type { Identity, PlaceRecord, Records, Thing } from '../compare/records.ts';
import { couldBe, hasSameContent, isSameThing, lookOf, looksLike } from '../proof/versions.ts';
import { ask, Changed, checkEntry, freePath, localStats, tell } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

/**
 * On file systems with coarse times, a file that was changed this recently may change again under the same
 * time.
 */
const COARSE_TIME_MS = 20;

export interface UploadStep extends StepTools {
  readonly onProgress: (bytes: number) => void;
}

export async function uploadFile(item: Item, step: UploadStep): Promise<void> {
  const { records } = step;
  const { place } = item;
  const local = await settled(item, step);
  const record = records.places.get(place) ?? { remote: NOTHING };
  // A look that began before the last upload ended does not know of it.
  if (isSameFile(record.proved, local)) return;
  const target = record.copy?.path ?? place;
  const now = await ask(step, target);
  const expected = expectedAt(record);
  const decision = await decide(
    { now, expected, local, record, target, file: join(step.layer.upper, item.path) },
    step,
  );
  if (decision === 'is there') return prove(item, { target, local, now }, step);
  if (decision === 'conflict') {
    await divert(item, record, { local, now }, step);
    return uploadFile(item, step);
  }
  if (now.kind === 'nothing' && expected.kind === 'file' && record.copy === undefined) {
    records.set(place, { ...record, remote: NOTHING });
    await tell(step, { path: place, copy: place, what: 'deleted' });
  }
  await send(item, { target, local, now }, step);
}

/** The file as it is on the disk now, with all that programs have mapped into memory. */
async function settled(item: Item, step: UploadStep): Promise<Identity> {
  const { path } = item;
  const { layer, clock, signal } = step;
  const handle = await open(join(layer.upper, path), 'r').catch(() => undefined);
  if (handle === undefined) throw new Changed();
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
  const stats = await checkEntry(item, step);
  const ageMs = clock.now() - Number(stats.changedNs / 1_000_000n);
  if (ageMs >= 0 && ageMs < COARSE_TIME_MS) await clock.sleep(COARSE_TIME_MS - ageMs, signal);
  return identityOf(stats);
}

function expectedAt({ remote, copy }: PlaceRecord): Thing {
  if (copy === undefined) return remote;
  return copy.version === undefined ? NOTHING : { kind: 'file', version: copy.version };
}

interface Sent {
  readonly target: string;
  readonly local: Identity;
  /** What the remote has at the target. */
  readonly now: Thing;
}

interface Case {
  readonly now: Thing;
  readonly expected: Thing;
  readonly local: Identity;
  readonly record: PlaceRecord;
  readonly target: string;
  readonly file: string;
}

/** What to do about what the remote has now. */
async function decide(
  { now, expected, local, record, target, file }: Case,
  step: UploadStep,
): Promise<'send' | 'is there' | 'conflict'> {
  const { precisionMs } = step.remote;
  if (now.kind === 'nothing') return 'send';
  if (now.kind === 'folder') return 'conflict';
  const isExpected = isSameThing(now, expected, precisionMs);
  if (looksLike(now.version, lookOf(local), precisionMs)) {
    const isSame = await compared(file, target, step);
    // Size and time alone say nothing of a file that was changed within the remote's second, or whose time
    // was set back.
    if (isSame ?? !isExpected) return 'is there';
  }
  const isOurs = record.sending !== undefined && couldBe(now.version, record.sending, precisionMs);
  return isExpected || isOurs ? 'send' : 'conflict';
}

/** Undefined where the remote has no hash that could tell. */
async function compared(file: string, target: string, step: UploadStep): Promise<boolean | undefined> {
  const hashed = await ask(step, target, true);
  return hashed.kind === 'file' ? hasSameContent(file, hashed.version, step.signal) : undefined;
}

/** Someone else's version keeps the place; the user's goes beside. */
async function divert(
  { place, path }: Item,
  record: PlaceRecord,
  { local, now }: Pick<Sent, 'local' | 'now'>,
  step: UploadStep,
): Promise<void> {
  const copy = await freePath(step, place);
  const { sending: _, ...rest } = record;
  step.records.set(place, { ...rest, copy: { path: copy } });
  const versions = now.kind === 'file' ? { theirs: now.version, mine: lookOf(local) } : undefined;
  if (record.copy === undefined)
    await tell(step, { path, copy, what: 'changed', ...(versions && { versions }) });
  await step.records.saved();
}

async function send(item: Item, { target, local, now }: Sent, step: UploadStep): Promise<void> {
  const { records, remote, layer, signal } = step;
  const record = records.places.get(item.place) ?? { remote: NOTHING };
  const { proved: _, ...rest } = record;
  records.set(item.place, { ...rest, sending: lookOf(local) });
  await records.saved();
  if (now.kind === 'nothing' && parentOf(target) !== '')
    await remote.makeFolder(parentOf(target), { signal });
  await remote.upload(join(layer.upper, item.path), target, { signal, onProgress: step.onProgress });
  step.touched(parentOf(target));
  // A former try may have been cut off with another content.
  if (rest.sending !== undefined) await remote.clearLeftovers(target, { signal });
  await prove(item, { target, local, now: await ask(step, target, true) }, step);
}

/** Holds what the remote shows now against the file, and puts it on record. */
async function prove(item: Item, { target, local, now }: Sent, step: UploadStep): Promise<void> {
  const { layer, records, remote, signal } = step;
  if (now.kind !== 'file') throw new Error('The remote does not show the file that was brought there.');
  const after = await localStats(layer, item.path);
  const isUnchanged = after !== undefined && isSameFile(local, identityOf(after));
  const isLike = couldBe(now.version, lookOf(local), remote.precisionMs);
  if (!isUnchanged && !isLike) throw new Changed();
  const isWrong =
    isUnchanged && (await hasSameContent(join(layer.upper, item.path), now.version, signal)) === false;
  if (!isLike || isWrong)
    throw new Error('The remote shows another file than the one that was brought there.');
  records.set(item.place, {
    ...arrived(item.place, target, { version: now.version, precisionMs: remote.precisionMs }, records),
    ...(isUnchanged && { proved: local }),
  });
  await records.saved();
  if (!isUnchanged) throw new Changed();
}

interface Arrival {
  readonly version: RemoteVersion;
  readonly precisionMs: number;
}

function arrived(
  place: string,
  target: string,
  { version, precisionMs }: Arrival,
  { places }: Records,
): PlaceRecord {
  const former = places.get(place);
  if (target !== place) return { remote: former?.remote ?? NOTHING, copy: { path: target, version } };
  const seen = former?.remote.kind === 'file' ? former.remote.version : undefined;
  const hasFormerLook =
    former?.hasFormerLook === true || (seen !== undefined && looksLike(seen, version, precisionMs));
  return { remote: { kind: 'file', version }, ...(hasFormerLook && { hasFormerLook }) };
}
