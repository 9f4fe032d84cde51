/**
 * Finds out what users changed: what the lower layer has at a place when a change of it is first seen. That
 * is the version that they saw, so it is the only one that may be replaced or deleted on the remote.
 */
import type { LookBelow, RemoteEntry, RemoteFiles, WriteLayer } from 'mountkeeper';
import { withRealTimes } from './made-up-times.ts';
import { ancestors, below as inFolder, isAtOrInside, isInside, nameOf, parentOf } from './paths.ts';
import type { Lesson } from './plan-types.ts';
import { NOTHING } from './records.ts';
import type { MoveRecord, PlaceRecord, Records, Thing } from './records.ts';

export interface LearnOptions {
  readonly layer: Pick<WriteLayer, 'below' | 'listBelow' | 'held' | 'heldSinceMs'>;
  readonly remote: Pick<RemoteFiles, 'forget' | 'list' | 'stat'>;
  readonly records: Records;
  /** Sources of planned moves: they are not deleted together with their former folder. */
  readonly sources: readonly string[];
  /**
   * Folders that the remote has at these places, and the lower layer still elsewhere: what is in them cannot be looked
   * up yet.
   */
  readonly unsettled?: readonly string[];
  /**
   * True while nothing in the upper folder is being moved: otherwise a folder's entries may be on their way
   * to another place.
   */
  readonly isStill: () => Promise<boolean>;
  /** True for what left the upper folder after the scan: its absence is no deletion, so nothing is noted of it. */
  readonly hasLeft?: (place: string) => boolean;
  /** Resolves when what users changed is on the disk: what is on record alone would be deleted after a power cut. */
  readonly onDisk?: () => Promise<void>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** Records what can be found out now. Resolves with the reason for each place where it could not. */
export async function learn(lessons: readonly Lesson[], options: LearnOptions): Promise<Map<string, string>> {
  const failed = new Map<string, string>();
  const fail = (place: string, why: string): void => {
    failed.set(place, `What users changed here cannot be found out: ${why}`);
  };
  const { records } = options;
  const { renames } = records;
  const due = dueNow(lessons, options, fail);
  const seen = await look(due, options, fail);
  const isListed = ([place, found]: [string, RemoteEntry | undefined]): boolean =>
    found?.kind === 'folder' && !isHidden(records.places.get(place));
  const folders = [...seen].filter(isListed).map(([place]) => place);
  // A folder is learnt completely or not at all: half a listing would be taken for the whole.
  const isStill = folders.length === 0 || (await attempt(() => options.isStill(), options)) === true;
  const trees = isStill ? await treesAt(folders, options) : new Map<string, Tree>();
  const { hasLeft = () => false, onDisk } = options;
  const isFound = [...seen.values()].some((found) => found !== undefined);
  const unwritten = isFound && onDisk !== undefined ? await attempt(onDisk, options) : undefined;
  // A move that ended meanwhile has given these places other names.
  const isMoved = records.renames !== renames;
  const treeOf = (place: string): Tree =>
    isMoved ? UNSTILL : folders.includes(place) ? (trees.get(place) ?? UNSTILL) : EMPTY;
  for (const lesson of due.filter(({ place }) => seen.has(place) && !hasLeft(place))) {
    const { place } = lesson;
    const tree = treeOf(place);
    const why = unwritten ?? tree.failure;
    if (why !== undefined) fail(place, why);
    else note(lesson, seen.get(place), { inside: tree.inside, records, layer: options.layer });
  }
  await records.saved();
  return failed;
}

/** Those that can be looked up: not in a folder that the lower layer shows elsewhere. */
function dueNow(
  lessons: readonly Lesson[],
  { unsettled = [] }: LearnOptions,
  fail: (place: string, why: string) => void,
): readonly Lesson[] {
  const isUnsettled = ({ place }: Lesson): boolean => unsettled.some((folder) => isInside(place, folder));
  for (const lesson of lessons) if (isUnsettled(lesson)) fail(lesson.place, MOVING);
  return lessons.filter((lesson) => !isUnsettled(lesson));
}

/** What is at the places of the lessons, as far as it is known. */
async function look(
  lessons: readonly Lesson[],
  options: LearnOptions,
  fail: (place: string, why: string) => void,
): Promise<Map<string, RemoteEntry | undefined>> {
  const seen = new Map<string, RemoteEntry | undefined>();
  const { found, failed } = await below(
    lessons.map(({ place }) => place),
    options,
  );
  const missing = asker(options);
  for (const lesson of lessons) {
    const { place, isGone } = lesson;
    const entry = found.get(place);
    const isAsked = entry === undefined && isUnsure(lesson, options);
    const why = failed.get(place) ?? (isAsked ? await missing(place) : undefined);
    if (why !== undefined) fail(place, why);
    else if (isGone !== true || entry !== undefined) seen.set(place, entry);
  }
  const hidden = lessons
    .filter(({ place, isGone = false }) => isGone && !failed.has(place) && !seen.has(place))
    .map(({ place }) => place);
  for (const [place, entry] of await shown(hidden, { ...options, missing }, fail)) seen.set(place, entry);
  return seen;
}

async function below(places: readonly string[], options: LearnOptions): Promise<LookBelow<RemoteEntry>> {
  const { layer, signal } = options;
  const looked = await attempt(
    () =>
      withRealTimes(
        () => layer.below(places, { signal }),
        (place, entry) => [[place, entry]],
        options,
      ),
    options,
  );
  return typeof looked === 'string'
    ? { found: new Map(), failed: new Map(places.map((place) => [place, looked])) }
    : looked;
}

/** A failure becomes its message. */
async function attempt<T>(work: () => Promise<T>, { signal }: LearnOptions): Promise<T | string> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    return (error as Error).message;
  }
}

