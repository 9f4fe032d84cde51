/**
 * The daemon's one bandwidth budget, divided over the shares by demand. Each mount limits only itself, so the parts must never
 * add up to more than the whole. Pure.
 */
import type { Bandwidth } from './api.ts';

/** The part, of each direction, that idle shares keep together so that a first byte never waits for a cycle. */
const IDLE_PART = 0.1;
/** No limited part is smaller than this: the mount tool reads 0 as unlimited. Bytes per second. */
const LEAST = 1024;

export interface Demand {
  readonly share: string;
  readonly up: boolean;
  readonly down: boolean;
}

/** Parts by share name. A direction whose budget is 0 is unlimited for everyone. */
export function divideBandwidth(budget: Bandwidth, demands: readonly Demand[]): Map<string, Bandwidth> {
  const up = divide(budget.up, demands.map((demand) => demand.up));
  const down = divide(budget.down, demands.map((demand) => demand.down));
  return new Map(demands.map((demand, index) => [demand.share, { up: up[index] ?? 0, down: down[index] ?? 0 }]));
}

function divide(total: number, busy: readonly boolean[]): readonly number[] {
  if (total <= 0) return busy.map(() => 0);
  const busyCount = busy.filter(Boolean).length;
  const idleCount = busy.length - busyCount;
  if (busyCount === 0 || idleCount === 0) return busy.map(() => part(total, busy.length));
  const forIdle = total * IDLE_PART;
  return busy.map((isBusy) => (isBusy ? part(total - forIdle, busyCount) : part(forIdle, idleCount)));
}

function part(total: number, count: number): number {
  return Math.max(LEAST, Math.floor(total / count));
}
