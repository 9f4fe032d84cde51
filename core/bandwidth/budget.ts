/**
 * Divides the daemon's one bandwidth budget over the shares by demand. Each mount limits only itself, so
 * the parts must never add up to more than the whole. Pure.
 */
import type { Bandwidth } from '../contract/mount.ts';

/**
 * Fraction of each direction that idle shares keep together, so that a first byte never waits for a cycle.
 */
const IDLE_PART = 0.05;
/**
 * Bytes per second of one idle share. rclone takes a new limit only when the read that is under way is paid for by the
 * former one: 64 KiB, which must not take longer than anybody waits for it.
 */
const IDLE_LEAST = 65_536;
/** The most of each direction that idle shares keep together for that. */
const MOST_IDLE_PART = 0.25;
/** Bytes per second. Never 0, because a mount reads 0 as unlimited. */
const LEAST = 1;

export interface Demand {
  readonly share: string;
  readonly up: boolean;
  readonly down: boolean;
  /** The most that this share may have; left out: as much as there is. */
  readonly limit?: Bandwidth | undefined;
}

/** One share in one direction. */
interface Claim {
  readonly isBusy: boolean;
  /** 0: none. */
  readonly limit: number;
}

/**
 * Parts by share name. A direction whose budget is 0 is unlimited for everyone who has no limit of its own.
 * What a share may not use because of its limit is divided over the others.
 */
export function divideBandwidth(budget: Bandwidth, demands: readonly Demand[]): Map<string, Bandwidth> {
  const up = divideWithin(
    budget.up,
    demands.map((demand) => ({ isBusy: demand.up, limit: demand.limit?.up ?? 0 })),
  );
  const down = divideWithin(
    budget.down,
    demands.map((demand) => ({ isBusy: demand.down, limit: demand.limit?.down ?? 0 })),
  );
  return new Map(
    demands.map((demand, index) => [demand.share, { up: up[index] ?? 0, down: down[index] ?? 0 }]),
  );
}

/** The slower of two, where 0 is unlimited. */
export function slower(one: Bandwidth, other: Bandwidth): Bandwidth {
  return { up: least(one.up, other.up), down: least(one.down, other.down) };
}

/** The faster of two, where 0 is unlimited. */
export function faster(one: Bandwidth, other: Bandwidth): Bandwidth {
  return { up: most(one.up, other.up), down: most(one.down, other.down) };
}

function most(one: number, other: number): number {
  return one === 0 || other === 0 ? 0 : Math.max(one, other);
}

/**
 * What is left of a budget after others have taken their parts (0: all of it): never less than idle shares keep, so
 * that nobody stands still because another one has everything and gives up nothing.
 */
export function remaining(budget: Bandwidth, taken: readonly Bandwidth[]): Bandwidth {
  const rest = (whole: number, parts: readonly number[]): number =>
    whole === 0
      ? 0
      : Math.max(
          LEAST,
          Math.floor(whole * IDLE_PART),
          whole - sumOf(parts.map((one) => (one === 0 ? whole : one))),
        );
  return {
    up: rest(
      budget.up,
      taken.map((one) => one.up),
    ),
    down: rest(
      budget.down,
      taken.map((one) => one.down),
    ),
  };
}

function sumOf(parts: readonly number[]): number {
  return parts.reduce((sum, one) => sum + one, 0);
}

function least(one: number, other: number): number {
  if (one === 0) return other;
  return other === 0 ? one : Math.min(one, other);
}

function divideWithin(total: number, claims: readonly Claim[]): readonly number[] {
  const parts = new Map<Claim, number>();
  let [rest, open] = [total, claims];
  for (;;) {
    const even = divide(
      rest,
      open.map(({ isBusy }) => isBusy),
    );
    const isOver = ({ limit }: Claim, index: number): boolean =>
      least(limit, even[index] ?? 0) !== even[index];
    if (!open.some(isOver)) {
      open.forEach((claim, index) => parts.set(claim, even[index] ?? 0));
      return claims.map((claim) => parts.get(claim) ?? 0);
    }
    for (const claim of open.filter(isOver)) {
      const part = Math.max(LEAST, Math.floor(claim.limit));
      parts.set(claim, part);
      rest = total === 0 ? 0 : Math.max(LEAST, rest - part);
    }
    open = open.filter((claim) => !parts.has(claim));
  }
}

function divide(total: number, busy: readonly boolean[]): readonly number[] {
  if (total <= 0) return busy.map(() => 0);
  const busyCount = busy.filter(Boolean).length;
  const idleCount = busy.length - busyCount;
  if (busyCount === 0 || idleCount === 0) return busy.map(() => part(total, busy.length));
  const wanted = Math.max(total * IDLE_PART, idleCount * IDLE_LEAST);
  // Never more than the busy ones have.
  const most = Math.min(total * MOST_IDLE_PART, (total * idleCount) / busy.length);
  const forIdle = Math.max(idleCount * LEAST, Math.floor(Math.min(wanted, most)));
  return busy.map((isBusy) => (isBusy ? part(total - forIdle, busyCount) : part(forIdle, idleCount)));
}

function part(total: number, count: number): number {
  return Math.max(LEAST, Math.floor(total / count));
}