/**
 * For entries that the uploader itself put on the remote: the share must show them before their content can
 * be listed.
 */
async function shown(
  places: readonly string[],
  options: LearnOptions & { readonly missing: Missing },
  fail: (place: string, why: string) => void,
): Promise<Map<string, RemoteEntry | undefined>> {
  const { missing, remote, signal } = options;
  const seen = new Map<string, RemoteEntry | undefined>();
  if (places.length === 0) return seen;
  const why = await attempt(
    async () => remote.forget([...new Set(places.flatMap((place) => [parentOf(place), place]))], { signal }),
    options,
  );
  const now = await below(places, options);
  for (const place of places) {
    const entry = now.found.get(place);
    const trouble = why ?? now.failed.get(place) ?? (entry === undefined ? await missing(place) : undefined);
    if (trouble === undefined) seen.set(place, entry);
    else fail(place, trouble);
  }
  return seen;
}

/**
 * Whether something may be there that the share does not show yet: users saw it, in a folder that the uploader has put
 * there, also one that they have deleted since. What they made or put there themselves is on record at once as being
 * over nothing, whether the remote answers or not: where something is there, both stay. To wait for an answer would be
 * to take, after a restart, what others saved unseen for what users saw.
 */
function isUnsure({ place, isGone, wasThere }: Lesson, { records: { places } }: LearnOptions): boolean {
  if (isGone === true || wasThere !== true) return false;
  return ancestors(place).some((folder) => {
    const { remote, isShown } = places.get(folder) ?? {};
    return remote?.kind === 'folder' && isShown !== undefined;
  });
}

/** Why it is not known that nothing is at a place where the share shows nothing. */
type Missing = (place: string) => Promise<string | undefined>;

/**
 * Asks once for each folder, by the very names: many remotes find a file by another case of its name, too, and where
 * others renamed it so, it would count as not shown yet for ever.
 */
