/** One scan of the upper folder: from its entries to the steps to be done. */
import type { Clock, Processes, UploadOptions, WriteLayer } from 'mountkeeper';
import { LateWrites } from '../compare/late-writes.ts';
import { learn } from '../compare/learn.ts';
import { folded, isAtOrInside } from '../compare/paths.ts';
import { findPlaces, originsOf } from '../compare/places.ts';
import { PlanMemo } from '../compare/plan-memo.ts';
import type { Conditions, Item, Plan } from '../compare/plan-types.ts';
import { identityOf, mayBeThere, NOTHING } from '../compare/records.ts';
import type { PlaceRecord, Records } from '../compare/records.ts';
import { changeTimes, nanoseconds } from './change-times.ts';
import { Departures } from './leaving/departures.ts';
import { isSureOf, RepeatedLooks } from './leaving/repeated-looks.ts';
import type { Sure } from './leaving/repeated-looks.ts';
import { SpaceWatch } from './space-watch.ts';
import { UpperFolder } from './guard/upper-folder.ts';
import { WrittenOut } from './guard/written-out.ts';
import { createScanner } from '../compare/scan.ts';
import type { Scan, ScanEntry, Scanner, TimedScan } from '../compare/scan.ts';
import { isUnanswered, isUnseen, showsAgain } from '../compare/unseen-folders.ts';

/** Files that users are working with are left alone for this long. */
const REST_BEFORE_OUT_MS = 60_000;

export interface PlannerOptions extends UploadOptions {
  readonly clock: Clock;
  readonly processes: Pick<Processes, 'run'>;
  readonly restMs?: number;
  /** Most entries of the upper folder that are read without `find`. */
  readonly fewEntries?: number;
}

export interface PlanningOptions {
  /** Send everything now: no quiet time, and folders in use are moved as well. */
  readonly isHurried: boolean;
  /** Paths that need no quiet time. */
  readonly isUrgent?: (path: string) => boolean;
  readonly signal: AbortSignal;
}

/** What people have open. */
interface Use extends Pick<Conditions, 'isOpen' | 'inUse'> {
  readonly isNone: boolean;
}

const NO_USE: Use = { isOpen: () => false, inUse: new Set(), isNone: true };

export class Planner {
  readonly departures: Departures;
  readonly upper: UpperFolder;
  readonly written: WrittenOut;
  readonly #options: PlannerOptions;
  readonly #scanner: Scanner;
  readonly #space: SpaceWatch;
  readonly #memo = new PlanMemo();
  /** Records may say that something is leaving, and it stays. */
  #isRevivalDue = true;

  #late: LateWrites | undefined;
  /** Since when users see a renamed entry at its place on the remote, in monotonic milliseconds; by key. */
  readonly #settledAt = new Map<string, number>();
  /** Recorded keys that the last scan did not find. */
  #gone: ReadonlySet<string> = new Set();
  /** Of the last scan that is known to have seen everything: its folders, and the paths of its entries. */
  #seen: { readonly folders: Scan['folders']; readonly paths: ReadonlySet<string> } | undefined;
  /** By looks during which something was renamed: what is to be deleted or replaced, what is gone, what is spent. */
  readonly #torn: Readonly<Record<'replaced' | 'gone' | 'spent', RepeatedLooks>>;

