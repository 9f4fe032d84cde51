/**
 * How much slower than alone a process runs on this machine right now: 1 on a quiet machine, 3 where three
 * want each core. Printed beside what was measured, so that a limit that was missed on a crowded machine is
 * known for that.
 */
const WORK_US = 60_000;
/** A process that hardly gets the processor is under pressure enough. */
const LONGEST_MS = 10_000;

/** Takes 60 ms of processor time to measure; blocks the caller. */
export function pressure(): number {
  const [start, used] = [performance.now(), process.cpuUsage()];
  let spentUs = 0;
  while (spentUs < WORK_US && performance.now() - start < LONGEST_MS) {
    const now = process.cpuUsage(used);
    spentUs = now.user + now.system;
  }
  const stretch = ((performance.now() - start) * 1000) / spentUs;
  // Below this it is measuring noise.
  return stretch < 1.25 ? 1 : stretch;
}

/** A span that was measured, and the pressure of its moment. */
export interface Span {
  readonly ms: number;
  readonly pressure: number;
}

/** The time since `start`, a value of `performance.now()`, in whole milliseconds. */
export function spanSince(start: number): Span {
  return { ms: Math.round(performance.now() - start), pressure: pressure() };
}

/**
 * How much slower than the machine a promise was measured on another may be. Whether a promise is kept to the
 * millisecond is shown by `npm run bench`, side by side on one machine; a test only sees that nothing takes
 * another order of time.
 */
export const SLOW_MACHINE = 2;

/**
 * Texts of the spans that took longer than the promise allows on a slow machine, with the pressure of their
 * moment.
 */
export function tooLong(spans: readonly Span[], limitMs: number): string[] {
  return spans
    .filter((span) => span.ms > limitMs * SLOW_MACHINE)
    .map(
      (span) =>
        `${span.ms} ms (promised ${limitMs} ms, ${SLOW_MACHINE} times that allowed, ` +
        `pressure ${span.pressure.toFixed(1)})`,
    );
}

/** The median, in milliseconds. */
export function middleOf(spans: readonly Span[]): number {
  const times = spans.map((span) => span.ms).sort((a, b) => a - b);
  return times[Math.floor(times.length / 2)] ?? NaN;
}

/** Shortest and longest span, as text. */
export function rangeOf(spans: readonly Span[]): string {
  const [times, pressures] = [spans.map((span) => span.ms), spans.map((span) => span.pressure)];
  return (
    `${Math.min(...times)} to ${Math.max(...times)} ms (pressure ` +
    `${Math.min(...pressures).toFixed(1)} to ${Math.max(...pressures).toFixed(1)})`
  );
}
