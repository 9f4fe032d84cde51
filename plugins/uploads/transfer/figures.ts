/** A share's figures, from its queue after a scan. */
import type { UploadFigures } from 'mountkeeper';
import type { Scan } from '../compare/scan.ts';
import type { Queue } from './queue.ts';

export interface LookFigures {
  /** Monotonic milliseconds. */
  readonly lookedAtMs: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly uploadedBytes: number;
  readonly isTorn: boolean;
  readonly localBytes: number;
}

export function figuresOf(
  queue: Queue,
  { lookedAtMs, now, uploadedBytes, isTorn, localBytes }: LookFigures,
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
    ...movingNow(queue, uploadedBytes),
    localBytes,
    ...(isTorn && { isTorn }),
  };
}

/** What changes between two scans. */
export function movingNow(
  { running }: Queue,
  uploadedBytes: number,
): Pick<UploadFigures, 'uploading' | 'uploadedBytes'> {
  return {
    uploading: [...running.values()].filter(({ item }) => item.action === 'upload').length,
    uploadedBytes,
  };
}

/** Bytes of the content that lies in the upper folder, also of files that the remote has, too. */
export function localBytesOf({ entries }: Scan): number {
  let sum = 0;
  for (const { kind, bytes, hasNoData } of entries.values())
    if (kind === 'file' && hasNoData !== true) sum += bytes;
  return sum;
}