  constructor(options: PlannerOptions) {
    this.#options = options;
    this.departures = new Departures(options.clock);
    this.upper = new UpperFolder(options.layer.upper);
    this.written = new WrittenOut(options.layer);
    this.#scanner = createScanner(options.layer.upper, options.processes, {
      fewEntries: options.fewEntries,
      now: () => options.clock.now(),
    });
    this.#space = new SpaceWatch(options.layer.upper, options.clock);
    const { clock } = options;
    this.#torn = {
      replaced: new RepeatedLooks(clock),
      gone: new RepeatedLooks(clock),
      spent: new RepeatedLooks(clock),
    };
  }

  /** Runs until the signal aborts. */
  watchSpace(end: AbortSignal): Promise<void> {
    return this.#space.watch(end);
  }

  /** Rejects where the upper folder cannot be read whole, or is another one than it was. */
  async scan(signal: AbortSignal): Promise<TimedScan> {
    const { clock, layer } = this.#options;
    await this.upper.look();
    const [startedMs, startedAt] = [clock.monotonic(), clock.now()];
    // Before the others: what comes back meanwhile is one of those, or here.
    const resting = await restingIn(layer);
    const unrestored = layer.unrestored?.() ?? [];
    for (const place of unrestored) {
      this.departures.mayComeBack(place, startedMs);
      this.#isRevivalDue = true;
    }
    if (resting.size > 0) this.#isRevivalDue = true;
    const scan = await this.#scanner.scan(signal);
    this.written.scanned();
    // Another one may have come there meanwhile: what is missing in that, nobody has deleted.
    await this.upper.look();
    return { ...scan, startedMs, startedAt, resting };
  }

  /** False where an entry may have been renamed during the scan, which saw it by none of its names then. */
  async hasSeenAll({ entries, folders, isYoung = false }: Scan, signal: AbortSignal): Promise<boolean> {
    if (this.#seen !== undefined && isSame(this.#seen, { entries, folders })) return true;
    if (!(await this.#scanner.isStill({ entries, folders, isYoung }, signal))) return false;
    this.#seen = { folders, paths: new Set(entries.keys()) };
    return true;
  }

  /** Learns about new changes before it plans steps for them. */
  async plan(
    scan: TimedScan,
    records: Records,
    { signal, ...options }: PlanningOptions,
  ): Promise<{ readonly plan: Plan; readonly isMoreToLearn: boolean }> {
    const { clock, layer, remote, restMs = REST_BEFORE_OUT_MS, writeBackMs } = this.#options;
    await this.#revive(scan, records);
    adoptMoves(scan, records);
    const isForgotten = await this.#forgetMoves(scan, records, signal);
    const conditions = {
      ...changeTimes({ nowMs: clock.now(), writeBackMs: writeBackMs(), restMs, ...options }),
      isCut: await this.#space.look(),
      late: (this.#late ??= await LateWrites.read(layer)),
      isUrgent: options.isUrgent ?? (() => false),
      nameProblem: (name: string) => remote.nameProblem?.(name),
    };
    const key = this.#isSteady(scan, options) ? conditions.isCut : conditions;
    const planned = (use: Use, sure: Sure = 'all'): Plan => {
      const { isOpen, inUse } = use;
      const believed = sure === 'all' ? { isWhole: true } : { isWhole: false, often: sure };
      return this.#memo.plan(
        this.departures.without(scan),
        records,
        { ...conditions, isOpen, inUse, ...believed },
        use.isNone ? key : use,
      );
    };
    const first = planned(NO_USE);
    const isStill = (): Promise<boolean> => this.#scanner.isStill(scan, signal);
    const failed =
      first.lessons.length === 0
        ? new Map<string, string>()
        : await learn(first.lessons, {
            layer,
            remote,
            records,
            sources: first.sources,
            unsettled: unsettledOf(first, records),
            isStill,
            hasLeft: (place) => this.departures.hasLeft(scan, place),
            onDisk: () => this.written.now(signal),
            now: () => this.#options.clock.now(),
            signal,
          });
    const use = await this.#use(first, options);
    // Learning may have changed the records.
    const replaced = replacedBy(planned(use), records);
    // One answer for both: what this plan deletes or replaces, and what it lets go of, belong together.
    let answer: Promise<boolean> | undefined;
    const isStillNow = (): Promise<boolean> => (answer ??= isStill());
    const sure = await this.#torn.replaced.sureOf(replaced, isStillNow);
    const plan = planned(use, sure);
    const isNoted = await this.#note(plan, scan, records, isStillNow);
    const isHeld = replaced.some((place) => !isSureOf(place, sure)) || !isForgotten || !isNoted;
    // What a folder of users contains on the remote depends on what it hides, so levels are learnt one
    // after the other.
    const isMoreToLearn = isHeld || plan.lessons.some(({ place }) => !failed.has(place));
    this.#tellLearnt(scan, records, failed.size + Number(isMoreToLearn));
    return {
      plan: failed.size === 0 ? plan : { ...plan, items: withReasons(plan.items, failed) },
      isMoreToLearn,
    };
  }

  /** False where records are left that may be of no more use. */
  async #note(
    { cut, spent }: Plan,
    scan: TimedScan,
    records: Records,
    isStill: () => Promise<boolean>,
  ): Promise<boolean> {
    for (const { place, entry } of cut) {
      records.set(place, { ...(records.places.get(place) ?? { remote: NOTHING }), cut: identityOf(entry) });
    }
    // Also without its inode on record: the daemon may have been killed before that was written.
    const mayComeBack = (place: string): boolean =>
      scan.resting?.has(place) === true && records.places.get(place)?.isLeaving === true;
    const over = spent.filter((place) => !this.departures.mayReturn(scan, place) && !mayComeBack(place));
    // What this scan has missed would be learnt anew: as if users had seen what others have saved since.
    const sure = await this.#torn.spent.sureOf(over, isStill);
    const dropped = over.filter((place) => isSureOf(place, sure));
    for (const place of dropped) records.drop(place);
    return dropped.length === over.length;
  }

  /** What a former run, or this one, could not take out and is here still, or again, counts as before. */
  async #revive(scan: TimedScan, records: Records): Promise<void> {
    if (!this.#isRevivalDue) return;
    this.#isRevivalDue = false;
    // Now: what the scan has seen at the place of one that is still away is something else.
    const resting = await restingIn(this.#options.layer);
    for (const [place, record] of records.places) {
      if (record.isLeaving !== true) continue;
      const entry = scan.entries.get(place);
      const { away, ...rest } = record;
      const isAway = resting.has(place);
      if (this.#isUnsure(scan, place, { away, isAway })) this.#isRevivalDue = true;
      else if (isAway || (away !== undefined && !isIt(entry, away))) records.drop(place);
      else if (entry !== undefined) records.set(place, { ...rest, isLeaving: false });
    }
  }

  /** Whether the scan does not tell yet what has become of something that was to leave. */
  #isUnsure(
    scan: TimedScan,
    place: string,
    { away, isAway }: { readonly away: string | undefined; readonly isAway: boolean },
  ): boolean {
    const isMissing = !scan.entries.has(place);
    if (away === undefined) return this.departures.mayReturn(scan, place) || (isAway && isMissing);
    return isMissing || this.departures.hasLeft(scan, place);
  }

  async #use({ items }: Plan, { isHurried }: Pick<PlanningOptions, 'isHurried'>): Promise<Use> {
    const { layer } = this.#options;
    const actions = new Set([...items.values()].map(({ action }) => action));
    const open = actions.has('upload') ? await layer.openForWriting() : new Set<string>();
    const inUse = actions.has('move') && !isHurried ? await layer.inUse() : new Set<string>();
    return { isOpen: (path) => open.has(path), inUse, isNone: open.size === 0 && inUse.size === 0 };
  }

  /**
   * True where the conditions answer alike for all entries, now and at all later looks at the same ones, but for what
   * was written while the disk was full.
   */
  #isSteady(scan: Scan, { isUrgent }: Pick<PlanningOptions, 'isUrgent'>): boolean {
    if (isUrgent !== undefined) return false;
    const { clock, writeBackMs, restMs = REST_BEFORE_OUT_MS } = this.#options;
    return this.#memo.newest(scan) <= nanoseconds(clock.now() - Math.max(writeBackMs(), restMs));
  }

  #tellLearnt(scan: TimedScan, records: Records, unlearnt: number): void {
    if (unlearnt === 0 && isAllRead(scan, records)) this.#options.layer.learnt?.(scan.startedAt);
  }

  /** Users see these entries at their place on the remote, and all later lookups do as well. */
  settled(keys: readonly string[]): void {
    for (const key of keys) this.#settledAt.set(key, this.#options.clock.monotonic());
  }

  /**
   * Drops records of moves that are no longer needed: marks written before users saw the new place have
   * been read by now, and entries that left the upper folder have no mark. One that is being taken out may come
   * back with its former mark. False where another look is needed to tell.
   */
  async #forgetMoves(scan: TimedScan, records: Records, signal: AbortSignal): Promise<boolean> {
    const keys = new Set([...scan.entries.values()].map(({ key }) => key));
    const gone = (): string[] =>
      [...records.moves]
        .filter(([key, { at }]) => !keys.has(key) && !this.departures.mayReturn(scan, at))
        .map(([key]) => key);
    // A scan takes time: it may have seen a folder that was renamed meanwhile by none of its names, and what was
    // moved out of a deleted one not yet.
    const sure = await this.#torn.gone.sureOf(gone(), () => this.#scanner.isStill(scan, signal));
    const isSure = (key: string): boolean => (sure === 'all' ? this.#gone.has(key) : sure.has(key));
    for (const key of gone().filter(isSure)) {
      noteUnanswered(key, records);
      if (!isAwaited(key, records)) records.setMove(key, null);
    }
    if (sure === 'all') endUnseen(gone(), scan, records);
    if (sure === 'all') this.#gone = new Set(gone());
    forgetFormerOfData(scan, records);
    for (const [key, at] of this.#settledAt) {
      if (at >= scan.startedMs) continue;
      this.#settledAt.delete(key);
      const record = records.moves.get(key);
      if (record?.former !== undefined)
        records.setMove(key, { at: record.at, ...(record.going !== undefined && { going: record.going }) });
    }
    return gone().every((key) => isAwaited(key, records));
  }
}

