import type { Clock, Logger, MountStats } from 'mountkeeper';
import type { CacheTrees } from '../cache/metadata.ts';
import { createClosingFiles } from '../recovery/closing-files.ts';
import type { OverwrittenRecords } from '../recovery/overwritten-records.ts';
import type { TruncateFix } from '../recovery/truncate-fix.ts';
import { failedUploadsTrouble } from './failed-uploads.ts';
import type { FailedUploads } from './failed-uploads.ts';
import type { WriteBackRescue } from '../recovery/write-back-rescue.ts';
import type { OpenFilesLook } from './open-files-look.ts';
import { queuedBytes } from './queued-bytes.ts';
import type { RcClient } from '../rclone/control/remote-control.ts';
import { RootCheck } from '../outage/root-check.ts';
import type { SpaceWatch } from '../cache/space-watch.ts';
import { createUploadMeter } from './upload-meter.ts';
import type { Transfer } from './upload-meter.ts';

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
  transferring: readonly Transfer[];
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
  readonly log: Logger;
  readonly openFiles: Pick<OpenFilesLook, 'now'>;
  readonly trees: CacheTrees;
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly rescue: Pick<WriteBackRescue, 'countUnfinished' | 'trouble'>;
  readonly truncateFix: Pick<TruncateFix, 'look'>;
  readonly records: Pick<OverwrittenRecords, 'noteQueued'>;
  readonly space: SpaceWatch;
  readonly failedUploads: (mayBe: boolean) => Promise<FailedUploads>;
}

/**
 * Figures of one mount. Asks for the transfers only while something moves: an idle mount costs one call and a
 * look into /proc. Reading changes no file; what is mended meanwhile is `maintain`'s.
 */
export function createStatsReader(source: StatsSource): (signal: AbortSignal) => Promise<MountStats> {
  const transfers = createTransferReader(source);
  const meter = createUploadMeter();
  const closing = createClosingFiles({ metaRoot: source.trees.meta, clock: source.clock });
  const root = new RootCheck(source);
  return async (signal) => {
    root.lookWhenDue();
    // Open files first: a file that is closed between the two reads is then counted twice instead of never.
    const files = await source.openFiles.now();
    const answer = await source.rc.call<{ diskCache?: Partial<DiskCache> }>(
      'vfs/stats',
      { fs: source.fs },
      signal,
    );
    const cache = { ...NO_CACHE, ...answer.diskCache };
    const queued = cache.uploadsQueued + cache.uploadsInProgress;
    source.records.noteQueued(queued);
    const closed = await closing(files.dirty, queued);
    const tooLong = await source.truncateFix.look(queued + files.dirty.length + closed > 0, signal);
    const { core, speed } = await transfers(queued > 0 || files.open > 0, signal);
    const failed = await source.failedUploads(queued > 0 && core.errors > 0);
    const troubles = [
      await source.space(cache.outOfSpace),
      failedUploadsTrouble(failed),
      root.trouble,
      source.rescue.trouble,
    ].filter((text) => text !== undefined);
    const unfinished = await source.rescue.countUnfinished();
    const dirtyFiles = queued + files.dirty.length + closed + unfinished + tooLong;
    const dirtyBytes =
      queued > 0 && dirtyFiles === queued ? await queuedBytes(source, queued, signal) : undefined;
    return {
      cacheBytes: cache.bytesUsed,
      dirtyFiles,
      ...(dirtyBytes !== undefined && { dirtyBytes }),
      erroredFiles: cache.erroredFiles + failed.count,
      speed,
      transfers: core.transferring.length,
      errors: core.errors,
      // Files that wait for their write-back delay, or for their next attempt, need no bandwidth.
      uploading: cache.uploadsInProgress > 0,
      downloading: core.transferring.length > cache.uploadsInProgress,
      uploadedBytes: meter(core, cache.uploadsInProgress),
      trouble: troubles.length > 0 ? troubles.join('; ') : undefined,
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
      core = { ...NOTHING, ...(await rc.call<Partial<CoreStats>>('core/stats', {}, signal)) };
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
