/**
 * Gives up one file that waits: what its user wrote is moved to the folder of discarded files, and the remote's
 * version shows in its place. Every doubt is a refusal, after which everything is as before.
 */
import { join } from 'node:path';
import type { LeavingEntry, WriteLayer } from 'mountkeeper';
import { isInside, nameOf, parentOf } from '../../compare/paths.ts';
import type { Item } from '../../compare/plan-types.ts';
import { NOTHING } from '../../compare/records.ts';
import type { PlaceRecord, Thing } from '../../compare/records.ts';
import type { ScanEntry } from '../../compare/scan.ts';
import { couldBe, isSameThing } from '../../proof/versions.ts';
import { ask, askExactly } from '../step-tools.ts';
import type { StepTools } from '../step-tools.ts';
import { takeOutDone } from './take-out.ts';
import { folderOf } from './left-files.ts';
import { hasContent, versionOf } from './given-up.ts';

export interface DiscardRequest {
  readonly path: string;
  /** The version that was shown to who asks: `version` of its entry in the queue. */
  readonly version: string;
}

export interface Discarded {
  readonly path: string;
  readonly bytes: number;
  /** Absolute path of what was given up. */
  readonly keptAt: string;
  /** What shows in its place. */
  readonly shows: Thing['kind'];
}

/**
 * `items`: of a look that began after the request; nothing of them may start meanwhile. Rejects with a plain
 * sentence; nothing is given up then.
 */
export async function discardFile(
  { path, version }: DiscardRequest,
  items: readonly Item[],
  tools: StepTools,
): Promise<Discarded> {
  const entry = entryAt(path, items);
  if (versionOf(entry) !== version)
    throw new Error(`${path} was changed since it was shown. Look at it again; nothing was discarded.`);
  await refuseWhileOpen(path, tools.layer);
  const record = tools.records.places.get(path);
  const now = await askExactly(tools, path);
  refuseArrived(path, { now, record, precisionMs: tools.remote.precisionMs });
  const keptAt = join(folderOf(tools.layer.discarded, tools.clock.now()), path);
  const leaving: LeavingEntry = { ...entry, theirs: theirsOf(path, now), discardTo: keptAt };
  const taken = await takeOutDone([leaving], [parentOf(path)], tools);
  if (!taken.has(path))
    throw new Error(
      `${path} cannot be discarded just now: a program uses it, or the share would not show what the remote has. ` +
        'Nothing was discarded; try again in a minute.',
    );
  await tidy(path, record, tools);
  return { path, bytes: entry.bytes, keptAt, shows: now.kind };
}

const OTHERS = {
  delete: 'was deleted here, and the deletion waits',
  move: 'was renamed here, and the renaming waits',
  'make folder': 'is a folder',
} as const;

function entryAt(path: string, items: readonly Item[]): ScanEntry {
  const about = items.filter((item) => item.path === path || item.place === path);
  const item = about.find(({ action }) => action === 'upload');
  const other = about.find(({ action }) => action !== 'upload');
  if (item === undefined) throw new Error(refusalOf(path, items, other));
  if (!hasContent(item))
    throw new Error(`${path} has no content of its own that could be discarded; nothing was discarded.`);
  if (item.isUnlearnt === true)
    throw new Error(
      `It is not known yet what ${path} was on the remote before it was changed here. Nothing was discarded; try ` +
        'again when the remote answers.',
    );
  // Its place on the remote is another, or something else is to go from there first.
  if (item.isDisplaced === true || item.place !== path || other !== undefined)
    throw new Error(
      `${path} takes the place of something that was renamed or deleted here, and that has to arrive on the ` +
        'remote first; nothing was discarded.',
    );
  refuseRenamed(item, items);
  return item.entry;
}

/** What is deleted once this has arrived may be the only one that the remote has of it. */
function refuseRenamed({ id, path }: Item, items: readonly Item[]): void {
  const former = items.find(({ action, needs }) => action === 'delete' && needs.has(id));
  if (former !== undefined)
    throw new Error(
      `${former.path} is deleted on the remote once ${path} is there, for it may be ${former.path}, renamed here: ` +
        'then nothing would be left of it there. Rename it back in the share, or have it sent; nothing was discarded.',
    );
}

function refusalOf(path: string, items: readonly Item[], other: Item | undefined): string {
  if (other !== undefined && other.action !== 'upload')
    return `${path} ${OTHERS[other.action]}: only a file with content can be discarded.`;
  return items.some((item) => isInside(item.path, path))
    ? `${path} is a folder: only one file at a time can be discarded.`
    : `${path} does not wait to be uploaded, so there is nothing to discard.`;
}

async function refuseWhileOpen(path: string, layer: WriteLayer): Promise<void> {
  const isOpen = (await layer.openForWriting()).has(path) || (await layer.inUse()).has(path);
  if (isOpen) throw new Error(`A program has ${path} open. Close it there first; nothing was discarded.`);
}

/** An upload whose answer was lost may have come through: then what shows would be what is given up. */
function refuseArrived(
  path: string,
  { now, record, precisionMs }: { now: Thing; record: PlaceRecord | undefined; precisionMs: number },
): void {
  if (now.kind !== 'file' || record?.sending === undefined || record.copy !== undefined) return;
  if (isSameThing(now, record.remote, precisionMs)) return;
  if (couldBe(now.version, record.sending, precisionMs))
    throw new Error(
      `The remote seems to have ${path} already: an upload of it was cut short before its answer came. Nothing was ` +
        'discarded; have it sent again, or delete it in the share.',
    );
}

function theirsOf(path: string, now: Thing): NonNullable<LeavingEntry['theirs']> {
  if (now.kind === 'nothing') return {};
  return { entry: { name: nameOf(path), ...now } };
}

/** What attempts to upload it have left. */
async function tidy(path: string, record: PlaceRecord | undefined, tools: StepTools): Promise<void> {
  const { remote, records, signal } = tools;
  const copy = record?.copy;
  try {
    if (record?.sending !== undefined) await remote.clearLeftovers(copy?.path ?? path, { signal });
    if (copy === undefined || copy.version !== undefined || (await ask(tools, copy.path)) !== NOTHING) return;
  } catch {
    // The remote does not answer: what lies there is in nobody's way.
    return;
  }
  records.dropConflict({ path, copy: copy.path });
  forgetCopy(path, tools);
  await records.saved();
}

/** If it comes back within its minute, that is told anew. */
function forgetCopy(path: string, { records }: StepTools): void {
  const { copy: _, ...left } = records.places.get(path) ?? { remote: NOTHING };
  if (left.away !== undefined) records.set(path, left);
}
