/**
 * Uploads one file. The order of checking, recording and doing makes it safe: after an interruption at any
 * line, the next attempt reaches the same result, and nothing that somebody else put on the remote is
 * replaced.
 */
import type { RemoteFailure, RemoteVersion } from 'mountkeeper';
import { nameOf, parentOf } from '../compare/paths.ts';
import type { Item } from '../compare/plan-types.ts';
import { identityOf, isSameFile, isSameWriting, NOTHING } from '../compare/records.ts';
import type { Identity, PlaceRecord, Records, Thing } from '../compare/records.ts';
import { compareContent, isSameContent } from '../proof/same-content.ts';
import { hasSameContent } from '../proof/versions.ts';
import { couldBe, isSameThing, lookOf, looksLike } from '../proof/versions.ts';
import type { Look } from '../proof/versions.ts';
import { freeze, withContent } from './content.ts';
import type { Content } from './content.ts';
import { isBetween, renameFirst } from './rename-first.ts';
import {
  arrivedAt,
  ask,
  askForNew,
  Changed,
  checkEntry,
  freePath,
  localStats,
  misspelt,
  tell,
} from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

/**
 * On file systems with coarse timestamps, a file changed within this time may change again without a new
 * timestamp.
 */
const COARSE_TIME_MS = 20;

/** What is larger takes so long that others may save something by its name meanwhile. */
const LONG_BYTES = 4 * 2 ** 20;

export interface UploadStep extends StepTools {
  readonly onProgress: (bytes: number) => void;
}

interface Upload extends UploadStep {
  readonly content: Content;
}

export function uploadFile(item: Item, step: UploadStep): Promise<void> {
  return withContent(item, step, (content) => uploadContent(item, { ...step, content }));
}

async function uploadContent(item: Item, step: Upload): Promise<void> {
  const { records } = step;
  const { place } = item;
  const local = await settled(item, step);
  await renameFirst(item, step);
  const record = records.places.get(place) ?? { remote: NOTHING };
  // A scan that began before the last upload ended does not know about it.
  if (isSameFile(record.proved, local)) return;
  if (isFirst(place, record, { ...step, local }) && (await sendNew(item, local, step))) return;
  await compareAndSend(item, local, step);
}

/** Reading the file took a while: what has become of its record meanwhile is known better. */
function noteProved(
  place: string,
  record: PlaceRecord,
  { local, records }: { readonly local: Identity } & Pick<StepTools, 'records'>,
): Promise<void> {
  if ((records.places.get(place) ?? record) !== record) throw new Changed();
  records.set(place, { ...record, proved: local });
  return records.saved();
}

/** Asks what the remote has there, and decides by that. */
async function compareAndSend(item: Item, local: Identity, step: Upload): Promise<void> {
  const { records } = step;
  const { place } = item;
  const record = records.places.get(place) ?? { remote: NOTHING };
  const target = record.copy?.path ?? place;
  const now = await askForNew(step, target);
  const expected = expectedAt(record);
  const decision = await decide({ now, expected, local, record, target }, step);
  if (await isTheirsAlone(decision, { now, record, local }, step))
    return noteProved(place, record, { local, records });
  if (decision === 'conflict') return sendBeside(item, { record, local, now }, step);
  if (decision !== 'send') {
    // It has arrived although an attempt broke off, perhaps as it took away what a former one had left.
    if (record.sending !== undefined) await step.remote.clearLeftovers(target, { signal: step.signal });
    await stayNamed(target, local, step);
    return prove(item, { target, local, now, isCompared: true }, step);
  }
  if (now.kind === 'nothing' && record.copy === undefined) await noteMissing(item, record, step);
  await send(item, { target, local, now }, step);
}

async function sendBeside(
  item: Item,
  { record, ...sent }: Pick<Sent, 'local' | 'now'> & { readonly record: PlaceRecord },
  step: Upload,
): Promise<void> {
  // What was brought to the copy never showed there as it was sent. By a new name each time, there would be no end.
  if (record.copy !== undefined && record.sending !== undefined)
    throw new Error(
      `The remote shows another file than the one that was brought to '${nameOf(record.copy.path)}'. Look at it ` +
        'there, and remove it or give it another name: then this one goes up again.',
    );
  await divert(item, record, sent, step);
  return uploadContent(item, step);
}

/**
 * Whether others have changed or deleted it, and here only its mode has been changed since it was proved, or it was
 * taken out and has come back: that is no conflict, and shows once it leaves. By the content, too, since programs set
 * times back. What this daemon may have taken from there itself is proved no more (`Records.unprove`).
 */
