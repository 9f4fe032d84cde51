/**
 * Finds out what users changed: what lies below at a place when a change of it is first seen. That is the version they saw, so
 * it is the only one that may be replaced or deleted on the remote.
 */
import type { RemoteEntry, RemoteFiles, WriteLayer } from 'mountkeeper';
import { below, isAtOrInside, isInside, nameOf, parentOf } from './paths.ts';
import type { Lesson } from './plan-types.ts';
import { NOTHING } from './records.ts';
import type { Records, Thing } from './records.ts';

/** From so many places in one folder on, the folder is listed instead of asking for each. */
const LIST_FROM = 3;

export interface LearnOptions {
  readonly layer: Pick<WriteLayer, 'below' | 'listBelow'>;
  readonly remote: Pick<RemoteFiles, 'forget' | 'stat'>;
  readonly records: Records;
  /** What is to be moved is not removed with the folder that it was in. */
  readonly sources: readonly string[];
  /** True while nothing in the upper folder moves: what is in a folder may be on its way to another place. */
  readonly isStill: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** Puts on record what can be found out now. Resolves with why the others could not, by place. */
export async function learn(lessons: readonly Lesson[], options: LearnOptions): Promise<Map<string, string>> {
  const failed = new Map<string, string>();
  const counts = new Map<string, number>();
  for (const { place } of lessons) counts.set(parentOf(place), (counts.get(parentOf(place)) ?? 0) + 1);
  const folders: Listings = new Map();
  let still: Promise<boolean> | undefined;
  const isStill = (): Promise<boolean> => (still ??= options.isStill());
  for (const lesson of lessons) {
    const isCrowd = (counts.get(parentOf(lesson.place)) ?? 0) >= LIST_FROM;
    try {
      await learnOne(lesson, { ...options, isStill }, isCrowd ? folders : undefined);
    } catch (error) {
      options.signal.throwIfAborted();
      failed.set(lesson.place, `What users changed here cannot be found out: ${(error as Error).message}`);
    }
  }
  await options.records.saved();
  return failed;
}

type Listings = Map<string, ReadonlyMap<string, RemoteEntry> | undefined>;

async function learnOne(lesson: Lesson, options: LearnOptions, folders: Listings | undefined): Promise<void> {
  const found = lesson.isGone === true ? await shown(lesson.place, options) : await look(lesson.place, folders, options);
  if (found?.kind === 'folder' && !(await options.isStill())) throw new Error('folders are being renamed just now');
  await note(lesson, found, options);
}

async function look(
  place: string, folders: Listings | undefined, { layer, signal }: LearnOptions,
): Promise<RemoteEntry | undefined> {
  if (folders === undefined) return layer.below(place, { signal });
  const parent = parentOf(place);
  if (!folders.has(parent)) {
    const entries = await layer.listBelow(parent, { signal });
    folders.set(parent, entries && new Map(entries.map((entry) => [entry.name, entry])));
  }
  return folders.get(parent)?.get(nameOf(place));
}

/** What we brought to the remote ourselves; the share has to show it before it can tell what is in it. */
async function shown(place: string, { layer, remote, signal }: LearnOptions): Promise<RemoteEntry | undefined> {
  const found = await layer.below(place, { signal });
  if (found !== undefined) return found;
  await remote.forget([parentOf(place), place], { signal });
  const now = await layer.below(place, { signal });
  if (now === undefined && (await remote.stat(place, { signal })) !== undefined) throw new Error('the share does not show it yet');
  return now;
}

async function note({ place, folder }: Lesson, found: RemoteEntry | undefined, options: LearnOptions): Promise<void> {
  const { records } = options;
  // All of a folder or nothing of it: half a listing would be taken for the whole.
  // A folder that was moved out of it goes its own way; one that it went along in does not count.
  const sources = options.sources.filter((source) => isInside(source, place));
  const inside = found?.kind === 'folder' ? await tree(place, { ...options, sources }) : [];
  for (const [path, thing] of inside) if (!records.places.has(path)) records.set(path, { remote: thing, isTree: true });
  const former = records.places.get(place);
  // What we brought there ourselves is what users saw, even where the mount has not seen it yet.
  const remote = former?.remote ?? thingOf(found);
  records.set(place, { ...former, remote, isTree: true, ...(folder !== undefined && { folder }) });
}

async function tree(folder: string, options: LearnOptions): Promise<[string, Thing][]> {
  const { layer, sources, signal } = options;
  const found: [string, Thing][] = [];
  for (const entry of (await layer.listBelow(folder, { signal })) ?? []) {
    const path = below(folder, entry.name);
    if (sources.some((source) => isAtOrInside(path, source))) continue;
    found.push([path, thingOf(entry)]);
    if (entry.kind === 'folder') found.push(...(await tree(path, options)));
  }
  return found;
}

export function thingOf(entry: RemoteEntry | undefined): Thing {
  if (entry === undefined) return NOTHING;
  return entry.kind === 'folder' ? { kind: 'folder' } : { kind: 'file', version: entry.version };
}
