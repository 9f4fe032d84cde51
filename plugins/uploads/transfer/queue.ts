/**
 * Decides which steps may start next, and remembers the results of attempts. Pure apart from its own
 * memory.
 */
import type { QueueEntry, RemoteFailure } from 'mountkeeper';
import { shownPath } from '../compare/names.ts';
import { folded, isAtOrInside } from '../compare/paths.ts';
import type { Item, Plan } from '../compare/plan-types.ts';
import { versionIn } from './leaving/given-up.ts';

const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;
/** A refusal may be temporary; the third one is reported. */
const STUCK_AFTER = 3;
/** Deletions wait for uploads, but no longer than this. */
const DELETION_PATIENCE_MS = 60_000;
const OLD_MS = 600_000;
const LONG_BYTES = 1 << 26;
const SIZE_CLASSES = [1 << 20, LONG_BYTES, 1 << 30];
/** Concurrent steps that are not uploads. */
const SMALL_STEPS = 4;
/** Less is no change of the clock. */
const CLOCK_SLACK_MS = 1_000;

interface Try {
  readonly tries: number;
  readonly nextTryAt: number;
  readonly reason: string;
  readonly isSilence: boolean;
  /** How many times the remote was silent to this one and then answered another. */
  readonly alone: number;
}

type Lane = 'upload' | 'small' | 'late';

export interface Running {
  readonly item: Item;
  sentBytes: number;
}

/** What is not on the remote as users see it. */
export interface Waiting {
  /** The path that users see. */
  readonly path: string;
  /** The paths, here and on the remote, that it is about, each with all that is in it. */
  readonly spots: readonly string[];
  readonly reason: string;
}

export class Queue {
  readonly running = new Map<string, Running>();
  #items: ReadonlyMap<string, Item> = new Map();
  readonly #done = new Set<string>();
  /** Uploads that are given up: not shown any more, though they count until the next plan knows. */
  readonly #discarded = new Set<string>();
  /** Items that may start, most urgent first; deletions that wait for everything else are separate. */
  #lanes: Record<Lane, Map<string, Item>> = { upload: new Map(), small: new Map(), late: new Map() };
  readonly #tries = new Map<string, Try>();
  readonly #firstSeen = new Map<string, number>();
  #isMoveHeld = false;
  /** Until then only urgent items start, in milliseconds since the epoch; 0 means no pause. */
  #pausedUntil = 0;
  /** Paths that go first, even while the rest is paused. */
  readonly #urgent = new Set<string>();
  /** Paths of which nothing starts. */
  readonly #keptBack = new Set<string>();
  /** Set while the remote does not answer; from `until` on, it is tried again with one item. */
  #silence: { readonly reason: string; readonly until: number } | undefined;
  /** How far the wall clock is ahead of the monotonic one. */
  #aheadMs: number | undefined;

