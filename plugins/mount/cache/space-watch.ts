import { formatBytes } from 'mountkeeper';
import type { Clock, Logger } from 'mountkeeper';
import { freeBytes } from './free-bytes.ts';

const LOOK_EVERY_MS = 5_000;
/** Less than this counts as full: not even the metadata of new files would fit for long. */
const FULL_BELOW_BYTES = 1_048_576;
/** Two rounds of rclone's cache cleaning, which frees what it can; a longer shortage needs a person. */
const CLEANED_WITHIN_MS = 130_000;

export interface SpaceWatchOptions {
  readonly cacheDir: string;
  readonly minFreeBytes: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Free bytes of the file system that holds the folder. */
  readonly measure?: (cacheDir: string) => Promise<number>;
  /** Whether that file system is read-only. Never rejects. */
  readonly isReadOnly?: () => Promise<boolean>;
}

/** Returns a sentence about a problem with the cache's disk; `isOutOfSpace` is rclone's own report. */
export type SpaceWatch = (isOutOfSpace: boolean) => Promise<string | undefined>;

/**
 * rclone's own report disappears within milliseconds or stays for ever, depending on its version; so the
 * disk is checked, too.
 */
export function createSpaceWatch({
  cacheDir,
  minFreeBytes,
  clock,
  log,
  measure = freeBytes,
  isReadOnly = () => Promise.resolve(false),
}: SpaceWatchOptions): SpaceWatch {
  let lookedAtMs = -Infinity;
  let enoughAtMs = clock.monotonic();
  let free: number | undefined;
  let takesNothing = false;
  let wasFull = false;
  const look = async (nowMs: number): Promise<void> => {
    lookedAtMs = nowMs;
    // Unknown: rclone's own failures tell that the disk is full.
    free = await measure(cacheDir).catch(() => undefined);
    takesNothing = await isReadOnly();
    if (free === undefined || free >= minFreeBytes()) enoughAtMs = nowMs;
  };
  return async (isOutOfSpace) => {
    const nowMs = clock.monotonic();
    if (nowMs - lookedAtMs >= LOOK_EVERY_MS) await look(nowMs);
    if (takesNothing)
      return (
        'the disk of the cache is read-only: reads and writes of this share fail; ' +
        "the system's log says why, often the disk itself; mend it and mount it for writing again"
      );
    const isFull = isOutOfSpace || (free !== undefined && free < FULL_BELOW_BYTES);
    if (isFull !== wasFull) tell(isFull, { cacheDir, freeBytes: free }, log);
    wasFull = isFull;
    if (isFull)
      return (
        'the disk of the cache is full: new writes fail or wait, and so do reads of what is not cached, ' +
        'until there is room; files that were closed are kept and go up'
      );
    if (free === undefined || nowMs - enoughAtMs < CLEANED_WITHIN_MS) return undefined;
    return (
      `only ${formatBytes(free)} is free on the disk of the cache, less than cache.min_free_space ` +
      `(${formatBytes(minFreeBytes())}) and clearing the cache has not helped: make room`
    );
  };
}

function tell(
  isFull: boolean,
  fields: { readonly cacheDir: string; readonly freeBytes: number | undefined },
  log: Logger,
): void {
  if (isFull) log.warn(fields, 'disk of the cache is full');
  else log.info(fields, 'disk of the cache has room again');
}
