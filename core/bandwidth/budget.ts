/**
 * The daemon's one bandwidth budget, divided over the shares by demand. Each mount limits only itself, so the
 * parts must never add up to more than the whole. Pure.
 */
import type { Bandwidth } from '../contract/mount.ts';

/**
 * The part, of each direction, that idle shares keep together so that a first byte never waits for a cycle.
 */
const IDLE_PART = 0.05;
/** Bytes per second: a mount reads 0 as unlimited. */
const LEAST = 1;

export interface Demand {
  readonly share: string;
  readonly up: boolean;
  readonly down: boolean;
}

/** Parts by share name. A direction whose budget is 0 is unlimited for everyone. */
export function divideBandwidth(budget: Bandwidth, demands: readonly Demand[]): Map<string, Bandwidth> {
  const up = divide(
    budget.up,
    demands.map((demand) => demand.up),
  );
  const down = divide(
    budget.down,
    demands.map((demand) => demand.down),
  );
  return new Map(
    demands.map((demand, index) => [demand.share, { up: up[index] ?? 0, down: down[index] ?? 0 }]),
  );
}

/** The slower of two, where 0 is unlimited. */
export function slower(one: Bandwidth, other: Bandwidth): Bandwidth {
  return { up: least(one.up, other.up), down: least(one.down, other.down) };
}

/** What is left of a budget after others have taken theirs; never 0 where it was limited. */
export function remaining(budget: Bandwidth, taken: readonly Bandwidth[]): Bandwidth {
  const rest = (whole: number, parts: readonly number[]): number =>
    whole === 0 ? 0 : Math.max(LEAST, whole - parts.reduce((sum, one) => sum + one, 0));
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

function least(one: number, other: number): number {
  if (one === 0) return other;
  return other === 0 ? one : Math.min(one, other);
}

function divide(total: number, busy: readonly boolean[]): readonly number[] {
  if (total <= 0) return busy.map(() => 0);
  const busyCount = busy.filter(Boolean).length;
  const idleCount = busy.length - busyCount;
  if (busyCount === 0 || idleCount === 0) return busy.map(() => part(total, busy.length));
  const forIdle = Math.max(idleCount * LEAST, Math.floor(total * IDLE_PART));
  return busy.map((isBusy) => (isBusy ? part(total - forIdle, busyCount) : part(forIdle, idleCount)));
}

function part(total: number, count: number): number {
  return Math.max(LEAST, Math.floor(total / count));
}
