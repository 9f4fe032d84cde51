/** A share's figures, from its queue after a scan. */
import type { UploadFigures } from 'mountkeeper';
import type { Queue } from './queue.ts';

export interface LookFigures {
  /** Monotonic milliseconds. */
  readonly lookedAtMs: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly uploadedBytes: number;
  readonly isTorn: boolean;
}

export function figuresOf(
  queue: Queue,
  { lookedAtMs, now, uploadedBytes, isTorn }: LookFigures,
): UploadFigures {
  const { items } = queue;
  const stuck = items.filter((item) => queue.isStuck(item));
  const oldest = items.reduce((least, item) => Math.min(least, queue.since(item)), Infinity);
  return {
    lookedAtMs,
    dirtyFiles: items.length,
    dirtyBytes: items.reduce((sum, { bytes }) => sum + bytes, 0),
    ...(items.length > 0 && { oldestDirtyAt: oldest }),
    stuckFiles: stuck.length,
    ...(stuck[0] !== undefined && { stuckReason: `${stuck[0].path}: ${queue.reason(stuck[0], now)}` }),
    uploading: [...queue.running.values()].filter(({ item }) => item.action === 'upload').length,
    uploadedBytes,
    ...(isTorn && { isTorn }),
  };
}
