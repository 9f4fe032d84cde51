import type { ManagedProcess } from 'mountkeeper';
import type { MountNotes } from './mount-record.ts';
import type { MountTools } from './tools.ts';
import { mountFailure } from '../rclone/error-messages.ts';

const LOOK_EVERY_MS = 10;
const TOUCH_TIMEOUT_MS = 2_000;
/**
 * rclone reads a cache of tens of thousands of files before the mount appears; while its process lives,
 * that may take this long.
 */
const LONGEST_START_MS = 120_000;
const LAST_LINES = 20;

export interface StartingMount {
  readonly process: ManagedProcess;
  readonly notes: MountNotes;
  readonly device: string;
}

/**
 * Resolves when the kernel shows the mount and it answers; rejects with a plain sentence when the process
 * ends or takes too long.
 */
export async function awaitReady(
  starting: StartingMount,
  tools: MountTools,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = tools;
  const stop = new AbortController();
  const waiting = clock.deadline(LONGEST_START_MS, AbortSignal.any([signal, stop.signal]));
  try {
    await Promise.race([failure(starting.process), appears(starting, tools, waiting)]);
  } catch (error) {
    signal.throwIfAborted();
    if (waiting.aborted && !stop.signal.aborted)
      throw new Error(`the mount did not appear within ${LONGEST_START_MS / 1000} s`, { cause: error });
    throw error;
  } finally {
    stop.abort();
  }
}

async function failure(process: ManagedProcess): Promise<never> {
  const exit = await process.exited;
  // The lines of the exit serve as well.
  const lines = await process.tail(LAST_LINES).catch(() => exit.lastLines);
  throw mountFailure(
    lines,
    exit.signal === null
      ? 'rclone could not mount the share'
      : `rclone was ended by ${exit.signal} while it mounted the share`,
  );
}

async function appears(
  { process, notes, device }: StartingMount,
  { clock, mountTable, mountReader }: MountTools,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const entry = await mountTable.find(notes.plan.mountPoint);
    if (entry?.source === device && entry.fsType.startsWith('fuse')) {
      const isReady = await mountReader.touch(notes.plan.mountPoint, { timeoutMs: TOUCH_TIMEOUT_MS }).then(
        () => true,
        () => false,
      );
      if (isReady) return;
    }
    await clock.sleep(process.isAlive() ? LOOK_EVERY_MS : LOOK_EVERY_MS * 10, signal);
  }
}
