/** One look at the upper folder, from what lies there to what has to be done. */
import type { Clock, Processes, UploadOptions } from 'mountkeeper';
import { learn } from '../compare/learn.ts';
import { originsOf } from '../compare/places.ts';
import { planUpper } from '../compare/plan.ts';
import type { Conditions, Item, Plan } from '../compare/plan-types.ts';
import { identityOf, NOTHING } from '../compare/records.ts';
import type { Records } from '../compare/records.ts';
import { Room } from './room.ts';
import { createScanner } from '../compare/scan.ts';
import type { Scan, Scanner } from '../compare/scan.ts';

/** A clock that was set back must not let files wait until it is there again. */
const FUTURE_NS = 2_000_000_000n;
/** What users work with is left alone. */
const REST_BEFORE_OUT_MS = 60_000;
const TORN_LOOKS = 20;
const TORN_MS = 60_000;

export interface PlannerOptions extends UploadOptions {
  readonly clock: Clock;
  readonly processes: Pick<Processes, 'run'>;
  readonly restMs?: number;
}

export interface PlanningOptions {
  /** All may go: no quiet time, and nobody is waited for who stands in a folder. */
  readonly isHurried: boolean;
  /** Paths that need no quiet time. */
  readonly isUrgent?: (path: string) => boolean;
  readonly signal: AbortSignal;
}

export interface TimedScan extends Scan {
  /** In monotonic milliseconds. */
  readonly startedMs: number;
}

export class Planner {
  readonly #options: PlannerOptions;
  readonly #scanner: Scanner;
  readonly #room: Room;

  /** When users were seen to see a folder where the remote has it, in monotonic milliseconds; by key. */
  readonly #settledAt = new Map<string, number>();
  /** Keys with a record that the last look did not find. */
  #gone: ReadonlySet<string> = new Set();
  /** Looks in a row during which something was renamed. */
  #torn: { readonly looks: number; readonly sinceMs: number } | undefined;

  constructor(options: PlannerOptions) {
    this.#options = options;
    this.#scanner = createScanner(options.layer.upper, options.processes);
    this.#room = new Room(options.layer.upper, options.clock);
  }

  /** Ends with the signal. */
  watchRoom(end: AbortSignal): Promise<void> {
    return this.#room.watch(end);
  }

