import type { MountStats } from 'mountkeeper';
import type { RcClient } from '../rclone/control/remote-control.ts';
import type { SpaceWatch } from '../cache/space-watch.ts';
import type { OpenFiles } from './open-files.ts';
import { createMeter } from './meter.ts';
import type { MeterClock } from './meter.ts';

interface DiskCache {
  bytesUsed: number;
  erroredFiles: number;
  outOfSpace: boolean;
  uploadsInProgress: number;
  uploadsQueued: number;
}
interface CoreStats {
  bytes: number;
  transferring: readonly unknown[];
}

const NO_CACHE: DiskCache = {
  bytesUsed: 0,
  erroredFiles: 0,
  outOfSpace: false,
  uploadsInProgress: 0,
  uploadsQueued: 0,
};
const NOTHING: CoreStats = { bytes: 0, transferring: [] };
/**
 * Where rclone counts what programs read through the mount. Its sum also has each job: the uploader counts its own
 * bytes, and of a rename on the remote rclone counts the whole file although nothing goes over the line.
 */
export const READ_GROUP = 'global_stats';

/** Calls without activity after which the transfer figures are read anyway. */
const IDLE_CALLS = 15;

export interface StatsSource {
  readonly rc: RcClient;
  readonly clock: MeterClock;
  readonly openFiles: () => Promise<OpenFiles>;
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly space: SpaceWatch;
}

/** `isBusy`: something may be read from the remote although no file is open, such as an upload that is read back. */
export type StatsReader = (signal: AbortSignal, isBusy?: boolean) => Promise<MountStats>;

/**
 * Figures of one mount. Asks for the transfers only while something moves: an idle mount costs one call and a
 * look into /proc. Changed files are there only in a mount that a former version made.
 */
export function createStatsReader(source: StatsSource): StatsReader {
  const transfers = createTransferReader(source);
  return async (signal, isBusy = false) => {
    // Open files first: a file that is closed between the two reads is then counted twice instead of never.
    const files = await source.openFiles();
    const answer = await source.rc.call<{ diskCache?: Partial<DiskCache> }>(
      'vfs/stats',
      { fs: source.fs },
      signal,
    );
    const cache = { ...NO_CACHE, ...answer.diskCache };
    const queued = cache.uploadsQueued + cache.uploadsInProgress;
    const { core, errors, speed } = await transfers(isBusy || queued > 0 || files.open > 0, signal);
    const trouble = await source.space(cache.outOfSpace);
    return {
      cacheBytes: cache.bytesUsed,
      dirtyFiles: queued + files.dirty,
      erroredFiles: cache.erroredFiles,
      speed,
      transfers: core.transferring.length,
      errors,
      uploading: cache.uploadsInProgress > 0,
      downloading: core.transferring.length > cache.uploadsInProgress,
      trouble,
    };
  };
}

interface Transfers {
  readonly core: CoreStats;
  readonly errors: number;
  readonly speed: number;
}

function createTransferReader({
  rc,
  clock,
}: StatsSource): (works: boolean, signal: AbortSignal) => Promise<Transfers> {
  const meter = createMeter(clock);
  let core = NOTHING;
  let errors = 0;
  let idleCalls = IDLE_CALLS;
  let worked = false;
  return async (works, signal) => {
    if (works || worked || idleCalls >= IDLE_CALLS) {
      const [reading, all] = await Promise.all([
        rc.call<Partial<CoreStats>>('core/stats', { group: READ_GROUP }, signal),
        rc.call<{ errors?: number }>('core/stats', { short: true }, signal),
      ]);
      core = { ...NOTHING, ...reading };
      errors = all.errors ?? 0;
      idleCalls = 0;
    }
    idleCalls += 1;
    const speed = meter(core.bytes);
    worked = works || speed > 0 || core.transferring.length > 0;
    return { core, errors, speed };
  };
}
