/** A share's upload queue as the API answers it: this uploader's, or that of another mounter's mount. */
import type { Conflict, MountStats, QueuedUpload, QueueEntry } from 'mountkeeper';
import { isAtOrInside } from './compare/paths.ts';
import { stateOf } from './plain-queue.ts';
import type { ManagedUploads } from './transfer/managed.ts';

/** Of a longer queue, the rest is shown when it is asked for by its path. */
export const MOST_ENTRIES = 1_000;

export interface QueueBody {
  readonly share: string;
  readonly dirty_files: number | null;
  readonly dirty_bytes: number | null;
  /** When the oldest change was made that is not on the remote yet; null when there is none. */
  readonly oldest_dirty_at: string | null;
  readonly stuck_files: number | null;
  /** Null when nothing is paused. */
  readonly paused_until: string | null;
  /** At most 1,000, of the path that was asked for. */
  readonly entries: readonly {
    readonly path: string;
    readonly action: string;
    readonly state: string;
    readonly bytes: number;
    /** Null where it is not known: of another mounter's mount. */
    readonly sent_bytes: number | null;
    /** Null where it is not known: of another mounter's mount. */
    readonly since: string | null;
    readonly reason: string;
    readonly tries: number;
    readonly next_try_at: string | null;
    /** Tells what it holds now from every other version; null where there is nothing to discard. */
    readonly version: string | null;
  }[];
  readonly conflicts: readonly {
    readonly path: string;
    readonly copy: string;
    readonly what: string;
    readonly at: string;
  }[];
}

type EntryBody = QueueBody['entries'][number];

/** `path`: entries of this one, and of what is in it; default all. */
export function layerBody(share: string, uploads: ManagedUploads, path = ''): QueueBody {
  const { figures } = uploads;
  return {
    share,
    dirty_files: figures?.dirtyFiles ?? null,
    dirty_bytes: figures?.dirtyBytes ?? null,
    oldest_dirty_at: timeOf(figures?.oldestDirtyAt),
    stuck_files: figures?.stuckFiles ?? null,
    paused_until: timeOf(uploads.pausedUntil),
    entries: firstAt(uploads.queue(), path).map(entryOf),
    conflicts: uploads
      .conflicts()
      .map(({ path, copy, what, at }: Conflict) => ({ path, copy, what, at: new Date(at).toISOString() })),
  };
}

export interface PlainQueue {
  readonly queue: readonly QueuedUpload[];
  /** Undefined before the first figures. */
  readonly stats: MountStats | undefined;
  readonly pausedUntil: number | undefined;
}

/** Of another mounter's queue, which knows fewer things. */
export function plainBody(share: string, { queue, stats, pausedUntil }: PlainQueue, path = ''): QueueBody {
  return {
    share,
    ...figuresOf(queue.length, stats),
    paused_until: timeOf(pausedUntil),
    entries: firstAt(queue, path).map(queuedOf),
    conflicts: [],
  };
}

function firstAt<T extends { readonly path: string }>(entries: readonly T[], path: string): readonly T[] {
  const found = path === '' ? entries : entries.filter((one) => isAtOrInside(one.path, path));
  return found.slice(0, MOST_ENTRIES);
}

type Figures = Pick<QueueBody, 'dirty_files' | 'dirty_bytes' | 'oldest_dirty_at' | 'stuck_files'>;

function figuresOf(queued: number, stats: MountStats | undefined): Figures {
  if (stats === undefined)
    return { dirty_files: null, dirty_bytes: null, oldest_dirty_at: null, stuck_files: null };
  const { dirtyFiles, dirtyBytes = null, oldestDirtyAt, erroredFiles } = stats;
  return {
    // The figures may be some seconds older than the queue.
    dirty_files: Math.max(dirtyFiles, queued),
    dirty_bytes: dirtyFiles < queued ? null : dirtyBytes,
    oldest_dirty_at: timeOf(oldestDirtyAt),
    stuck_files: erroredFiles,
  };
}

const REASONS = {
  uploading: 'It is on its way.',
  waiting: 'It waits for its turn.',
  stuck: 'It was refused and is tried again; the reason stands in the status of the share.',
} as const;

function queuedOf(queued: QueuedUpload): EntryBody {
  const state = stateOf(queued);
  return {
    path: queued.path,
    action: 'upload',
    state,
    bytes: queued.bytes,
    sent_bytes: state === 'uploading' ? null : 0,
    since: timeOf(queued.changedAt),
    reason: REASONS[state],
    tries: queued.failures,
    next_try_at: timeOf(queued.goesAt),
    version: null,
  };
}

function entryOf({
  path,
  action,
  state,
  bytes,
  sentBytes,
  since,
  reason,
  tries,
  nextTryAt,
  version,
}: QueueEntry): EntryBody {
  return {
    path,
    action,
    state,
    bytes,
    sent_bytes: sentBytes,
    since: new Date(since).toISOString(),
    reason,
    tries,
    next_try_at: timeOf(nextTryAt),
    version: version ?? null,
  };
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}
