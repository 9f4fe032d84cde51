import type { Clock, MountStats } from 'mountkeeper';
import type { RcClient } from '../rclone/control/remote-control.ts';
import type { SpaceWatch } from '../cache/space-watch.ts';
import type { OpenFiles } from './open-files.ts';

interface DiskCache {
  bytesUsed: number;
  erroredFiles: number;
  outOfSpace: boolean;
  uploadsInProgress: number;
  uploadsQueued: number;
}
interface CoreStats {
  bytes: number;
  errors: number;
  transferring: readonly unknown[];
}

const NO_CACHE: DiskCache = {
  bytesUsed: 0,
  erroredFiles: 0,
  outOfSpace: false,
  uploadsInProgress: 0,
  uploadsQueued: 0,
};
const NOTHING: CoreStats = { bytes: 0, errors: 0, transferring: [] };

/** Calls without activity after which the transfer figures are read anyway. */
const IDLE_CALLS = 15;

export interface StatsSource {
  readonly rc: RcClient;
  readonly clock: Clock;
  readonly openFiles: () => Promise<OpenFiles>;
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly space: SpaceWatch;
}

/**
 * Figures of one mount. Asks for the transfers only while something moves: an idle mount costs one call and a
 * look into /proc. Changed files are there only in a mount that a former version made.
 */
export function createStatsReader(source: StatsSource): (signal: AbortSignal) => Promise<MountStats> {
  const transfers = createTransferReader(source);
  return async (signal) => {
    // Open files first: a file that is closed between the two reads is then counted twice instead of never.
    const files = await source.openFiles();
    const answer = await source.rc.call<{ diskCache?: Partial<DiskCache> }>(
      'vfs/stats',
      { fs: source.fs },
      signal,
    );
    const cache = { ...NO_CACHE, ...answer.diskCache };
    const queued = cache.uploadsQueued + cache.uploadsInProgress;
    const { core, speed } = await transfers(queued > 0 || files.open > 0, signal);
    const trouble = await source.space(cache.outOfSpace);
    return {
      cacheBytes: cache.bytesUsed,
      dirtyFiles: queued + files.dirty,
      erroredFiles: cache.erroredFiles,
      speed,
      transfers: core.transferring.length,
      errors: core.errors,
      uploading: cache.uploadsInProgress > 0,
      downloading: core.transferring.length > cache.uploadsInProgress,
      trouble,
    };
  };
}

interface Transfers {
  readonly core: CoreStats;
  readonly speed: number;
}

function createTransferReader({
  rc,
  clock,
}: StatsSource): (works: boolean, signal: AbortSignal) => Promise<Transfers> {
  const meter = createMeter(clock);
  let core = NOTHING;
  let idleCalls = IDLE_CALLS;
  let worked = false;
  return async (works, signal) => {
    if (works || worked || idleCalls >= IDLE_CALLS) {
      core = {
        ...NOTHING,
        ...(await rc.call<Partial<CoreStats>>('core/stats', {}, signal)),
      };
      idleCalls = 0;
    }
    idleCalls += 1;
    const speed = meter(core.bytes);
    worked = works || speed > 0 || core.transferring.length > 0;
    return { core, speed };
  };
}

/** Bytes per second since the last call; rclone itself reports only the average since its start. */
export function createMeter(clock: Clock): (bytes: number) => number {
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
