import { formatBytes } from 'mountkeeper';
import type { CacheFill, NotificationEvent } from 'mountkeeper';

/** Below this fraction of the limit a queue counts as normal again. */
const NORMAL_DEPTH = 0.8;
/** Percentage points below the threshold at which a cache may cross it again. */
const CACHE_HYSTERESIS_PCT = 5;

/** Thresholds that were passed and reported. */
export interface Crossed {
  readonly writeback: boolean;
  /** Names of caches: shares, or `''` for the file system that all share. */
  readonly caches: readonly string[];
  /** Shares that were reported as failed, with the time of the failure. */
  readonly failedShares: Readonly<Record<string, number>>;
}

export const NOTHING_CROSSED: Crossed = { writeback: false, caches: [], failedShares: {} };

export interface Limits {
  /** 0: off. */
  readonly writebackDepth: number;
  /** 0: off. */
  readonly cacheThresholdPct: number;
}

/** Where it is not known, what has been told of it stays as it is. */
export type Fill = CacheFill;

export interface Crossing {
  readonly crossed: Crossed;
  readonly events: readonly NotificationEvent[];
}

/** Files that wait; more may while it is not whole. */
export interface Depth {
  readonly files: number;
  readonly isWhole: boolean;
}

/** One event per crossing: going up is reported, and again only after it has clearly come down. */
export function crossDepth(
  crossed: Crossed,
  { files, isWhole }: Depth,
  { limits, now }: { readonly limits: Limits; readonly now: number },
): Crossing {
  const limit = limits.writebackDepth;
  if (limit <= 0) return { crossed: { ...crossed, writeback: false }, events: [] };
  const data = { files, limit };
  if (!crossed.writeback && files > limit) {
    const message = `${files} files wait to be uploaded, more than the ${limit} set.`;
    return {
      crossed: { ...crossed, writeback: true },
      events: [
        { type: 'writeback.exceeded', severity: 'warning', message, data, key: `writeback.exceeded/${now}` },
      ],
    };
  }
  if (crossed.writeback && isWhole && files <= limit * NORMAL_DEPTH) {
    const message = `The number of files that wait to be uploaded is back to normal: ${files}.`;
    return {
      crossed: { ...crossed, writeback: false },
      events: [{ type: 'writeback.normal', severity: 'info', message, data, key: `writeback.normal/${now}` }],
    };
  }
  return { crossed, events: [] };
}

export function crossCaches(
  crossed: Crossed,
  fills: readonly Fill[],
  { limits, now }: { readonly limits: Limits; readonly now: number },
): Crossing {
  const threshold = limits.cacheThresholdPct;
  if (threshold <= 0) return { crossed: { ...crossed, caches: [] }, events: [] };
  const percentOf = ({ usedBytes = 0, limitBytes }: Fill): number =>
    limitBytes > 0 ? (usedBytes / limitBytes) * 100 : 0;
  const nameOf = ({ share }: Fill): string => share ?? '';
  const was = new Set(crossed.caches);
  const stays = fills.filter(
    (fill) =>
      was.has(nameOf(fill)) &&
      (fill.usedBytes === undefined || percentOf(fill) > threshold - CACHE_HYSTERESIS_PCT),
  );
  const fresh = fills.filter((fill) => !was.has(nameOf(fill)) && percentOf(fill) >= threshold);
  return {
    crossed: { ...crossed, caches: [...stays, ...fresh].map(nameOf) },
    events: fresh.map((fill) => cacheEvent(fill, Math.floor(percentOf(fill)), { threshold, now })),
  };
}

function cacheEvent(
  { share, usedBytes = 0, limitBytes }: Fill,
  percent: number,
  { threshold, now }: { readonly threshold: number; readonly now: number },
): NotificationEvent {
  const what = share === undefined ? 'The file system of the cache' : `The cache of the share ${share}`;
  return {
    type: 'cache.threshold',
    severity: 'warning',
    key: `cache.threshold/${share ?? ''}/${now}`,
    message: `${what} is ${percent} % full (${formatBytes(usedBytes)} of ${formatBytes(limitBytes)}).`,
    data: {
      share: share ?? null,
      percent,
      threshold_percent: threshold,
      used_bytes: usedBytes,
      limit_bytes: limitBytes,
    },
  };
}
