import { join } from 'node:path';
import type { Clock } from 'mountkeeper';
import { readMeta } from '../cache/metadata.ts';
import type { DirtyOpenFile } from '../stats/open-files.ts';

/**
 * Metadata that has not been saved after this time is not being saved: the disk refuses it, and the file
 * has long been queued.
 */
const LONGEST_MS = 60_000;

export interface ClosingFilesOptions {
  readonly metaRoot: string;
  readonly clock: Clock;
}

/**
 * Counts files that are neither open nor queued: rclone closes a changed file, saves its metadata, which
 * takes as long as the disk needs, and only then queues it. Must be called with the files that are open
 * with changes, and the number of queued ones, at each check. Returns how many files would be missed.
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
    // A file that was being closed while others were queued is queued itself by the time those are gone.
    if (queued > 0) closedAtMs.clear();
    for (const [path, atMs] of closedAtMs) {
      const isOver = now.has(path) || nowMs - atMs > LONGEST_MS || !(await isDirty(join(metaRoot, path)));
      if (isOver) closedAtMs.delete(path);
    }
    return closedAtMs.size;
  };
}

async function isDirty(file: string): Promise<boolean> {
  // Who cannot read it does not know that the file is clean.
  const meta = await readMeta(file).catch(() => 'torn' as const);
  return meta === 'torn' || meta?.Dirty === true;
}
