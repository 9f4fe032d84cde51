/**
 * How long threads that could have run stood in the queue for a processor, by the scheduler's own count.
 * Where other programs take the processor, that is their doing; a thread that waits for a NAS is in no queue.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds by thread, since each began. */
export type QueueTimes = ReadonlyMap<string, number>;

/** Of all threads of the processes. Throws when a process is gone. */
export function queueTimes(...pids: readonly number[]): QueueTimes {
  return new Map(
    pids.flatMap((pid) =>
      readdirSync(`/proc/${pid}/task`).map(
        (thread) => [thread, queuedMs(`/proc/${pid}/task/${thread}/schedstat`)] as const,
      ),
    ),
  );
}

/** What all of them waited together meanwhile. */
export function queuedBetween(before: QueueTimes, after: QueueTimes): number {
  return [...after].reduce((sum, [thread, ms]) => sum + ms - (before.get(thread) ?? 0), 0);
}

function queuedMs(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8').split(' ')[1] ?? 0) / 1e6;
  } catch {
    // The thread has ended meanwhile, or this kernel does not count.
    return 0;
  }
}

/**
 * Does the work in one go, between a program and the rclone that serves it: what it took, and what of that
 * was the queue's.
 */
export function timedWork(
  server: number,
  work: () => unknown,
): { readonly ms: number; readonly queuedMs: number } {
  const before = queueTimes(process.pid, server);
  const start = performance.now();
  work();
  const ms = performance.now() - start;
  return { ms, queuedMs: Math.max(0, queuedBetween(before, queueTimes(process.pid, server))) };
}