async function isTheirsAlone(
  decision: Decision,
  { now, record: { copy, proved, remote }, local }: Pick<Case, 'now' | 'record' | 'local'>,
  { content, signal }: Upload,
): Promise<boolean> {
  if (decision !== 'conflict' && now.kind !== 'nothing') return false;
  if (copy !== undefined || remote.kind !== 'file' || !isSameWriting(proved, local)) return false;
  return (await hasSameContent(content.file, remote.version, signal)) === true;
}

/** Nothing of ours or of others is known to be there, nor may have come there unseen. */
function isFirst(
  place: string,
  record: PlaceRecord,
  { local, records, remote }: Upload & { readonly local: Identity },
): boolean {
  return (
    remote.leavesTaken === true &&
    local.bytes <= LONG_BYTES &&
    record.remote.kind === 'nothing' &&
    record.sending === undefined &&
    record.copy === undefined &&
    !records.twins.has(place)
  );
}

/**
 * Sends it without asking first: the remote itself looks, right before the transfer, and leaves what it finds. False
 * where others have put something there, or may have: then it is asked for.
 */
async function sendNew(item: Item, local: Identity, step: Upload): Promise<boolean> {
  const { content, records, remote, signal } = step;
  const { place } = item;
  const { proved: _, ...rest } = records.places.get(place) ?? { remote: NOTHING };
  records.set(place, { ...rest, sending: lookOf(local) });
  await records.saved();
  const wasSent = await remote.uploadNew!(content.file, place, { signal, onProgress: step.onProgress });
  if (!wasSent) {
    records.set(place, rest);
    await records.saved();
    return false;
  }
  step.onProgress(local.bytes);
  step.touched(parentOf(place));
  await prove(item, { target: place, local, now: await ask(step, place, true) }, step);
  return true;
}

/** Others have deleted what users saw there, but where it is on its way between two names. */
async function noteMissing(item: Item, record: PlaceRecord, step: UploadStep): Promise<void> {
  if (record.remote.kind !== 'file') return;
  const { place } = item;
  const isMissing = !(await isBetween(item, record.remote, step));
  step.records.set(place, { ...record, remote: NOTHING });
  if (isMissing) await tell(step, { path: place, copy: place, what: 'deleted' });
}

/**
 * The file as it is on disk now, with what programs have written through memory mappings; that is sent. Its state is
 * noted before the sync: only then does each later change through a mapping give it another time.
 */
async function settled(item: Item, step: Upload): Promise<Identity> {
  const { clock, content, signal } = step;
  const stats = await checkEntry(item, step);
  const ageMs = clock.now() - Number(stats.changedNs / 1_000_000n);
  if (ageMs >= 0 && ageMs < COARSE_TIME_MS) await clock.sleep(COARSE_TIME_MS - ageMs, signal);
  const local = identityOf(stats);
  await content.handle.datasync();
  const isWhole = await freeze(content, local);
  if (!isSameFile(local, identityOf(await checkEntry(item, step)))) throw new Changed();
  if (!isWhole)
    throw new Error('The local disk gives less of the file than there is; the remote keeps its version.');
  return local;
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
  /** Its content was found equal already. */
  readonly isCompared?: boolean;
}

interface Case {
  readonly now: Thing;
  readonly expected: Thing;
  readonly local: Identity;
  readonly record: PlaceRecord;
  readonly target: string;
}

type Decision = 'send' | 'is the same' | 'conflict';

/** Decides by what the remote has now. */
async function decide(one: Case, step: Upload): Promise<Decision> {
  const { now, expected, record } = one;
  const { precisionMs } = step.remote;
  if (now.kind === 'nothing') return 'send';
  if (now.kind === 'folder') return 'conflict';
  const isExpected = isSameThing(now, expected, precisionMs);
  // By the name of a copy nobody else saves anything.
  const isSent = record.copy === undefined ? isSending : couldBe;
  const isOurs = record.sending !== undefined && isSent(now.version, record.sending, precisionMs);
  const there = await arrivedBefore(one, { version: now.version, isExpected, isOurs }, step);
  return there ?? (isExpected || isOurs ? 'send' : 'conflict');
}

/**
 * Where the remote keeps no times, a file shows another one than it was sent with: a size alone makes nothing ours.
 * What may have been moved there shows the very time that is on record.
 */
function isSending(version: RemoteVersion, sending: Look, precisionMs: number): boolean {
  return couldBe(version, sending, Number.isFinite(precisionMs) ? precisionMs : 0);
}

interface Seen {
  readonly version: RemoteVersion;
  readonly isExpected: boolean;
  readonly isOurs: boolean;
}

