/** Number of samples that a decision is based on. */
export const WINDOW = 6;
/** Coefficient of variation above which the line counts as congested. */
const CONGESTED = 0.3;
const LOWERED = 0.75;
const RAISED = 1.1;
/**
 * Uploads above this fraction of the limit count as near it. Idle shares keep a twentieth, so the limit is
 * never reached completely.
 */
const NEAR = 0.8;
const FLOOR_BYTES = 1_048_576;

/** Uploads over one period. Bytes per second. */
export interface Sample {
  readonly rate: number;
  /** The limit at that time; 0 is unlimited. */
  readonly limit: number;
  /** There was something to upload all the time, the remote answered, and some bytes were uploaded. */
  readonly isBusy: boolean;
}

/** Bytes per second; 0 is unlimited. */
export interface Limit {
  readonly current: number;
  /**
   * Upper limit for raising: the configured limit, or without one the highest rate seen when congestion
   * began.
   */
  readonly cap: number;
}

export type Verdict =
  'too few samples' | 'not busy' | 'congested' | 'answered' | 'near the limit' | 'under-used';

export interface Decision {
  readonly verdict: Verdict;
  readonly limit: Limit;
  readonly mean: number;
  readonly variation: number;
}

/** Decides the limit by a window of samples, oldest first. `configured`: 0 is unlimited. Pure. */
export function decide(window: readonly Sample[], limit: Limit, configured: number): Decision {
  const rates = window.map(({ rate }) => rate);
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / Math.max(1, rates.length);
  const variation =
    mean > 0 ? Math.sqrt(rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / rates.length) / mean : 0;
  const verdict = verdictOf(window, { limit, mean, variation });
  const next =
    verdict === 'congested'
      ? lowered(limit, configured, Math.max(...rates))
      : verdict === 'under-used'
        ? raised(limit, configured)
        : limit;
  return { verdict, limit: next, mean, variation };
}

function verdictOf(
  window: readonly Sample[],
  { limit, mean, variation }: { readonly limit: Limit; readonly mean: number; readonly variation: number },
): Verdict {
  if (window.length < WINDOW) return 'too few samples';
  // Uploads that all fail transfer nothing, and say nothing about the line.
  if (mean === 0 || window.some(({ isBusy }) => !isBusy)) return 'not busy';
  const { current } = limit;
  const newest = window.at(-1);
  if (variation > CONGESTED) {
    // Lowering the limit itself causes variation: it is lowered again only if uploads still stay below it.
    const isLoweredSince = window.some(
      (sample) => current > 0 && (sample.limit === 0 || sample.limit > current),
    );
    return isLoweredSince && newest !== undefined && newest.rate >= NEAR * current ? 'answered' : 'congested';
  }
  return current === 0 || mean >= NEAR * current ? 'near the limit' : 'under-used';
}

/** An unlimited line is treated as limited to the highest rate seen. */
function lowered({ current, cap }: Limit, configured: number, fastest: number): Limit {
  const from = current > 0 ? current : fastest;
  const floor = configured > 0 ? Math.min(FLOOR_BYTES, configured) : FLOOR_BYTES;
  const next = Math.max(floor, Math.round(from * LOWERED));
  if (next >= from) return { current, cap };
  return { current: next, cap: current > 0 ? cap : fastest };
}

function raised({ current, cap }: Limit, configured: number): Limit {
  const next = Math.round(current * RAISED);
  return next >= cap ? { current: configured, cap: configured } : { current: next, cap };
}