  /**
   * Tell it before it is told another time. After a wall clock was set back, what is to wait does not wait longer, and
   * nothing is younger than it was. One that was set forward stays as it is: a machine that has slept looks the same.
   */
  clockSays(now: number, monotonicMs: number): void {
    const aheadMs = now - monotonicMs;
    const backMs = (this.#aheadMs ?? aheadMs) - aheadMs;
    if (backMs > 0 && backMs <= CLOCK_SLACK_MS) return;
    this.#aheadMs = aheadMs;
    if (backMs <= 0) return;
    if (this.#pausedUntil > 0) this.#pausedUntil -= backMs;
    if (this.#silence !== undefined)
      this.#silence = { ...this.#silence, until: this.#silence.until - backMs };
    for (const [id, one] of this.#tries)
      this.#tries.set(id, { ...one, nextTryAt: Math.max(0, one.nextTryAt - backMs) });
    for (const [id, since] of this.#firstSeen) this.#firstSeen.set(id, since - backMs);
  }

  get items(): readonly Item[] {
    return [...this.#items.values()].filter(({ id }) => !this.#done.has(id));
  }

  get isEmpty(): boolean {
    return this.#items.size === this.#done.size;
  }

  /** Milliseconds since the epoch; undefined when nothing is paused. */
  pausedUntil(now: number): number | undefined {
    return this.#pausedUntil > now ? this.#pausedUntil : undefined;
  }

  /** 0 ends a pause. Running steps are finished. */
  pause(until: number): void {
    this.#pausedUntil = until;
  }

  /** Sends this path, and everything in it, next. */
  prefer(path: string): void {
    this.#urgent.add(path);
    this.#silence = undefined;
    for (const { id, path: one } of this.#items.values()) {
      const former = this.#tries.get(id);
      if (former !== undefined && isAtOrInside(one, path)) this.#tries.set(id, { ...former, nextTryAt: 0 });
    }
  }

  /** Something waits there, or in it. */
  hasAt(path: string): boolean {
    return this.items.some((item) => isAtOrInside(item.path, path));
  }

  get hasUrgent(): boolean {
    return this.#urgent.size > 0;
  }

  isUrgent(path: string): boolean {
    return this.#urgent.size > 0 && [...this.#urgent].some((one) => isAtOrInside(path, one));
  }

  adopt(plan: Plan, now: number): void {
    this.#items = plan.items;
    this.#done.clear();
    this.#discarded.clear();
    this.#endUrgency();
    for (const map of [this.#tries, this.#firstSeen])
      for (const id of map.keys()) if (!plan.items.has(id)) map.delete(id);
    for (const { id, entry, action } of plan.items.values()) {
      if (this.#firstSeen.has(id)) continue;
      const changedAt =
        action === 'upload' && entry !== undefined ? Number(entry.changedNs / 1_000_000n) : now;
      this.#firstSeen.set(id, Math.min(changedAt, now));
    }
    this.#lanes = { upload: new Map(), small: new Map(), late: new Map() };
    const open = [...plan.items.values()]
      .filter(({ id, hold }) => hold === undefined && (this.#tries.get(id)?.nextTryAt ?? 0) <= now)
      .map((item) => ({ item, urgency: this.#urgency(item, now), since: this.since(item) }));
    for (const { item } of open.sort((a, b) => a.urgency - b.urgency || a.since - b.since))
      this.#lanes[laneOf(item)].set(item.id, item);
  }

  /** Until the returned function is called, nothing of this path starts. Undefined while it is going already. */
  keepBack(path: string): (() => void) | undefined {
    if (this.#keptBack.has(path) || this.#runningItems().some((item) => isAbout(item, path)))
      return undefined;
    this.#keptBack.add(path);
    return () => void this.#keptBack.delete(path);
  }

  discarded(path: string): void {
    for (const { id, action, path: one } of this.items)
      if (action === 'upload' && one === path) this.#discarded.add(id);
  }

  /** A path is no longer urgent when nothing of it waits. */
  #endUrgency(): void {
    for (const path of this.#urgent)
      if (![...this.#items.values()].some((item) => isAtOrInside(item.path, path))) this.#urgent.delete(path);
  }

  /**
   * A move has ended: what is at its places, above or in them, may mean another place by now. Nothing of that starts
   * before the next plan, and after a folder's move nothing at all: the folders that the remote moves while a listing
   * is read anew show empty until their marks are renewed, so it stays at a few at a time.
   */
  moved(move: Item): void {
    if (move.entry?.kind === 'folder') {
      this.#lanes = { upload: new Map(), small: new Map(), late: new Map() };
      return;
    }
    const ends = [...foldedSpots(move), ...(move.move?.going === undefined ? [] : [folded(move.move.going)])];
    const isNear = (one: string): boolean =>
      ends.some((end) => isAtOrInside(one, end) || isAtOrInside(end, one));
    for (const lane of Object.values(this.#lanes))
      for (const item of lane.values()) if (foldedPaths(item).some(isNear)) lane.delete(item.id);
  }

  hurry(): void {
    this.#silence = undefined;
    this.#pausedUntil = 0;
    for (const [id, one] of this.#tries) this.#tries.set(id, { ...one, nextTryAt: 0 });
  }

  /** Items that may start now, most urgent first, as many as there are free slots. */
  next(now: number, transfers: number): Item[] {
    if (this.#silence !== undefined && (this.running.size > 0 || this.#silence.until > now)) return [];
    if (this.pausedUntil(now) !== undefined) return this.#urgentOnes(transfers);
    if (this.#silence !== undefined) return this.#trial();
    const chosen: Item[] = [];
    this.#take('small', { room: SMALL_STEPS }, chosen);
    this.#take('upload', { room: transfers }, chosen);
    const isWorkAhead = [...chosen, ...this.#runningItems()].some((item) => laneOf(item) !== 'late');
    const [first] = this.#lanes.late.values();
    if (!isWorkAhead || (first !== undefined && now - this.since(first) > DELETION_PATIENCE_MS))
      this.#take('late', { room: SMALL_STEPS }, chosen);
    return chosen;
  }

  /**
   * While the remote is silent: one item, and each in its turn, since it may be silent to one of them alone. A long one
   * later, for all others wait for its end.
   */
  #trial(): Item[] {
    const { small, upload, late } = this.#lanes;
    let [chosen, least]: [Item | undefined, number] = [undefined, Infinity];
    for (const item of [...small.values(), ...upload.values(), ...late.values()]) {
      const turn = (this.#tries.get(item.id)?.tries ?? 0) + 2 * Number(isLong(item));
      if (turn < least && this.#mayStart(item, [])) [chosen, least] = [item, turn];
    }
    return chosen === undefined ? [] : [chosen];
  }

  /** While listings are being refreshed, no move may begin. */
  holdMoves(isHeld: boolean): void {
    this.#isMoveHeld = isHeld;
  }

  /** Includes what they need: a folder to be created, an entry that blocks them. */
  #urgentOnes(transfers: number): Item[] {
    const wanted = new Set<string>();
    const want = (item: Item): void => {
      if (wanted.has(item.id)) return;
      wanted.add(item.id);
      for (const need of item.needs) {
        const other = this.#items.get(need);
        if (other !== undefined) want(other);
      }
    };
    for (const item of this.#items.values()) if (this.isUrgent(item.path)) want(item);
    const chosen: Item[] = [];
    for (const lane of ['small', 'upload', 'late'] as const)
      this.#take(lane, { room: lane === 'upload' ? transfers : SMALL_STEPS, wanted }, chosen);
    return chosen;
  }

  #take(
    lane: Lane,
    { room, wanted }: { readonly room: number; readonly wanted?: ReadonlySet<string> },
    chosen: Item[],
  ): void {
    const free = this.#free(lane, room);
    for (const item of this.#lanes[lane].values()) {
      if (free.slots <= 0) return;
      if (!this.#mayStart(item, chosen, wanted) || (isLong(item) && free.forLong <= 0)) continue;
      chosen.push(item);
      free.slots -= 1;
      free.forLong -= Number(isLong(item));
    }
  }

  /** Long uploads leave a slot to the others, or small ones would wait for hours. */
  #free(lane: Lane, room: number): { slots: number; forLong: number } {
    const taken = [...this.running.values()].filter(({ item }) => laneOf(item) === lane);
    return {
      slots: room - taken.length,
      forLong: Math.max(1, room - 1) - taken.filter(({ item }) => isLong(item)).length,
    };
  }

  #mayStart(item: Item, chosen: readonly Item[], wanted?: ReadonlySet<string>): boolean {
    if (this.running.has(item.id) || !this.#isReady(item) || wanted?.has(item.id) === false) return false;
    return ![...chosen, ...this.#runningItems()].some((other) => collide(item, other));
  }

  /** So much of one has gone out that the remote must take it: the others do not wait for its end. */
  progressed(bytes: number): void {
    if (bytes >= LONG_BYTES) this.#silence = undefined;
  }

  succeeded(item: Item): void {
    if (this.#items.has(item.id)) this.#done.add(item.id);
    this.#lanes[laneOf(item)].delete(item.id);
    this.#tries.delete(item.id);
    this.#silence = undefined;
    // The remote answers again, so items that only waited for it need not wait longer. To which it was silent alone
    // again and again, that has a reason of its own.
    for (const [id, one] of this.#tries) {
      if (!one.isSilence) continue;
      const alone = one.alone + 1;
      // Counted once, until it has failed again.
      this.#tries.set(id, { ...one, tries: alone, alone, nextTryAt: 0, isSilence: false });
    }
  }

  /** The next scan decides again about this item. */
  postponed(item: Item): void {
    this.#lanes[laneOf(item)].delete(item.id);
  }

  failed(item: Item, error: RemoteFailure, now: number): void {
    const { tries: former = 0, alone = 0 } = this.#tries.get(item.id) ?? {};
    const tries = former + 1;
    const isSilence = error.remote === 'silent' && alone < STUCK_AFTER;
    if (isSilence) this.#silence = { reason: error.message, until: now + FIRST_PAUSE_MS };
    else this.#silence = undefined;
    const pauseMs = isSilence ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS);
    this.#tries.set(item.id, { tries, nextTryAt: now + pauseMs, reason: error.message, isSilence, alone });
    // A later scan makes it ready again.
    if (!isSilence) this.#lanes[laneOf(item)].delete(item.id);
  }

  since({ id }: Item): number {
    return this.#firstSeen.get(id) ?? 0;
  }

  isStuck({ id, isRefused = false }: Item): boolean {
    const one = this.#tries.get(id);
    return isRefused || (one !== undefined && !one.isSilence && one.tries >= STUCK_AFTER);
  }

  reason(item: Item, now = 0): string {
    const until = this.isUrgent(item.path) ? undefined : this.pausedUntil(now);
    if (until !== undefined)
      return this.#ownFailure(item) ?? `Uploads are paused until ${new Date(until).toISOString()}.`;
    const failure = this.#tries.get(item.id)?.reason;
    return item.hold ?? this.#silence?.reason ?? failure ?? 'It waits for its turn.';
  }

  /** The end of a pause alone does not send it: it is refused, or has failed though the remote answered. */
  #ownFailure(item: Item): string | undefined {
    const one = this.#tries.get(item.id);
    const hasFailed = one !== undefined && !one.isSilence && one.tries > one.alone;
    return hasFailed || this.isStuck(item) ? (item.hold ?? one?.reason) : undefined;
  }

  entries(now: number): QueueEntry[] {
    const shown = this.items.filter(({ id }) => !this.#discarded.has(id));
    return shown.map((item) => {
      const run = this.running.get(item.id);
      const one = this.#tries.get(item.id);
      return {
        path: shownPath(item.path),
        action: item.action,
        bytes: item.bytes,
        sentBytes: run?.sentBytes ?? 0,
        since: this.since(item),
        state: run === undefined ? (this.isStuck(item) ? 'stuck' : 'waiting') : 'uploading',
        reason: run === undefined ? this.reason(item, now) : 'It is on its way.',
        tries: one?.tries ?? 0,
        ...this.#nextTry(item, now),
        ...versionIn(item),
      };
    });
  }

  /** Not in a pause, which ends later or earlier, and says when. */
  #nextTry({ id, path, quietAt = 0 }: Item, now: number): Pick<QueueEntry, 'nextTryAt'> {
    const isPaused = this.pausedUntil(now) !== undefined && !this.isUrgent(path);
    const at = Math.max(this.#tries.get(id)?.nextTryAt ?? 0, isPaused || this.running.has(id) ? 0 : quietAt);
    return at > 0 ? { nextTryAt: at } : {};
  }

  waiting(now: number): Waiting[] {
    return this.items.map((item) => ({
      path: shownPath(item.path),
      spots: [item.path, ...spots(item), ...(item.move?.going === undefined ? [] : [item.move.going])],
      reason: this.running.has(item.id) ? 'It is on its way.' : this.reason(item, now),
    }));
  }

  #runningItems(): Item[] {
    return [...this.running.values()].map(({ item }) => item);
  }

  #isReady(item: Item): boolean {
    const { action, needs } = item;
    // One whose answer was lost only finds out, which is what whoever holds them waits for.
    if (this.#isMoveHeld && action === 'move' && item.move?.going === undefined) return false;
    if (this.#isKeptBack(item)) return false;
    for (const need of needs) if (!this.#done.has(need) && this.#items.has(need)) return false;
    return true;
  }

  #isKeptBack(item: Item): boolean {
    for (const path of this.#keptBack) if (isAbout(item, path)) return true;
    return false;
  }

  /** Small files first. Items that have waited long count as small. */
  #urgency(item: Item, now: number): number {
    if (this.isUrgent(item.path)) return -1;
    const order = { move: 0, 'make folder': 1, upload: 2, delete: 3 }[item.action] * 10;
    if (item.action !== 'upload' || now - this.since(item) > OLD_MS) return order;
    return order + SIZE_CLASSES.filter((limit) => item.bytes > limit).length;
  }
}

function isLong({ action, bytes }: Item): boolean {
  return action === 'upload' && bytes > LONG_BYTES;
}

function laneOf({ action, isInTheWay }: Item): Lane {
  if (action === 'upload') return 'upload';
  return action === 'delete' && isInTheWay !== true ? 'late' : 'small';
}

/**
 * Steps about one place, or about a folder and its content, run one after the other; so do those about names that
 * the remote may take for one.
 */
function collide(a: Item, b: Item): boolean {
  const isWide = [a, b].some(({ action }) => action === 'move' || action === 'delete');
  return foldedSpots(a).some((one) =>
    foldedSpots(b).some(
      (other) => one === other || (isWide && (isAtOrInside(one, other) || isAtOrInside(other, one))),
    ),
  );
}

/** The path itself, or a folder that goes with it: moved or deleted. Folders that are made are in nobody's way. */
function isAbout(item: Item, path: string): boolean {
  const isWide = item.action === 'move' || item.action === 'delete';
  return [item.path, ...spots(item)].some((one) => one === path || (isWide && isAtOrInside(path, one)));
}

const foldedOf = new WeakMap<Item, readonly string[]>();

function foldedSpots(item: Item): readonly string[] {
  const known = foldedOf.get(item) ?? spots(item).map(folded);
  foldedOf.set(item, known);
  return known;
}

const foldedPathsOf = new WeakMap<Item, readonly string[]>();

/** Its spots, and the path that users see. */
function foldedPaths(item: Item): readonly string[] {
  const known = foldedPathsOf.get(item) ?? [folded(item.path), ...foldedSpots(item)];
  foldedPathsOf.set(item, known);
  return known;
}

function spots({ place, move }: Item): string[] {
  return move === undefined ? [place] : [place, move.source];
}