/** Whether the remote has the file already. */
async function arrivedBefore(
  one: Case,
  seen: Seen,
  step: Upload,
): Promise<Exclude<Decision, 'send'> | undefined> {
  const { local, target } = one;
  if (isPerhapsSent(one, seen, step))
    return (await compared(target, compareContent, step)) === true ? 'is the same' : undefined;
  const isAlike = looksLike(seen.version, lookOf(local), step.remote.precisionMs);
  const isSame = isAlike ? await compared(target, isSameContent, step) : false;
  if (isSame !== undefined || seen.isExpected) return isSame === true ? 'is the same' : undefined;
  // Equal size and time prove nothing: the file may have been changed since it was sent, and its time set back, and
  // what others have put there may look like it.
  return (await compared(target, compareContent, step)) === true ? 'is the same' : undefined;
}

/**
 * An upload that came through, and whose proof broke off, is known by its content alone where the remote keeps no
 * times. It may keep none although it says so.
 */
function isPerhapsSent(
  { local, record }: Case,
  { version, isExpected, isOurs }: Seen,
  { remote }: Upload,
): boolean {
  if (record.sending === undefined || version.bytes !== local.bytes) return false;
  return !Number.isFinite(remote.precisionMs) || (!isExpected && !isOurs);
}

/** Undefined when the content was not compared. */
async function compared(
  target: string,
  compare: typeof compareContent | typeof isSameContent,
  step: Upload,
): Promise<boolean | undefined> {
  const { file } = step.content;
  const hashed = await ask(step, target, true);
  return hashed.kind === 'file' ? compare({ file, target, version: hashed.version }, step) : undefined;
}

/** Someone else's version keeps the path; the user's version gets another name. */
async function divert(
  { place, path }: Item,
  record: PlaceRecord,
  { local, now }: Pick<Sent, 'local' | 'now'>,
  step: UploadStep,
): Promise<void> {
  const copy = await freePath(step, place);
  const { sending, ...rest } = record;
  // Nothing says any more that something of ours may lie beside it.
  if (sending !== undefined)
    await step.remote.clearLeftovers(record.copy?.path ?? place, { signal: step.signal });
  step.records.set(place, { ...rest, copy: { path: copy } });
  const versions = now.kind === 'file' ? { theirs: now.version, mine: lookOf(local) } : undefined;
  if (record.copy === undefined)
    await tell(step, { path, copy, what: 'changed', ...(versions && { versions }) });
  await step.records.saved();
}

async function send(item: Item, { target, local, now }: Sent, step: Upload): Promise<void> {
  const { content, records, remote, signal } = step;
  const record = records.places.get(item.place) ?? { remote: NOTHING };
  const { proved: _, ...rest } = record;
  records.set(item.place, { ...rest, ...ofFormerAttempt(record, now, step), sending: lookOf(local) });
  await records.saved();
  if (now.kind === 'nothing' && parentOf(target) !== '')
    await remote.makeFolder(parentOf(target), { signal });
  const stillSo = async (): Promise<void> => {
    if (!isSameThing(await ask(step, target), now, remote.precisionMs)) throw new Changed();
  };
  // By itself, the remote would replace whatever is there by then. What is new leaves what it finds.
  const replacing = now.kind === 'file' ? { isReplacing: true, beforeNaming: stillSo } : {};
  await remote
    .upload(content.file, target, { signal, onProgress: step.onProgress, ...replacing })
    .catch(async (error: RemoteFailure) => {
      if (error.remote !== 'silent' && !signal.aborted) await stillSo();
      throw error;
    });
  step.onProgress(local.bytes);
  step.touched(parentOf(target));
  // An earlier attempt with other content may have been interrupted.
  if (rest.sending !== undefined) await remote.clearLeftovers(target, { signal });
  await stayNamed(target, local, step);
  const there = await ask(step, target, true);
  await prove(item, { target, local, now: there }, step);
}

/** What an attempt whose answer was lost has brought there is ours from now on: nothing else says so any more. */
function ofFormerAttempt(
  record: PlaceRecord,
  now: Thing,
  { remote: { precisionMs } }: UploadStep,
): Pick<PlaceRecord, 'copy'> | Pick<PlaceRecord, 'remote'> {
  if (now.kind !== 'file' || isSameThing(now, expectedAt(record), precisionMs)) return {};
  return record.copy === undefined ? { remote: now } : { copy: { ...record.copy, version: now.version } };
}

