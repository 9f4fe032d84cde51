import type { Clock, DirectoryRefresher, LiveShare, Logger, RefreshResult } from 'mountkeeper';

/** A refresh that takes longer is abandoned; the next round tries again. */
const LONGEST_MS = 15 * 60_000;
/** Failures of one refresh that are logged individually. */
const MOST_LINES = 50;

/** Result of a share's last refresh. */
export interface RefreshRecord {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly ok: number;
  readonly failed: number;
}

export interface ShareRefresherOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly shares: () => readonly LiveShare[];
  readonly recursive: () => boolean;
  /** Aborts the running refresh. */
  readonly signal: AbortSignal;
}

export interface ShareRefresher extends DirectoryRefresher {
  readonly running: ReadonlySet<string>;
  /** By share; entries of removed shares may be deleted. */
  readonly records: Map<string, RefreshRecord>;
}

/** Refreshes folders, one refresh per share at a time, and remembers the results. */
export function createShareRefresher(options: ShareRefresherOptions): ShareRefresher {
  const running = new Set<string>();
  const records = new Map<string, RefreshRecord>();
  return {
    running,
    records,
    refresh: async (shareName, path) => {
      if (running.has(shareName)) throw new Error(`share '${shareName}' is being refreshed already`);
      running.add(shareName);
      try {
        const result = await refreshed(shareName, path, options);
        records.set(shareName, { at: options.clock.now(), ok: result.ok, failed: result.failed.length });
        return result;
      } finally {
        running.delete(shareName);
      }
    },
  };
}

async function refreshed(
  shareName: string,
  path: string,
  { clock, log, shares, recursive, signal }: ShareRefresherOptions,
): Promise<RefreshResult> {
  const mount = shares().find(({ spec }) => spec.share.name === shareName)?.mount;
  if (!mount) throw new Error(`share '${shareName}' is not mounted now`);
  const begunAt = clock.monotonic();
  const end = new AbortController();
  const deadline = clock.deadline(LONGEST_MS, AbortSignal.any([signal, end.signal]));
  try {
    const result = await mount.refreshDirectories(path, { recursive: recursive(), signal: deadline });
    tell(log, { share: shareName, path, result, ms: Math.round(clock.monotonic() - begunAt) });
    return result;
  } catch (error) {
    if (!deadline.aborted || signal.aborted) throw error;
    const result = { ok: 0, failed: [{ path, reason: `not through within ${LONGEST_MS / 60_000} minutes` }] };
    tell(log, { share: shareName, path, result, ms: Math.round(clock.monotonic() - begunAt) });
    return result;
  } finally {
    end.abort();
  }
}

interface Refreshed {
  readonly share: string;
  readonly path: string;
  readonly result: RefreshResult;
  readonly ms: number;
}

function tell(log: Logger, { share, path, result, ms }: Refreshed): void {
  for (const failure of result.failed.slice(0, MOST_LINES))
    log.warn({ share, folder: failure.path || '/', reason: failure.reason }, 'folder not refreshed');
  const unsaid = result.failed.length - MOST_LINES;
  if (unsaid > 0) log.warn({ share, folders: unsaid }, 'more folders not refreshed');
  log.info(
    { share, path: path || '/', foldersOk: result.ok, foldersFailed: result.failed.length, ms },
    'folders refreshed',
  );
}
