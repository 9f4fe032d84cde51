import { formatBytes, formatRate } from 'mountkeeper';
import type { Logger, ShareStatus } from 'mountkeeper';
import type { CountChange } from './count-changes.ts';
import type { Fill, Passing } from './fill-levels.ts';

/** Logs one line for each share. */
export function tellSnapshot(log: Logger, shares: readonly ShareStatus[], fills: readonly Fill[]): void {
  for (const share of shares) {
    log.info(
      {
        event: 'stats.snapshot',
        share: share.name,
        health: share.health,
        cache: formatBytes(share.cacheBytes),
        ...percentOf(fills.find(({ name }) => name === share.name)),
        dirty: share.dirtyCount,
        errored: share.erroredFiles,
        speed: formatRate(share.speed),
        transfers: share.transfers,
        errors: share.errors,
        ...(share.healthMessage !== null && { trouble: share.healthMessage }),
      },
      'share',
    );
  }
}

export function tellPassing(log: Logger, { fill, threshold, percent, isUp }: Passing): void {
  const about = {
    ...(fill.name !== '' && { share: fill.name }),
    percent,
    used: formatBytes(fill.usedBytes ?? 0),
    limit: formatBytes(fill.limitBytes),
  };
  const what = fill.name === '' ? 'file system of the cache' : 'cache';
  if (!isUp)
    log.info({ event: `cache.below-${threshold}`, ...about }, `${what} is below ${threshold} % again`);
  else log.warn({ event: `cache.above-${threshold}`, ...about }, `${what} has passed ${threshold} %`);
}

export function tellChange(log: Logger, { share, count, from, to }: CountChange): void {
  if (count === 'dirtyCount')
    log.info({ event: 'dirty.changed', share, from, to }, 'files that wait to be uploaded');
  else if (count === 'erroredFiles')
    log[to > from ? 'warn' : 'info']({ event: 'errored.changed', share, from, to }, 'files in error');
  else
    log[to > from ? 'warn' : 'info'](
      { event: 'errors.changed', share, from, to },
      'errors counted by the mount',
    );
}

function percentOf(fill: Fill | undefined): { readonly cachePercent?: number } {
  return fill?.usedBytes === undefined || fill.limitBytes <= 0
    ? {}
    : { cachePercent: Math.floor((fill.usedBytes / fill.limitBytes) * 100) };
}
