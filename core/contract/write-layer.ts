/**
 * The contract of the write layer: what users write lands in an upper folder on the local disk, and the
 * uploader brings it to the remote. The upper folder is an overlayfs `upperdir`; it is the difference between
 * the remote and what users want. Paths are relative to the share, with `/` between names and none at either
 * end; `''` is the share's root.
 */

/**
 * One version of a remote file. `modifiedMs` is as exact as the backend keeps it; the hash is there where the
 * backend has one.
 */
export interface RemoteVersion {
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly hash?: { readonly kind: string; readonly value: string } | undefined;
}

export type RemoteEntry =
  | { readonly name: string; readonly kind: 'folder' }
  | { readonly name: string; readonly kind: 'file'; readonly version: RemoteVersion };

/**
 * A share's files on the remote, asked beside the mount: no cache stands between. Every call rejects with a
 * `RemoteFailure` whose message is the remote's own words in a plain sentence. No call is repeated by itself:
 * who calls looks first.
 */
export interface RemoteFiles {
  /**
   * How far two times of one file may lie apart and still be the same, in milliseconds: the backend's own
   * precision.
   */
  readonly precisionMs: number;
  /** Undefined when there is nothing. `hash` asks the remote for it, which may read the whole file there. */
  stat(
    path: string,
    options: { readonly signal: AbortSignal; readonly hash?: boolean },
  ): Promise<RemoteEntry | undefined>;
  /** Undefined when there is no such folder. */
  list(
    folder: string,
    options: { readonly signal: AbortSignal },
  ): Promise<readonly RemoteEntry[] | undefined>;
  /**
   * Brings a local file up with its time, beside the place and renamed where the backend can, so that a
   * failure leaves the former version. `local` is an absolute path on the local disk. Resolves once the
   * remote holds it.
   */
  upload(
    local: string,
    path: string,
    options: { readonly signal: AbortSignal; readonly onProgress?: (bytes: number) => void },
  ): Promise<void>;
  /**
   * Removes what uploads of this daemon to the path have left beside it when they were cut off. None may be
   * under way.
   */
  clearLeftovers(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** The target must not exist. */
  moveFile(from: string, to: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** The target must not exist. */
  moveFolder(from: string, to: string, options: { readonly signal: AbortSignal }): Promise<void>;
  deleteFile(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** With its parents; no error when it is there. */
  makeFolder(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Rejects when it is not empty. */
  removeFolder(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** The share's mount reads these folders anew when they are next asked for. */
  forget(folders: readonly string[], options: { readonly signal: AbortSignal }): Promise<void>;
}

/** What a look at the lower layer found, by path. */
export interface LookBelow<T> {
  /** Undefined where there is none. */
  readonly found: ReadonlyMap<string, T | undefined>;
  /** Why a path could not be looked at; such a path is not in `found`. */
  readonly failed: ReadonlyMap<string, string>;
}

/** The local half of a share. */
export interface WriteLayer {
  readonly shareName: string;
  /** The overlay's `upperdir`. Read it freely; change it only as the methods here do. */
  readonly upper: string;
  /** A folder on the same file system that users do not see. */
  readonly aside: string;
  /** A folder for the uploader's own records, on the same file system. */
  readonly records: string;
  /** Paths that somebody has open for writing now. */
  openForWriting(): Promise<ReadonlySet<string>>;
  /**
   * What somebody has open or stands in, files and folders, with all above: on the remote it had better stay
   * where it is.
   */
  inUse(): Promise<ReadonlySet<string>>;
  /**
   * What the lower layer has at these paths of its own: whiteouts and marks in the upper folder do not count.
   * Asked outside the daemon's process, bounded.
   */
  below(paths: readonly string[], options: { readonly signal: AbortSignal }): Promise<LookBelow<RemoteEntry>>;
  /** What the lower layer has in folders of its own. */
  listBelow(
    folders: readonly string[],
    options: { readonly signal: AbortSignal },
  ): Promise<LookBelow<readonly RemoteEntry[]>>;
  /**
   * Takes what the remote now has, too, out of the upper folder (files, whiteouts, marks of moved folders,
   * folders that hold nothing any more), so that users see the remote's. Nothing that changed meanwhile, or
   * is open for writing, is touched: resolves with the paths that were taken out. An entry with `copy` is on
   * the remote at that path instead of its own.
   */
  takeOut(entries: readonly LeavingEntry[]): Promise<readonly string[]>;
  /**
   * Writes the marks of these (`nowAt`) anew and nothing else. Resolves with the paths of those that had not
   * changed meanwhile.
   */
  rewriteMarks(entries: readonly LeavingEntry[]): Promise<readonly string[]>;
}

/** One entry of the upper folder. Times in nanoseconds since the epoch. */
export interface UpperEntry {
  readonly path: string;
  /**
   * `whiteout`: users deleted what lies below. `other`: a link, a socket or the like, which no remote takes.
   */
  readonly kind: 'file' | 'folder' | 'whiteout' | 'other';
  readonly inode: bigint;
  readonly bytes: number;
  readonly modifiedNs: bigint;
  readonly changedNs: bigint;
  /** Of a folder: nothing that lies below shows. */
  readonly isOpaque: boolean;
  /**
   * Of a folder, or a file without data: where what lies below it comes from by its mark, before it was
   * renamed.
   */
  readonly movedFrom?: string | undefined;
  /**
   * A file of which overlayfs keeps only that it was renamed or has another mode (`metacopy`). Its bytes are
   * no content.
   */
  readonly hasNoData?: boolean | undefined;
}

/**
 * One entry that the remote has, too. A file without data may go whatever lies below: it holds nothing of the
 * user's.
 */
export interface LeavingEntry extends UpperEntry {
  /** Where the remote has it, when someone else's version has its place. */
  readonly copy?: string | undefined;
  /**
   * Of a folder, or a file without data, whose mark is out of date: where the remote has what lies below it
   * now. Its mark is written anew to say so and is never removed while an overlay is mounted, for overlayfs
   * remembers the former one: mark first, then the mount reads the folders anew, then names are dropped.
   * Taken out means that a look through the overlay has shown it since; it stays in the upper folder.
   */
  readonly nowAt?: string | undefined;
  /**
   * Of a file that the remote had as it is here: others have put this there since, or have removed it where
   * there is no entry. It is taken out when what lies below shows just that.
   */
  readonly theirs?: { readonly entry?: RemoteEntry } | undefined;
}

export type QueueState = 'waiting' | 'uploading' | 'stuck';

/** One thing that the remote does not have yet. */
export interface QueueEntry {
  readonly path: string;
  readonly action: 'upload' | 'delete' | 'move' | 'make folder';
  readonly state: QueueState;
  readonly bytes: number;
  /** Bytes that have gone up in the try under way. */
  readonly sentBytes: number;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** A plain sentence why it is not there yet, with the remote's own words when it refused. */
  readonly reason: string;
  readonly tries: number;
  /** Milliseconds since the epoch; undefined when it goes as soon as there is room. */
  readonly nextTryAt?: number | undefined;
}

/** Two versions that both stay. */
export interface Conflict {
  readonly path: string;
  /** Where the other version is; the path itself when there is one alone. */
  readonly copy: string;
  readonly what: 'changed' | 'deleted' | 'moved';
  readonly at: number;
  /** Where both are files: what the remote had at the path, and what users here wrote, which is at `copy`. */
  readonly versions?:
    | { readonly theirs: RemoteVersion; readonly mine: Pick<RemoteVersion, 'bytes' | 'modifiedMs'> }
    | undefined;
}

/** Figures from the last look at the upper folder. */
export interface UploadFigures {
  /** When that look began, in monotonic milliseconds. */
  readonly lookedAtMs: number;
  readonly dirtyFiles: number;
  readonly dirtyBytes: number;
  /** Milliseconds since the epoch; undefined when all is on the remote. */
  readonly oldestDirtyAt?: number | undefined;
  readonly stuckFiles: number;
  /** Why the first of the stuck ones is. */
  readonly stuckReason?: string | undefined;
  readonly uploading: number;
  readonly uploadedBytes: number;
}

/** Brings one share's upper folder to the remote, for as long as the share is mounted. */
export interface ShareUploads {
  readonly figures: UploadFigures | undefined;
  /** Looks at the upper folder now; resolves with what it shows. */
  look(signal: AbortSignal): Promise<UploadFigures>;
  /**
   * Resolves when users see every folder where the remote has it; none is moved there until the returned
   * function is called. What the lower layer shows may be read anew only then: a folder that has been moved
   * on the remote would show empty. Rejects when the signal ends the wait.
   */
  holdMoves(signal: AbortSignal): Promise<() => void>;
  /**
   * Another lower layer is about to be seen, while the overlay stays: marks say then where the remote has
   * folders now. `remote` must answer. Rejects when that cannot be found out, or be written.
   */
  settleMoves(signal: AbortSignal): Promise<void>;
  /**
   * The share reads this listing anew (`isDeep`: and all below it): what others changed is to show instead of
   * what lies here.
   */
  refreshed(folder: string, isDeep: boolean): void;
  /** All that waits may go now: no quiet time, no pause between tries. */
  flush(): void;
  queue(): readonly QueueEntry[];
  conflicts(): readonly Conflict[];
  /** Ends what is under way; what waits stays in the upper folder. */
  stop(): Promise<void>;
}

export interface UploadOptions {
  readonly layer: WriteLayer;
  readonly remote: RemoteFiles;
  /** Quiet time after the last change of a closed file, in milliseconds. */
  readonly writeBackMs: () => number;
  readonly transfers: () => number;
  /** When files that the remote has, too, leave the upper folder. Left out, they stay. */
  readonly clean?: CleanRules | undefined;
}

/** What the configuration says of the cache, as it is at the moment. */
export interface CleanRules {
  /** So old may be what is known of a folder on the remote, in milliseconds. */
  readonly listingAgeMs: () => number;
  /** What nobody has changed for longer leaves, in milliseconds. */
  readonly keepMs: () => number;
  /** Free space that is wanted on the disk of the upper folder. */
  readonly minFreeBytes: () => number;
}

/** An upper folder that no overlay uses. */
export interface SettleOptions {
  readonly upper: string;
  readonly records: string;
  /** Asked about moves whose answer was never seen. */
  readonly remote: Pick<RemoteFiles, 'stat'>;
  readonly signal: AbortSignal;
}

/** Provided under the name `uploader`. */
export interface Uploader {
  start(options: UploadOptions): ShareUploads;
  /**
   * Right before an overlay is mounted anew: writes the marks of folders as the remote has them now, and
   * takes out what only an overlay needed that lived until now. Nobody may use the upper folder meanwhile,
   * and no uploader may run on it.
   */
  settle(options: SettleOptions): Promise<void>;
  /** What waits in an upper folder that no mount carries. */
  waiting(
    upper: string,
    records: string,
  ): Promise<{ readonly count: number; readonly bytes: number; readonly paths: readonly string[] }>;
}
