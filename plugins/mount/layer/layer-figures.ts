/** Figures of a mounted share with a write layer, and the rules for its uploader. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { durationMs, sizeBytes } from 'mountkeeper';
import type {
  MountStats,
  QueuedUpload,
  QueueEntry,
  ShareUploads,
  UploadFigures,
  UploadOptions,
  UploadPause,
} from 'mountkeeper';
import { treesOf } from '../cache/metadata.ts';
import { cachePath } from '../rclone/kept-names.ts';
import { READ_PART } from '../rclone/arguments.ts';
import type { MountTools } from '../lifecycle/tools.ts';

/** Reads the configuration at each call. `readBytes`: what rclone holds in its own cache. */
export function uploadRules(
  { config }: Pick<MountTools, 'config'>,
  readBytes: () => number,
): Omit<UploadOptions, 'layer' | 'remote'> {
  return {
    writeBackMs: () => durationMs(config().mount.write_back),
    transfers: () => config().mount.transfers,
    clean: {
      listingAgeMs: () => durationMs(config().mount.dir_cache_time),
      keepMs: () => durationMs(config().cache.max_age),
      minFreeBytes: () => sizeBytes(config().cache.min_free_space),
      mostBytes: () => {
        const most = sizeBytes(config().cache.max_size);
        return most === 0 ? Infinity : Math.max(most - readBytes(), most * (1 - READ_PART));
      },
    },
  };
}

/** `nas:photos/2024` → `photos/2024`. */
export function remotePathOf(fs: string): string {
  return fs.slice(fs.indexOf(':') + 1);
}

/**
 * Whether rclone has content of a file of that size in its own cache, or may have. `path`: the path on the
 * remote, without the remote's name.
 */
export function isCached(cacheDir: string, path: string, bytes: number): boolean {
  try {
    const meta = readFileSync(join(treesOf(cacheDir).meta, cachePath(path)), 'utf8');
    const { Size } = JSON.parse(meta) as { readonly Size: number };
    return Size === bytes;
  } catch (error) {
    return !['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
  }
}

export const NOTHING_READ: MountStats = {
  cacheBytes: 0,
  dirtyFiles: 0,
  erroredFiles: 0,
  speed: 0,
  transfers: 0,
  errors: 0,
  uploading: false,
};

/** Adds the uploader's figures to those of reading, which have nothing of what it sends. */
export function withUploads(
  reading: MountStats,
  waiting: UploadFigures,
  { inTheWay, uploadSpeed }: { readonly inTheWay: string | undefined; readonly uploadSpeed: number },
): MountStats {
  const stuck =
    waiting.stuckFiles > 0
      ? `${waiting.stuckFiles} of the files written here cannot be brought to the remote ` +
        `(${waiting.stuckReason ?? 'no reason given'}); they stay here`
      : undefined;
  const troubles = [reading.trouble, stuck, inTheWay].filter((text) => text !== undefined);
  return {
    ...reading,
    cacheBytes: reading.cacheBytes + waiting.localBytes,
    speed: reading.speed + uploadSpeed,
    transfers: reading.transfers + waiting.uploading,
    dirtyFiles: reading.dirtyFiles + waiting.dirtyFiles,
    dirtyBytes: reading.dirtyFiles === 0 ? waiting.dirtyBytes : undefined,
    oldestDirtyAt: waiting.oldestDirtyAt,
    erroredFiles: reading.erroredFiles + waiting.stuckFiles,
    // Nobody knows for the moment: the next scan tells.
    uploading: reading.uploading || waiting.uploading > 0 || waiting.isTorn === true,
    downloading: reading.downloading ?? false,
    uploadedBytes: waiting.uploadedBytes,
    trouble: troubles.length > 0 ? troubles.join('; ') : undefined,
    ...(inTheWay !== undefined && { isHidden: true }),
  };
}

/** The files among what waits; folders and removals have nothing to show. */
export function queuedFiles(entries: readonly QueueEntry[]): readonly QueuedUpload[] {
  return entries
    .filter(({ action }) => action === 'upload')
    .map(({ path, bytes, state, tries, nextTryAt, since }) => ({
      path,
      bytes,
      isUploading: state === 'uploading',
      // What no remote can store is refused before its first try.
      failures: state === 'stuck' ? Math.max(1, tries) : tries,
      ...(nextTryAt !== undefined && { goesAt: nextTryAt }),
      changedAt: since,
    }));
}

/** The uploader pauses by itself, at any setting. */
export function pauseOf(uploads: ShareUploads): UploadPause {
  return {
    get until() {
      return uploads.pausedUntil;
    },
    obstacle: undefined,
    set: async (until) => uploads.pause(until),
  };
}