function asker(options: LearnOptions): Missing {
  const { remote, signal } = options;
  const namesIn = async (folder: string): Promise<ReadonlySet<string>> =>
    new Set(((await remote.list(folder, { signal })) ?? []).map(({ name }) => name));
  const asked = new Map<string, Promise<ReadonlySet<string> | string>>();
  return async (place) => {
    const folder = parentOf(place);
    const asking = asked.get(folder) ?? attempt(() => namesIn(folder), options);
    asked.set(folder, asking);
    const there = await asking;
    if (typeof there === 'string') return there;
    return there.has(nameOf(place)) ? 'the share does not show it yet' : undefined;
  };
}

function note(
  lesson: Lesson,
  found: RemoteEntry | undefined,
  {
    inside,
    records,
    layer,
  }: Pick<LearnOptions, 'records' | 'layer'> & { readonly inside: readonly Inside[] },
): void {
  const { place, folder } = lesson;
  const held = seenBefore(lesson, layer) ?? (isUnseen(lesson, thingOf(found), layer) ? NOTHING : undefined);
  // In a folder that others put in the place of something else, users saw nothing.
  if (held === undefined || held.kind === 'folder')
    noteInside(
      inside.filter(([, thing]) => !isUnseen(lesson, thing, layer)),
      records,
      isOnItsWay(lesson, records) ? heldOfFull(inside, layer) : layer,
    );
  const former = records.places.get(place);
  // Users saw what the uploader put there, even if the mount does not show it yet.
  const remote = former?.remote ?? held ?? thingOf(found);
  records.set(place, learnt(former, remote, folder));
}

/** Users have seen all that is on record there, and what was shown to them before is gone. */
function learnt(former: PlaceRecord | undefined, remote: Thing, folder: string | undefined): PlaceRecord {
  return {
    ...former,
    remote,
    isTree: true,
    ...(former?.isShown !== undefined && { isShown: false }),
    ...(folder !== undefined && { folder }),
  };
}

/** Whether users may still look for it, or a folder around it, where the remote does not have it any more. */
function isOnItsWay({ place, isGone }: Lesson, { moves }: Records): boolean {
  const isAround = ({ at, former = [] }: MoveRecord): boolean => former.length > 0 && isAtOrInside(place, at);
  return isGone === true && [...moves.values()].some(isAround);
}

/**
 * What the uploader moved there showed empty for a moment: a listing from then tells nothing, and all that is in the
 * folder is what users saw.
 */
function heldOfFull(
  inside: readonly Inside[],
  layer: Pick<LearnOptions['layer'], 'held'>,
): Pick<LearnOptions['layer'], 'held'> {
  const isHeld = ([path]: Inside): boolean => (layer.held?.(path) ?? null) !== null;
  const full = new Set(inside.filter(isHeld).map(([path]) => parentOf(path)));
  return { held: (path) => (full.has(parentOf(path)) ? layer.held?.(path) : undefined) };
}

function noteInside(
  inside: readonly Inside[],
  records: Records,
  layer: Pick<LearnOptions['layer'], 'held'>,
): void {
  const hidden = new Set<string>();
  // Folders come before what is in them.
  for (const [path, thing] of inside) {
    const known = records.places.get(path);
    // No listing is held of a folder that was not there.
    const seen = recordedOf(known) ?? (hidden.has(parentOf(path)) ? NOTHING : (heldAt(path, layer) ?? thing));
    if (seen.kind !== 'folder') hidden.add(path);
    // What was on its way out of the upper folder was there for users who deleted the folder.
    if (seen.kind !== 'nothing' && (known === undefined || known.isLeaving === true))
      records.set(path, { remote: seen, isTree: true });
  }
}

/** Where a file has left, users saw what the remote has. */
function recordedOf(known: PlaceRecord | undefined): Thing | undefined {
  return known?.away === undefined ? known?.remote : undefined;
}

/**
 * What others saved after the change had begun, where nobody knows what the lower layer showed then: the daemon was not
 * there, or another rclone was.
 */
function isUnseen({ bornMs, changedMs }: Lesson, thing: Thing, layer: LearnOptions['layer']): boolean {
  const sinceMs = layer.heldSinceMs?.();
  if (sinceMs === undefined || changedMs === undefined || thing.kind !== 'file') return false;
  return changedMs < sinceMs && thing.version.modifiedMs > (bornMs ?? changedMs);
}

