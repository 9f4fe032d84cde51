/** Metrics of each share. All come from one status snapshot, except those of its mount. */
import type {
  LiveShare,
  MetricLabels,
  MetricSample,
  PluginContext,
  ReadMetric,
  ShareStatus,
} from 'mountkeeper';

const HEALTHS = ['pending', 'probing', 'healthy', 'failed'] as const;

/** A share's status, and the live share, if there is one. */
interface Seen {
  readonly status: ShareStatus;
  readonly live: LiveShare | undefined;
  readonly nowMs: number;
}

type Read = (seen: Seen) => number | undefined;

/** Name without the prefix, help, and reader. Undefined means unknown: the series is left out. */
const GAUGES: readonly (readonly [name: string, help: string, read: Read])[] = [
  ['mounted', 'Whether the share is mounted.', ({ status }) => Number(status.mounted)],
  ['cache_bytes', "Bytes in the share's cache.", ({ status }) => status.cacheBytes],
  [
    'dirty_files',
    'Files whose content is not on the remote yet; left out until they are counted.',
    ({ status }) => (status.isDirtyCountUnknown === true ? undefined : status.dirtyCount),
  ],
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
    'When its folder listings were last refreshed; left out when never.',
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
  if (status.isDirtyCountUnknown === true) return undefined;
  return status.dirtyCount === 0 ? 0 : live?.figures?.stats.dirtyBytes;
}

function oldestDirtySeconds({ status, live, nowMs }: Seen): number | undefined {
  if (status.isDirtyCountUnknown === true) return undefined;
  if (status.dirtyCount === 0) return 0;
  const since = live?.figures?.stats.oldestDirtyAt;
  return since === undefined ? undefined : Math.max(0, nowMs - since) / 1000;
}

function optional(flag: boolean | undefined): number | undefined {
  return flag === undefined ? undefined : Number(flag);
}

/** `ms`: of a field that a plugin gives, which may be of any kind while the plugin that declares it is off. */
function seconds(ms: unknown): number | undefined {
  return typeof ms === 'number' ? ms / 1000 : undefined;
}

/** Reads the shares once for all metrics of a scrape. */
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
    // All metrics are read in one turn of the event loop; later readers read again.
    queueMicrotask(() => {
      last = undefined;
    });
    return last;
  };
}

interface ShareLabels {
  readonly share: MetricLabels;
  readonly ofHealth: readonly (readonly [health: string, labels: MetricLabels])[];
}

const known = new Map<string, ShareLabels>();

/** Frozen and always the same, so that the labels of a share are checked and rendered once, not per series. */
function shareLabels(share: string): ShareLabels {
  const found = known.get(share);
  if (found) return found;
  const made = {
    share: Object.freeze({ share }),
    ofHealth: HEALTHS.map((health) => [health, Object.freeze({ share, health })] as const),
  };
  known.set(share, made);
  return made;
}

function labelsOf(share: string): MetricLabels {
  return shareLabels(share).share;
}

function sampleOf(seen: Seen, read: Read): readonly MetricSample[] {
  const value = read(seen);
  return value === undefined ? [] : [{ value, labels: labelsOf(seen.status.name) }];
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
          shareLabels(status.name).ofHealth.map(([health, labels]) => ({
            value: Number(status.health === health),
            labels,
          })),
        ),
    },
  ];
}