/** Rejects where the remote has given the file a former name: what is there is ours, and is renamed first. */
async function stayNamed(target: string, local: Identity, step: UploadStep): Promise<void> {
  const there = await arrivedAt(step, target);
  if (there === target) return;
  const now = await ask(step, there);
  // Others may have a file by the former name, and the listing may not show ours yet.
  if (now.kind !== 'file' || !couldBe(now.version, lookOf(local), step.remote.precisionMs)) throw notShown();
  step.records.set(there, { remote: now });
  await step.records.saved();
  throw misspelt(target, there);
}

function notShown(): Error {
  return new Error('The remote does not show the file that was brought there.');
}

/** Compares what the remote has now with the file, and records the result. */
async function prove(
  item: Item,
  { target, local, now, isCompared = false }: Sent,
  step: Upload,
): Promise<void> {
  const { records, remote } = step;
  if (now.kind !== 'file') throw notShown();
  const { version } = now;
  const before = records.places.get(item.place);
  await noteArrival(item, { target, local, version }, step);
  const isUnchanged = await checkArrival(item, { target, local, version }, isCompared, step);
  records.set(item.place, {
    ...arrived(item.place, target, { version, precisionMs: remote.precisionMs }, records),
    ...(isUnchanged && { proved: local }),
  });
  if (before?.sending !== undefined) step.proved(item.place, before);
  // Whoever resolves the conflict has to know it again, also where the remote keeps no times, or rounds them.
  const conflict = target === item.place ? undefined : records.conflicts.find(({ copy }) => copy === target);
  if (conflict !== undefined) records.setConflict({ ...conflict, arrived: version });
  await records.saved();
  if (!isUnchanged) throw new Changed();
}

/**
 * What shows right after an upload is ours, and may be replaced by the next. By the new name of a copy, that nobody
 * else knows, also where the remote has changed it on arrival. Where the remote keeps no times, nothing else tells it
 * from what others save from then on: reading it back may take hours, and finds that it was damaged.
 */
async function noteArrival(
  { place }: Item,
  { target, local, version }: Shown,
  { records, remote }: Upload,
): Promise<void> {
  const record = records.places.get(place);
  const isUntimed = !Number.isFinite(remote.precisionMs) && version.bytes === local.bytes;
  if (record === undefined || (target === place && !isUntimed)) return;
  const shown: Partial<PlaceRecord> =
    target === place ? { remote: { kind: 'file', version } } : { copy: { path: target, version } };
  records.set(place, { ...record, ...shown });
  await records.saved();
}

interface Shown {
  readonly target: string;
  readonly local: Identity;
  readonly version: RemoteVersion;
}

/**
 * Rejects where the remote shows another file. Resolves to false where users have written since, so that only
 * the size and the time speak for it.
 */
async function checkArrival(item: Item, shown: Shown, isCompared: boolean, step: Upload): Promise<boolean> {
  const isOnTime = couldBe(shown.version, lookOf(shown.local), step.remote.precisionMs);
  const isLike = isOnTime || (await isOursUntimed(item, shown, isCompared, step));
  const after = await localStats(step.layer, item.path);
  const isUnchanged = after !== undefined && isSameFile(shown.local, identityOf(after));
  if (!isUnchanged && !isLike) throw new Changed();
  const isWrong = isOnTime && isUnchanged && !isCompared && (await isDamaged(item, shown, step));
  if (!isLike || isWrong)
    throw new Error('The remote shows another file than the one that was brought there.');
  return isUnchanged;
}

/**
 * Whether it is the file that was sent although it shows another time, as where the remote keeps times more coarsely
 * than it says, or shows when a file arrived. Only the content tells, whatever the share's proof is. The remote's times
 * count for no more than they have shown to be worth.
 */
async function isOursUntimed(
  { place }: Item,
  { target, local, version }: Shown,
  isCompared: boolean,
  step: Upload,
): Promise<boolean> {
  if (version.bytes !== local.bytes) return false;
  const { content, records, times } = step;
  if (!isCompared && !(await compareContent({ file: content.file, target, version }, step))) return false;
  times.note(place, { sentMs: lookOf(local).modifiedMs, shownMs: version.modifiedMs }, records);
  return true;
}

/** Rejects with a `Changed` where users have written since: reading back may take hours. */
async function isDamaged(item: Item, { target, local, version }: Shown, step: Upload): Promise<boolean> {
  const { content, layer } = step;
  const isSame = await isSameContent({ file: content.file, target, version }, step);
  if (isSame !== false) return false;
  const now = await localStats(layer, item.path);
  if (now === undefined || !isSameFile(local, identityOf(now))) throw new Changed();
  return true;
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