/** Who deleted or renamed something saw it: then it was there, though it was not before. */
function seenBefore(
  { place, bornMs, wasThere = false }: Lesson,
  layer: LearnOptions['layer'],
): Thing | undefined {
  const held = heldAt(place, layer, bornMs);
  return wasThere && held?.kind === 'nothing' ? undefined : held;
}

/**
 * What users changed, where the share may show another version by now. When in doubt, the former version
 * counts, so that the other one stays.
 */
function heldAt(
  place: string,
  layer: Pick<LearnOptions['layer'], 'held'>,
  bornMs?: number,
): Thing | undefined {
  const held = layer.held?.(place, bornMs);
  return held === null ? NOTHING : held && thingOf(held);
}

type Inside = readonly [path: string, thing: Thing];

interface Tree {
  readonly inside: Inside[];
  failure?: string;
}

const EMPTY: Tree = { inside: [] };
const MOVING = 'folders are being renamed just now';
const UNSTILL: Tree = { inside: [], failure: MOVING };

/** A folder of some tree that must still be listed. */
interface Branch {
  readonly tree: Tree;
  /**
   * Sources of moves out of the tree: what was moved is handled by its own move. A move of a parent does
   * not count.
   */
  readonly sources: readonly string[];
  readonly folder: string;
}

/**
 * Whether users have never seen what others put into the folder: they made it, or deleted the one that was there, and
 * it has not been shown to them since. What they saw in it is on record.
 */
function isHidden(record: PlaceRecord | undefined): boolean {
  if (record === undefined || record.isShown === true) return false;
  return record.remote.kind === 'nothing' || record.isTree === true || record.folder !== undefined;
}

/** Everything in these folders, level by level. */
async function treesAt(roots: readonly string[], options: LearnOptions): Promise<Map<string, Tree>> {
  const trees = new Map<string, Tree>(roots.map((root) => [root, { inside: [] }]));
  let level: Branch[] = [...trees].map(([root, tree]) => ({
    tree,
    folder: root,
    sources: options.sources.filter((source) => isInside(source, root)),
  }));
  while (level.length > 0) {
    const looked = await listed([...new Set(level.map(({ folder }) => folder))], options);
    level = level
      .flatMap((branch) => grown(branch, looked))
      .filter(({ folder }) => !isHidden(options.records.places.get(folder)));
  }
  return trees;
}

async function listed(
  folders: readonly string[],
  options: LearnOptions,
): Promise<LookBelow<readonly RemoteEntry[]>> {
  const { layer, signal } = options;
  const looked = await attempt(
    () =>
      withRealTimes(
        () => layer.listBelow(folders, { signal }),
        (folder, entries) => entries.map((entry) => [inFolder(folder, entry.name), entry]),
        options,
      ),
    options,
  );
  if (typeof looked !== 'string') return looked;
  return { found: new Map(), failed: new Map(folders.map((folder) => [folder, looked])) };
}

/** Records the folder's entries. Returns its subfolders. */
function grown(branch: Branch, { found, failed }: LookBelow<readonly RemoteEntry[]>): Branch[] {
  const { tree, sources, folder } = branch;
  const failure = failed.get(folder);
  if (failure !== undefined) tree.failure = failure;
  if (tree.failure !== undefined) return [];
  const inside = (found.get(folder) ?? [])
    .map((entry) => ({ entry, path: inFolder(folder, entry.name) }))
    .filter(({ path }) => !sources.some((source) => isAtOrInside(path, source)));
  for (const { entry, path } of inside) tree.inside.push([path, thingOf(entry)]);
  return inside
    .filter(({ entry }) => entry.kind === 'folder')
    .map(({ path }) => ({ ...branch, folder: path }));
}

export function thingOf(entry: RemoteEntry | undefined): Thing {
  if (entry === undefined) return NOTHING;
  return entry.kind === 'folder' ? { kind: 'folder' } : { kind: 'file', version: entry.version };
}
