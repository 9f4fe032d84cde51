/** For how long what users have just changed is left alone. */
import type { Conditions } from '../compare/plan-types.ts';

/** Tolerance for times in the future: files must not wait for ever when the clock was set back. */
const FUTURE_NS = 2_000_000_000n;

export interface ChangeTimesOptions {
  readonly nowMs: number;
  /** Without a change, before a file goes up. */
  readonly writeBackMs: number;
  /** Without a change, before something leaves the upper folder. */
  readonly restMs: number;
  /** Send everything now: no quiet time. */
  readonly isHurried: boolean;
  /** Paths that need no quiet time. */
  readonly isUrgent?: (path: string) => boolean;
}

export function changeTimes({
  nowMs,
  writeBackMs,
  restMs,
  isHurried,
  isUrgent = () => false,
}: ChangeTimesOptions): Pick<Conditions, 'quietAt' | 'isRested'> {
  const now = nanoseconds(nowMs);
  const quietNs = nanoseconds(writeBackMs);
  const restedSince = now - nanoseconds(restMs);
  return {
    quietAt: (changed, path) => {
      const isQuiet = changed + quietNs <= now || changed > now + FUTURE_NS;
      return isHurried || isUrgent(path) || isQuiet ? undefined : Number((changed + quietNs) / 1_000_000n);
    },
    isRested: (changed) => changed <= restedSince,
  };
}

export function nanoseconds(ms: number): bigint {
  return BigInt(Math.trunc(ms)) * 1_000_000n;
}
