/** Of the thread that calls: what it did not spend on work, in milliseconds since it began. */
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

export interface LoopTimes {
  /** There was nothing to do. */
  readonly idleMs: number;
  /** It could have run, and others had the processor; 0 where the kernel does not say. */
  readonly queuedMs: number;
}

export function loopTimes(): LoopTimes {
  return { idleMs: performance.eventLoopUtilization().idle, queuedMs: queuedMs() };
}

/** The second figure of schedstat, in nanoseconds there. */
function queuedMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[1] ?? 0) / 1e6;
  } catch {
    // Another kernel, or one that does not count.
    return 0;
  }
}
