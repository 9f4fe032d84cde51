const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Waits after each failed attempt; after the last one the delivery is given up. Over 16 hours in all. */
export const WAITS_MS: readonly number[] = [
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  4 * HOUR,
  8 * HOUR,
];
const JITTER = 0.2;
const LONGEST_ASKED_MS = 24 * HOUR;

/** Wait after the `tries`th attempt has failed; undefined when it was the last. `random` in [0, 1). */
export function waitAfter(tries: number, askedMs: number | undefined, random: number): number | undefined {
  const wait = WAITS_MS[tries - 1];
  if (wait === undefined) return undefined;
  return Math.max(wait * (1 - JITTER + 2 * JITTER * random), Math.min(askedMs ?? 0, LONGEST_ASKED_MS));
}

/**
 * Milliseconds of a Retry-After header, given in seconds or as a date; undefined when it cannot be parsed.
 */
export function askedWaitMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+(\.\d+)?$/.test(header.trim())) return Number(header) * SECOND;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