  async scan(signal: AbortSignal): Promise<TimedScan> {
    const startedMs = this.#options.clock.monotonic();
    return { ...(await this.#scanner.scan(signal)), startedMs };
  }

  /** Finds out what is new before it says what to do about it. */
  async plan(
    scan: TimedScan,
    records: Records,
    { signal, ...options }: PlanningOptions,
  ): Promise<{ readonly plan: Plan; readonly isMoreToLearn: boolean }> {
    const { layer, remote } = this.#options;
    adoptMoves(scan, records);
    this.#forgetMoves(scan, records);
    const room = { isCut: await this.#room.look(), isUrgent: options.isUrgent ?? (() => false) };
    const conditions = { ...this.#times(options), ...room };
    const first = planUpper(scan, records, {
      ...conditions,
      isOpen: () => false,
      inUse: new Set(),
      isWhole: true,
    });
    const isStill = (): Promise<boolean> => this.#scanner.isStill(scan, signal);
    const failed =
      first.lessons.length === 0
        ? new Map<string, string>()
        : await learn(first.lessons, { layer, remote, records, sources: first.sources, isStill, signal });
    const use = await this.#use(first, options);
    const planned = (isWhole: boolean): Plan => planUpper(scan, records, { ...conditions, ...use, isWhole });
    const isWhole = !replacesAnything(planned(true), records) || (await this.#isWhole(scan, signal));
    // Records may have changed meanwhile.
    const plan = planned(isWhole);
    for (const { place, entry } of plan.cut) {
      records.set(place, { ...(records.places.get(place) ?? { remote: NOTHING }), cut: identityOf(entry) });
    }
    for (const place of plan.spent) records.drop(place);
    // What is in a folder that users made depends on what it hides: that is learnt one after the other.
    const isMoreToLearn = !isWhole || plan.lessons.some(({ place }) => !failed.has(place));
    return {
      plan: failed.size === 0 ? plan : { ...plan, items: withReasons(plan.items, failed) },
      isMoreToLearn,
    };
  }

  async #use(
    { items }: Plan,
    { isHurried }: Pick<PlanningOptions, 'isHurried'>,
  ): Promise<Pick<Conditions, 'isOpen' | 'inUse'>> {
    const { layer } = this.#options;
    const actions = new Set([...items.values()].map(({ action }) => action));
    const open = actions.has('upload') ? await layer.openForWriting() : new Set<string>();
    const inUse = actions.has('move') && !isHurried ? await layer.inUse() : new Set<string>();
    return { isOpen: (path) => open.has(path), inUse };
  }

  /**
   * A look is no moment: of what was renamed meanwhile it may show neither the former name nor the later one,
   * and what seems to be deleted or replaced is all that there is of a renamed file. Where people never cease
   * to rename, many looks in a row do.
   */
  async #isWhole(scan: Scan, signal: AbortSignal): Promise<boolean> {
    const now = this.#options.clock.monotonic();
    if (await this.#scanner.isStill(scan, signal)) {
      this.#torn = undefined;
      return true;
    }
    this.#torn = { looks: (this.#torn?.looks ?? 0) + 1, sinceMs: this.#torn?.sinceMs ?? now };
    return this.#torn.looks > TORN_LOOKS && now - this.#torn.sinceMs > TORN_MS;
  }

  /** Users see these where the remote has them, and whatever is looked up from now on is told so. */
  settled(keys: readonly string[]): void {
    for (const key of keys) this.#settledAt.set(key, this.#options.clock.monotonic());
  }

  /**
   * A mark that was written before users saw where a folder is has been read by now. What left the upper
   * folder has no record.
   */
  #forgetMoves(scan: TimedScan, records: Records): void {
    const keys = new Set([...scan.entries.values()].map(({ key }) => key));
    const gone = [...records.moves.keys()].filter((key) => !keys.has(key));
    // A look is no moment: what was renamed out of a folder that is gone may not have been seen yet.
    for (const key of gone.filter((one) => this.#gone.has(one))) noteUnanswered(key, records);
    for (const key of gone) if (this.#gone.has(key)) records.setMove(key, null);
    this.#gone = new Set(gone);
    for (const [key, at] of this.#settledAt) {
      if (at >= scan.startedMs) continue;
      this.#settledAt.delete(key);
      const record = records.moves.get(key);
      if (record?.former !== undefined)
        records.setMove(key, { at: record.at, ...(record.going !== undefined && { going: record.going }) });
    }
  }

  #times({
    isHurried,
    isUrgent = () => false,
  }: Omit<PlanningOptions, 'signal'>): Pick<Conditions, 'isQuiet' | 'isRested'> {
    const { clock, writeBackMs, restMs = REST_BEFORE_OUT_MS } = this.#options;
    const now = nanoseconds(clock.now());
    const quietSince = now - nanoseconds(writeBackMs());
    const restedSince = now - nanoseconds(restMs);
    return {
      isQuiet: (changed, path) =>
        isHurried || isUrgent(path) || changed <= quietSince || changed > now + FUTURE_NS,
      isRested: (changed) => changed <= restedSince,
    };
  }
}

/**
 * Whether it would take anything from the remote that users saw there, and that may be all there is of a file
 * they renamed.
 */
function replacesAnything({ items }: Plan, { places }: Records): boolean {
  return [...items.values()].some(
    ({ action, hold, place }) =>
      hold === undefined &&
      (action === 'delete' || (action === 'upload' && places.get(place)?.remote.kind === 'file')),
  );
}

/**
 * Users have removed or replaced what they had moved before it was seen whether the remote had moved it. It
 * may have: then what is at the other place is nobody else's, and goes as they wanted.
 */
function noteUnanswered(key: string, records: Records): void {
  const move = records.moves.get(key);
  if (move?.going === undefined) return;
  const moved = records.places.get(move.at)?.remote;
  const there = records.places.get(move.going);
  if (moved?.kind === 'file') {
    records.set(move.going, there === undefined ? { remote: moved } : { ...there, sending: moved.version });
  } else if (there === undefined || there.remote.kind === 'nothing') {
    records.set(move.going, { remote: { kind: 'folder' }, isShown: true });
  }
}

/**
 * After a start: a former run wanted these taken out and was ended before; what is still here counts again.
 */
export function revive({ entries }: Scan, records: Records): void {
  for (const [place, record] of records.places) {
    if (record.isLeaving === true && entries.has(place)) records.set(place, { ...record, isLeaving: false });
  }
}

/**
 * Where each entry with a mark comes from is put on record when it is first seen: later its mark may speak of
 * former names.
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

function nanoseconds(ms: number): bigint {
  return BigInt(Math.trunc(ms)) * 1_000_000n;
}
