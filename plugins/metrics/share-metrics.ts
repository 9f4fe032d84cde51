/**
 * What each share's figures are called. All of them come from one snapshot of the status, but for those of
 * its mount.
 */
import type { LiveShare, MetricSample, PluginContext, ReadMetric, ShareStatus } from 'mountkeeper';

const HEALTHS = ['pending', 'probing', 'healthy', 'failed'] as const;

/** A share in the status, and the living one behind it where there is one. */
interface Seen {
  readonly status: ShareStatus;
  readonly live: LiveShare | undefined;
  readonly nowMs: number;
}

type Read = (seen: Seen) => number | undefined;

/** Name without the prefix, help, how it is read. Undefined is not known: the series is left out. */
const GAUGES: readonly (readonly [name: string, help: string, read: Read])[] = [
  ['mounted', 'Whether the share is mounted.', ({ status }) => Number(status.mounted)],
  ['cache_bytes', "Bytes in the share's cache.", ({ status }) => status.cacheBytes],
  ['dirty_files', 'Files whose content is not on the remote yet.', ({ status }) => status.dirtyCount],
  ['dirty_bytes', 'Bytes of those files; left out while they cannot be told for all of them.', dirtyBytes],
  [
    'oldest_dirty_seconds',
    'Age of the oldest change that is not on the remote, 0 without one; left out where nobody keeps it.',
    oldestDirtySeconds,
  ],
  ['errored_files', 'Files that could not be uploaded so far.', ({ status }) => status.erroredFiles],
  ['transfers', 'Files on their way now.', ({ status }) => status.transfers],
  [
    'transfer_bytes_per_second',
    'Bytes per second through the share, both directions together.',
    ({ status }) => status.speed,
  ],
  [
    'remote_up',
    'Whether the remote answered the last light check; left out before the first.',
    ({ live }) => optional(live?.remoteAnswers),
  ],
  [
    'remote_check_seconds',
    'How long the remote took for that check; left out while it does not answer.',
    ({ live }) => seconds(live?.remoteTookMs),
  ],
  [
    'control_seconds',
    'How long the mount took to give its last figures.',
    ({ live }) => seconds(live?.figures?.tookMs),
  ],
  ['warmup_files', "Files that the share's warmup rules name.", ({ status }) => status.warmupTotal],
  ['warmup_done_files', 'Files of these that are cached.', ({ status }) => status.warmupDone],
  [
    'listing_refresh_timestamp_seconds',
    'When its folder listings were last read anew; left out when never.',
    ({ status }) => seconds(status.lastDirRefreshAt),
  ],
];

const COUNTERS: readonly (readonly [name: string, help: string, read: Read])[] = [
  [
    'errors_total',
    "Errors that the share's mount has counted since it began.",
    ({ status }) => status.errors,
  ],
  [
    'uploaded_bytes_total',
    'Bytes that have gone up since the mount began; left out while they cannot be told.',
    ({ live }) => live?.figures?.stats.uploadedBytes,
  ],
];

function dirtyBytes({ status, live }: Seen): number | undefined {
  return status.dirtyCount === 0 ? 0 : live?.figures?.stats.dirtyBytes;
}

function oldestDirtySeconds({ status, live, nowMs }: Seen): number | undefined {
  if (status.dirtyCount === 0) return 0;
  const since = live?.figures?.stats.oldestDirtyAt;
  return since === undefined ? undefined : Math.max(0, nowMs - since) / 1000;
}

function optional(flag: boolean | undefined): number | undefined {
  return flag === undefined ? undefined : Number(flag);
}

function seconds(ms: number | null | undefined): number | undefined {
  return ms === null || ms === undefined ? undefined : ms / 1000;
}

/** Looks at the shares once for all metrics of a scrape. */
function shareLook(ctx: PluginContext): () => readonly Seen[] {
  let last: readonly Seen[] | undefined;
  return () => {
    if (last !== undefined) return last;
    const live = new Map(
      ctx
        .use('shares')
        .list()
        .map((one) => [one.spec.share.name, one]),
    );
    const nowMs = ctx.use('clock').now();
    last = ctx
      .use('status')
      .snapshot.record.shares.map((status) => ({ status, live: live.get(status.name), nowMs }));
    // All metrics are read in one go; what comes after it sees anew.
    queueMicrotask(() => {
      last = undefined;
    });
    return last;
  };
}

function sampleOf(seen: Seen, read: Read): readonly MetricSample[] {
  const value = read(seen);
  return value === undefined ? [] : [{ value, labels: { share: seen.status.name } }];
}

export function shareMetrics(ctx: PluginContext): readonly ReadMetric[] {
  const shares = shareLook(ctx);
  const perShare =
    (type: 'gauge' | 'counter') =>
    ([name, help, read]: (typeof GAUGES)[number]): ReadMetric => ({
      name: `mountkeeper_share_${name}`,
      help,
      type,
      labels: ['share'],
      read: () => shares().flatMap((seen) => sampleOf(seen, read)),
    });
  return [
    ...GAUGES.map(perShare('gauge')),
    ...COUNTERS.map(perShare('counter')),
    {
      name: 'mountkeeper_share_health',
      help: '1 for the health that the share has now, 0 for the others.',
      labels: ['share', 'health'],
      read: () =>
        shares().flatMap(({ status }) =>
          HEALTHS.map((health) => ({
            value: Number(status.health === health),
            labels: { share: status.name, health },
          })),
        ),
    },
  ];
}
