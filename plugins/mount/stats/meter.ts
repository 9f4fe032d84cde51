import type { Clock } from 'mountkeeper';

export type MeterClock = Pick<Clock, 'monotonic'>;

/**
 * What is counted comes in pieces: rclone tells of a transfer only now and then. Over a few seconds they are the line's
 * speed, and soon after the last one it is 0.
 */
const WINDOW_MS = 3_000;
/** Calls closer together than this are one. */
const LEAST_MS = 200;

interface Sample {
  readonly bytes: number;
  readonly atMs: number;
}

/**
 * Bytes per second over the last seconds, from the bytes counted so far; rclone itself reports only the average since
 * its start. A count that falls back is not counted again when it rises.
 */
export function createMeter(clock: MeterClock): (bytes: number) => number {
  const samples: Sample[] = [];
  let speed = 0;
  return (counted) => {
    const atMs = clock.monotonic();
    const last = samples.at(-1);
    if (last && atMs - last.atMs < LEAST_MS) return speed;
    const bytes = Math.max(counted, last?.bytes ?? 0);
    samples.push({ bytes, atMs });
    // The first is the last one before the window: else, what has come since would be left out.
    while (samples[1] !== undefined && atMs - samples[1].atMs >= WINDOW_MS) samples.shift();
    speed = speedOf(samples[0], { bytes, atMs });
    return speed;
  };
}

function speedOf(from: Sample | undefined, to: Sample): number {
  if (from === undefined || from.atMs === to.atMs) return 0;
  return ((to.bytes - from.bytes) * 1_000) / (to.atMs - from.atMs);
}