/** Whether the entry is the one that was to leave. Versions before noted the inode alone. */
function isIt(entry: ScanEntry | undefined, away: string): boolean {
  return away === entry?.key || away === String(entry?.inode);
}

async function restingIn(layer: Pick<WriteLayer, 'resting'>): Promise<ReadonlySet<string>> {
  return (await layer.resting?.()) ?? new Set();
}

/**
 * Where the plan deletes or replaces something that users saw on the remote and that may be the only copy of a renamed
 * file.
 */
function replacedBy({ items }: Plan, { places }: Records): readonly string[] {
  return [...items.values()]
    .filter(
      ({ action, hold, place, isOverUnseen = false }) =>
        hold === undefined &&
        (action === 'delete' ||
          isOverUnseen ||
          (action === 'upload' && places.get(place)?.remote.kind === 'file')),
    )
    .map(({ place }) => place);
}

function isSame(
  seen: { readonly folders: Scan['folders']; readonly paths: ReadonlySet<string> },
  { entries, folders }: Scan,
): boolean {
  return (
    seen.paths.size === entries.size &&
    seen.folders.size === folders.size &&
    [...folders].every(([path, state]) => seen.folders.get(path) === state) &&
    [...entries.keys()].every((path) => seen.paths.has(path))
  );
}

