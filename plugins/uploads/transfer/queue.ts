/** What may go next, and what became of the tries so far. Pure but for its own memory. */
import type { QueueEntry, RemoteFailure } from 'mountkeeper';
import { isAtOrInside } from '../compare/paths.ts';
import type { Item, Plan } from '../compare/plan.ts';

const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;
/** A refusal may be a mood; the third one is told. */
const STUCK_AFTER = 3;
/** Deletions wait for uploads, but not for an endless row of them. */
const DELETION_PATIENCE_MS = 60_000;
const OLD_MS = 600_000;
const SIZE_CLASSES = [1 << 20, 1 << 26, 1 << 30];
/** Steps that are no uploads, at the same time. */
const SMALL_STEPS = 4;

interface Try { readonly tries: number; readonly nextTryAt: number; readonly reason: string; readonly isSilence: boolean }

export interface Running { readonly item: Item; sentBytes: number }

export class Queue {
  readonly running = new Map<string, Running>();
  #plan: Plan | undefined;
  readonly #done = new Set<string>();
  readonly #tries = new Map<string, Try>();
  readonly #firstSeen = new Map<string, number>();
  /** Why nothing goes: the remote is silent. Tried again with one item from then on. */
  #silence: { readonly reason: string; readonly until: number } | undefined;

  get items(): readonly Item[] {
    return [...(this.#plan?.items.values() ?? [])].filter(({ id }) => !this.#done.has(id));
  }

  adopt(plan: Plan, now: number): void {
    this.#plan = plan;
    this.#done.clear();
    for (const map of [this.#tries, this.#firstSeen]) for (const id of map.keys()) if (!plan.items.has(id)) map.delete(id);
    for (const { id, entry, action } of plan.items.values()) {
      if (this.#firstSeen.has(id)) continue;
      const changedAt = action === 'upload' && entry !== undefined ? Number(entry.changedNs / 1_000_000n) : now;
      this.#firstSeen.set(id, Math.min(changedAt, now));
    }
  }

  /** What the plan says is out of date: nothing of it starts any more. */
  discard(): void {
    this.#plan = this.#plan && { ...this.#plan, items: new Map() };
  }

  hurry(): void {
    this.#silence = undefined;
    for (const [id, one] of this.#tries) this.#tries.set(id, { ...one, nextTryAt: 0 });
  }

  /** What may start now, the most urgent first, as many as there is room for. */
  next(now: number, transfers: number): Item[] {
    if (this.#silence !== undefined && (this.running.size > 0 || this.#silence.until > now)) return [];
    const open = this.items.filter((item) => !this.running.has(item.id));
    const ready = open.filter((item) => this.#isReady(item, now)).sort((a, b) => this.#urgency(a, now) - this.#urgency(b, now) || this.since(a) - this.since(b));
    const isWorkAhead = ready.some((item) => !isLate(item)) || [...this.running.values()].some(({ item }) => !isLate(item));
    const chosen: Item[] = [];
    const room = { upload: transfers, other: SMALL_STEPS };
    for (const { item } of this.running.values()) room[kindOf(item)] -= 1;
    for (const item of ready) {
      if (isLate(item) && isWorkAhead && now - this.since(item) < DELETION_PATIENCE_MS) continue;
      if (room[kindOf(item)] <= 0 || [...chosen, ...this.#runningItems()].some((other) => collide(item, other))) continue;
      room[kindOf(item)] -= 1;
      chosen.push(item);
      if (this.#silence !== undefined) break;
    }
    return chosen;
  }

  /** When the next pause ends; undefined when nothing waits for one. */
  nextTryAt(): number | undefined {
    const times = this.items.filter(({ hold }) => hold === undefined).map(({ id }) => this.#tries.get(id)?.nextTryAt).filter((at) => at !== undefined);
    if (this.#silence !== undefined) times.push(this.#silence.until);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  succeeded(item: Item): void {
    this.#done.add(item.id);
    this.#tries.delete(item.id);
    this.#silence = undefined;
    // Those that the silence made wait need not any longer.
    for (const [id, one] of this.#tries) if (one.isSilence) this.#tries.delete(id);
  }

  failed(item: Item, error: RemoteFailure, now: number): void {
    const tries = (this.#tries.get(item.id)?.tries ?? 0) + 1;
    const isSilence = error.remote === 'silent';
    if (isSilence) this.#silence = { reason: error.message, until: now + FIRST_PAUSE_MS };
    else this.#silence = undefined;
    const pauseMs = isSilence ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS);
    this.#tries.set(item.id, { tries, nextTryAt: now + pauseMs, reason: error.message, isSilence });
  }

  since({ id }: Item): number {
    return this.#firstSeen.get(id) ?? 0;
  }

  isStuck({ id, isRefused = false }: Item): boolean {
    const one = this.#tries.get(id);
    return isRefused || (one !== undefined && !one.isSilence && one.tries >= STUCK_AFTER);
  }

  reason(item: Item): string {
    const one = this.#tries.get(item.id);
    return item.hold ?? this.#silence?.reason ?? one?.reason ?? 'It waits for its turn.';
  }

  entries(): QueueEntry[] {
    return this.items.map((item) => {
      const run = this.running.get(item.id);
      const one = this.#tries.get(item.id);
      return {
        path: item.path, action: item.action, bytes: item.bytes, sentBytes: run?.sentBytes ?? 0, since: this.since(item),
        state: run === undefined ? (this.isStuck(item) ? 'stuck' : 'waiting') : 'uploading',
        reason: run === undefined ? this.reason(item) : 'It is on its way.',
        tries: one?.tries ?? 0, ...(one !== undefined && one.nextTryAt > 0 && { nextTryAt: one.nextTryAt }),
      };
    });
  }

  #runningItems(): Item[] {
    return [...this.running.values()].map(({ item }) => item);
  }

  #isReady({ id, hold, needs }: Item, now: number): boolean {
    if (hold !== undefined || (this.#tries.get(id)?.nextTryAt ?? 0) > now) return false;
    return [...needs].every((need) => this.#done.has(need) || this.#plan?.items.has(need) !== true);
  }

  /** Small: before others. What has waited long is small. */
  #urgency(item: Item, now: number): number {
    const order = { move: 0, 'make folder': 1, upload: 2, delete: 3 }[item.action] * 10;
    if (item.action !== 'upload' || now - this.since(item) > OLD_MS) return order;
    return order + SIZE_CLASSES.filter((limit) => item.bytes > limit).length;
  }
}

function isLate({ action, isInTheWay }: Item): boolean {
  return action === 'delete' && isInTheWay !== true;
}

function kindOf({ action }: Item): 'upload' | 'other' {
  return action === 'upload' ? 'upload' : 'other';
}

/** Steps about one place, or about a folder and what is in it, go one after the other. */
function collide(a: Item, b: Item): boolean {
  const isWide = [a, b].some(({ action }) => action === 'move' || action === 'delete');
  return spots(a).some((one) => spots(b).some((other) => one === other || (isWide && (isAtOrInside(one, other) || isAtOrInside(other, one)))));
}

function spots({ place, move }: Item): string[] {
  return move === undefined ? [place] : [place, move.source];
}
