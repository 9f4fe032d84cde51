import { join } from 'node:path';
import type { Clock } from 'mountkeeper';
import { readMeta } from '../cache/metadata.ts';
import type { DirtyOpenFile } from '../stats/open-files.ts';

/**
 * A record that is still not saved then is not being saved: the disk refuses it, and the file has long been
 * queued.
 */
const LONGEST_MS = 60_000;

export interface ClosingFilesOptions {
  readonly metaRoot: string;
  readonly clock: Clock;
}

/**
 * Files that are neither open nor queued: rclone closes a changed file, saves its record, which takes as long
 * as the disk does, and queues it only then. To be told at each look which files are open with changes, and
 * how many are queued. Gives how many files would be missed.
 */
export function createClosingFiles({
  metaRoot,
  clock,
}: ClosingFilesOptions): (open: readonly DirtyOpenFile[], queued: number) => Promise<number> {
  const closedAtMs = new Map<string, number>();
  let former = new Set<string>();
  return async (open, queued) => {
    const nowMs = clock.monotonic();
    const now = new Set(open.map(({ path }) => path));
    for (const path of former) if (!now.has(path)) closedAtMs.set(path, nowMs);
    former = now;
    // Whoever waits while others are queued is queued itself by the time those are gone.
    if (queued > 0) closedAtMs.clear();
    for (const [path, atMs] of closedAtMs) {
      const isOver = now.has(path) || nowMs - atMs > LONGEST_MS || !(await isDirty(join(metaRoot, path)));
      if (isOver) closedAtMs.delete(path);
    }
    return closedAtMs.size;
  };
}

async function isDirty(file: string): Promise<boolean> {
  const meta = await readMeta(file).catch(() => undefined);
  return meta === 'torn' || meta?.Dirty === true;
}