/** False where a file changed while it was read, and what it replaces is not on record. */
function isAllRead({ entries }: Scan, { places }: Records): boolean {
  return [...entries.values()].every(({ isUnread, path }) => isUnread !== true || places.has(path));
}

/** A file with data of its own is looked for nowhere else, and detours of others would wait for it for good. */
function forgetFormerOfData({ entries }: Scan, records: Records): void {
  for (const { kind, key = '', hasNoData } of entries.values()) {
    const move = records.moves.get(key);
    const isOwn = kind === 'file' && hasNoData !== true && move?.going === undefined;
    if (isOwn && move?.former !== undefined) records.setMove(key, { at: move.at });
  }
}

/**
 * Users deleted or replaced a renamed entry before it was known whether the remote had moved it. It may
 * have: then a file at the target that looks like it is nobody else's, and is treated as users wanted. So is one that
 * the remote may have by a former spelling of the target. Of a folder nothing tells whose it is: that is found out.
 */
function noteUnanswered(key: string, records: Records): void {
  const move = records.moves.get(key);
  if (move?.going === undefined) return;
  unproveIn(move.at, records);
  const moved = records.places.get(move.at)?.remote;
  const there = records.places.get(move.going);
  if (moved?.kind !== 'file') return;
  records.set(move.going, there === undefined ? { remote: moved } : { ...there, sending: moved.version });
  for (const [place, record] of formerSpellings(move.going, records))
    records.set(place, { ...record, sending: moved.version });
}

/** It was removed before users could see where it is by now, and that what is there stays is not on record yet. */
function isAwaited(key: string, records: Records): boolean {
  const move = records.moves.get(key);
  return move !== undefined && (isUnseen(move, records) || isUnanswered(move, records));
}

/** Folders that nobody saw before they were removed, and that show again what is in them. */
function endUnseen(keys: readonly string[], scan: Scan, records: Records): void {
  const unseen = keys.filter((key) => isUnseen(records.moves.get(key)!, records));
  if (unseen.length === 0) return;
  const places = findPlaces(scan, records.moves);
  for (const key of unseen)
    if (showsAgain(records.moves.get(key)!, scan, records, places)) records.setMove(key, null);
}

/** What they have put back there may be where the folder is by now, and go with it. */
function unproveIn(folder: string, records: Records): void {
  for (const place of records.places.keys()) if (isAtOrInside(place, folder)) records.unprove(place);
}

/** The places at which nothing is known to be, and whose names a remote may give to what goes to the target. */
function formerSpellings(target: string, { places, twins }: Records): [string, PlaceRecord][] {
  if (!twins.has(target)) return [];
  return [...places].filter(
    ([place, record]) => place !== target && folded(place) === folded(target) && !mayBeThere(record),
  );
}

/** Places of folders at which the lower layer does not show them yet. */
function unsettledOf({ stale }: Plan, { moves }: Records): readonly string[] {
  return [
    ...stale.flatMap(({ kind, nowAt }) => (kind === 'folder' && nowAt !== undefined ? [nowAt] : [])),
    ...[...moves.values()].flatMap(({ going }) => going ?? []),
  ];
}

/**
 * Records the origin of each entry with a mark when it is first seen: later its mark may contain former
 * names.
 */
export function adoptMoves(scan: Scan, records: Records): void {
  for (const { entry, source } of originsOf(scan, records.moves).values()) {
    if (entry.key !== undefined && !records.moves.has(entry.key)) records.setMove(entry.key, { at: source });
  }
}

function withReasons(
  items: ReadonlyMap<string, Item>,
  failed: ReadonlyMap<string, string>,
): Map<string, Item> {
  return new Map(
    [...items].map(([id, item]) => {
      const reason = item.hold === undefined ? undefined : failed.get(item.place);
      return [id, reason === undefined ? item : { ...item, hold: reason }];
    }),
  );
}
