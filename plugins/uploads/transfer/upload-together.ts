/**
 * New small files go up by one call of rclone, and are proved by another. For each file the order is that of a file
 * that goes alone: what is about to be sent is on record before, the remote looks for the name right before the
 * transfer and leaves what it finds, and what it has afterwards is held against the file here. Whatever does not come
 * through goes alone.
 */
import type { Batch, RemoteFailure, RemoteVersion } from 'mountkeeper';
import { parentOf } from '../compare/paths.ts';
import type { Item } from '../compare/plan-types.ts';
import { isSameFile, NOTHING } from '../compare/records.ts';
import type { Identity, PlaceRecord, Records } from '../compare/records.ts';
import { lookOf } from '../proof/versions.ts';
import { withContents } from './content.ts';
import type { Content, LayOut } from './content.ts';
import { Changed } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';
import { isFirst, prove, settled, uploadFile } from './upload.ts';

/** Larger files gain nothing. */
const SMALL_BYTES = 1 << 20;
/** What rclone could read in another way than the name is meant. */
const PLAIN = /^[^\u0000-\u001F\u007F\u201B\u2400-\u2421\uFF0E\uFF0F]+$/u;

/** They are too small for that. */
const UNTOLD = (): void => undefined;

export interface TogetherStep extends StepTools {
  /** Called once for each item; without an error it is on the remote. */
  readonly ended: (item: Item, error?: unknown) => void;
}

/** Whether a step may go with others: small, and nothing is known to be at its place. */
export function mayGoTogether(
  item: Item,
  { records, remote }: Pick<StepTools, 'records' | 'remote'>,
): boolean {
  const { action, bytes, formerNames = [], place } = item;
  return (
    remote.uploadAllNew !== undefined &&
    action === 'upload' &&
    bytes <= SMALL_BYTES &&
    formerNames.length === 0 &&
    PLAIN.test(place) &&
    isFirst(place, recordOf(place, records), { records, remote })
  );
}

export async function uploadTogether(items: readonly Item[], step: TogetherStep): Promise<void> {
  const alone = await withContents(items, step, async (contents, layOut) => {
    for (const item of items) if (!contents.has(item)) step.ended(item, new Changed());
    const looked = await Promise.all([...contents].map((one) => lookAt(one, step)));
    return sendAll(
      looked.filter((one) => one !== undefined),
      layOut,
      step,
    );
  });
  for (const item of alone)
    await attempt(item, step, () => uploadFile(item, { ...step, onProgress: UNTOLD }));
}

interface Looked {
  readonly item: Item;
  readonly content: Content;
  readonly local: Identity;
}

interface Going extends Looked {
  /** What was on record before. */
  readonly rest: PlaceRecord;
}

/** Undefined where it is not there any more, and its end is told. */
async function lookAt(
  [item, content]: readonly [Item, Content],
  step: TogetherStep,
): Promise<Looked | undefined> {
  try {
    return {
      item,
      content,
      local: await settled(item, { ...step, content, onProgress: UNTOLD }),
    };
  } catch (error) {
    step.ended(item, error);
    return undefined;
  }
}

/** Resolves with those that have to go alone. */
async function sendAll(looked: readonly Looked[], layOut: LayOut, step: TogetherStep): Promise<Item[]> {
  const { records, remote, signal } = step;
  const going = looked.filter((one) => isStillFirst(one, step)).map((one) => begun(one, step));
  if (going.length === 0) return looked.map(({ item }) => item);
  let sent: ReadonlyMap<string, boolean>;
  let batch: Batch;
  try {
    await records.saved();
    batch = await layOut(going.map(({ item }) => item));
    sent = await remote.uploadAllNew!(batch, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if ((error as RemoteFailure).remote !== 'silent') return looked.map(({ item }) => item);
    for (const { item } of looked) step.ended(item, error);
    return [];
  }
  const arrived = going.filter(({ item }) => sent.get(item.place) === true);
  await forgetLeft(going, sent, step);
  await proveAll(arrived, batch, step);
  const here = new Set(arrived.map(({ item }) => item));
  return looked.filter(({ item }) => !here.has(item)).map(({ item }) => item);
}

/** A scan that began before the last upload ended does not know about it. */
function isStillFirst({ item: { place }, local }: Looked, { records, remote }: TogetherStep): boolean {
  const record = recordOf(place, records);
  return isFirst(place, record, { records, remote }) && !isSameFile(record.proved, local);
}

function begun(one: Looked, { records }: TogetherStep): Going {
  const { place } = one.item;
  const { proved: _, ...rest } = recordOf(place, records);
  records.set(place, { ...rest, sending: lookOf(one.local) });
  return { ...one, rest };
}

/** Nothing of ours is where others were first. */
async function forgetLeft(
  going: readonly Going[],
  sent: ReadonlyMap<string, boolean>,
  { records }: TogetherStep,
): Promise<void> {
  for (const { item, rest } of going) if (sent.get(item.place) === false) records.set(item.place, rest);
  await records.saved();
}

async function proveAll(arrived: readonly Going[], batch: Batch, step: TogetherStep): Promise<void> {
  if (arrived.length === 0) return;
  for (const { item } of arrived) step.touched(parentOf(item.place));
  let there: ReadonlyMap<string, RemoteVersion>;
  try {
    there = await step.remote.statAll!(batch, { signal: step.signal });
  } catch (error) {
    for (const { item } of arrived) step.ended(item, error);
    return;
  }
  const proof = async ({ item, content, local }: Going): Promise<void> => {
    const version = there.get(item.place);
    const now = version === undefined ? NOTHING : ({ kind: 'file', version } as const);
    await prove(item, { target: item.place, local, now }, { ...step, content, onProgress: UNTOLD });
  };
  await Promise.all(arrived.map((one) => attempt(one.item, step, () => proof(one))));
}

async function attempt(item: Item, step: TogetherStep, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    step.ended(item, error);
    return;
  }
  step.ended(item);
}

function recordOf(place: string, { places }: Records): PlaceRecord {
  return places.get(place) ?? { remote: NOTHING };
}
