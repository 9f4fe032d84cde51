import { formatBytes } from 'mountkeeper';
import type { NotificationEvent } from 'mountkeeper';

/** Below this part of the limit a depth counts as normal again. */
const NORMAL_DEPTH = 0.8;
/** Percentage points below the threshold at which a cache may cross it again. */
const CACHE_HYSTERESIS_PCT = 5;

/** Thresholds that have been passed and told of. */
export interface Crossed {
  readonly writeback: boolean;
  /** Names of caches: shares, or `''` for the file system of all. */
  readonly caches: readonly string[];
  /** Shares told to have failed, with the time since when. */
  readonly failedShares: Readonly<Record<string, number>>;
}

export const NOTHING_CROSSED: Crossed = { writeback: false, caches: [], failedShares: {} };

export interface Limits {
  /** 0: off. */
  readonly writebackDepth: number;
  /** 0: off. */
  readonly cacheThresholdPct: number;
}

/** How full a cache is. `share` is undefined for the file system that all caches lie on. */
export interface Fill {
  readonly share: string | undefined;
  /** Undefined while it is not known: what has been told of it stays as it is. */
  readonly usedBytes: number | undefined;
  readonly limitBytes: number;
}

export interface Crossing {
  readonly crossed: Crossed;
  readonly events: readonly NotificationEvent[];
}

/** Once per crossing: going up tells, and only after having come down clearly can it tell again. */
export function crossDepth(
  crossed: Crossed,
  depth: number,
  { limits, now }: { readonly limits: Limits; readonly now: number },
): Crossing {
  const limit = limits.writebackDepth;
  if (limit <= 0) return { crossed: { ...crossed, writeback: false }, events: [] };
  const data = { files: depth, limit };
  if (!crossed.writeback && depth > limit) {
    const message = `${depth} files wait to be uploaded, more than the ${limit} set.`;
    return {
      crossed: { ...crossed, writeback: true },
      events: [
        { type: 'writeback.exceeded', severity: 'warning', message, data, key: `writeback.exceeded/${now}` },
      ],
    };
  }
  if (crossed.writeback && depth <= limit * NORMAL_DEPTH) {
    const message = `The number of files that wait to be uploaded is back to normal: ${depth}.`;
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
