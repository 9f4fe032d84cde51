import type { Clock, MountStats } from 'mountkeeper';
import type { CacheTrees } from './cache-meta.ts';
import { openFiles } from './open-files.ts';
import type { RcClient } from './rc-client.ts';

interface VfsStats {
  diskCache?: { bytesUsed?: number; erroredFiles?: number; uploadsInProgress?: number; uploadsQueued?: number };
}

interface CoreStats { bytes?: number; errors?: number; transferring?: unknown[] }

/** Calls without movement after which the transfer figures are asked for all the same. */
const IDLE_CALLS = 15;

export interface StatsSource {
  readonly rc: RcClient;
  readonly clock: Clock;
  readonly pid: number;
  readonly trees: CacheTrees;
  /** The remote as rclone names it. */
  readonly fs: string;
}

/** Figures of one mount. Asks for the transfers only while something moves: an idle mount costs one call and a look into /proc. */
export function createStatsReader(source: StatsSource): (signal: AbortSignal) => Promise<MountStats> {
  const meter = createMeter(source.clock);
  let core: CoreStats = {};
  let idleCalls = IDLE_CALLS;
  let previousWork = false;
  return async (signal) => {
    // Open files first: one that is closed between the two looks is in the queue by then, and is counted twice rather than never.
    const files = await openFiles(source.pid, source.trees);
    const { diskCache = {} } = await source.rc.call<VfsStats>('vfs/stats', { fs: source.fs }, signal);
    const queued = (diskCache.uploadsQueued ?? 0) + (diskCache.uploadsInProgress ?? 0);
    const works = queued > 0 || files.open > 0;
    if (works || previousWork || idleCalls >= IDLE_CALLS) {
      core = await source.rc.call<CoreStats>('core/stats', {}, signal);
      idleCalls = 0;
    }
    idleCalls += 1;
    const speed = meter(core.bytes ?? 0);
    previousWork = works || speed > 0 || (core.transferring?.length ?? 0) > 0;
    return {
      cacheBytes: diskCache.bytesUsed ?? 0,
      dirtyFiles: queued + files.dirty,
      erroredFiles: diskCache.erroredFiles ?? 0,
      speed,
      transfers: core.transferring?.length ?? 0,
      errors: core.errors ?? 0,
      uploading: (diskCache.uploadsInProgress ?? 0) > 0 || queued > 0,
    };
  };
}

/** Bytes per second since the call before; rclone itself tells only the mean since its start. */
function createMeter(clock: Clock): (bytes: number) => number {
  let last: { readonly bytes: number; readonly atMs: number } | undefined;
  let speed = 0;
  return (bytes) => {
    const atMs = clock.monotonic();
    if (last && atMs - last.atMs < 200) return speed;
    speed = last ? (Math.max(0, bytes - last.bytes) * 1000) / (atMs - last.atMs) : 0;
    last = { bytes, atMs };
    return speed;
  };
}
