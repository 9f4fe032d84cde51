/**
 * The contract of the write layer: what users write lands in an upper folder on the local disk, and the
 * uploader brings it to the remote. The upper folder is an overlayfs `upperdir`; it is the difference between
 * the remote and what users want. Paths are relative to the share, with `/` between names and none at either
 * end; `''` is the share's root.
 */

/** The kind is written as rclone writes it: `md5`, `sha1`, `sha256`. */
export interface RemoteHash {
  readonly kind: string;
  readonly value: string;
}

/**
 * One version of a remote file. `modifiedMs` is as precise as the backend stores it; the hash is there when
 * the backend has one.
 */
export interface RemoteVersion {
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly hash?: RemoteHash | undefined;
}

export type RemoteEntry =
  | { readonly name: string; readonly kind: 'folder' }
  | { readonly name: string; readonly kind: 'file'; readonly version: RemoteVersion };

/** The share's folder on the remote itself. */
export interface RemoteRoot {
  /** When it was last asked for and found, in monotonic milliseconds. */
  readonly foundAtMs: number;
  /**
   * It is not there, or is another one than it was: calls reject, and what has been brought there since it was last
   * found may lie elsewhere.
   */
  readonly isLost: boolean;
  /** When the remote ceased to answer, in monotonic milliseconds; undefined while it answers. */
  readonly silentSinceMs?: number | undefined;
  /**
   * The last time that it did not answer for so long that it may have lost power, and with it what it had acknowledged
   * and not written to its disks; in monotonic milliseconds.
   */
  readonly lastSilence?: { readonly fromMs: number; readonly toMs: number } | undefined;
}

/**
 * A share's files on the remote, without any cache between. Every call rejects with a `RemoteFailure`: a
 * plain sentence with the remote's own message. Calls are not retried; the caller looks at the remote again
 * first.
 */
export interface RemoteFiles {
  /**
   * Two times of one file that differ by at most this many milliseconds count as equal: the backend's own
   * precision.
   */
  readonly precisionMs: number;
  /**
   * The remote has shown that its times are off by as much, in milliseconds (Infinity: it does not keep those that it
   * is sent), although the backend says otherwise: `precisionMs` is at least that from now on. The caller remembers it
   * over restarts.
   */
  notePrecision?(ms: number): void;
  /** Absent where nobody looks at it. */
  readonly root?: RemoteRoot | undefined;
  /**
   * Why the remote cannot keep an entry of this name, as the end of a sentence ("it has a control character").
   * Undefined where it can, or where only the remote itself can tell.
   */
  nameProblem?(name: string): string | undefined;
  /** Undefined when there is nothing. `hash` asks the remote for it, which may read the whole file there. */
  stat(
    path: string,
    options: { readonly signal: AbortSignal; readonly hash?: boolean },
  ): Promise<RemoteEntry | undefined>;
  /**
   * Reads the whole file from the remote, past every cache, for a hash of its content in hexadecimal digits.
   * Takes as long as a download.
   */
  readBack(path: string, options: { readonly signal: AbortSignal }): Promise<RemoteHash>;
  /** Undefined when there is no such folder. */
  list(
    folder: string,
    options: { readonly signal: AbortSignal },
  ): Promise<readonly RemoteEntry[] | undefined>;
  /**
   * Uploads a local file with its modification time, under a temporary name that is then renamed where the
   * backend can, so that a failure keeps the former version. `local` is an absolute path on the local disk.
   * Resolves once the remote has it. `isReplacing`: a file is there, whose place it takes; else it rejects where the
   * backend can rename and something has come there meanwhile. `beforeNaming`: called when all of it is there and has
   * only to get its name, where the backend can rename; when it rejects, what the remote has by that name stays.
   */
  upload(
    local: string,
    path: string,
    options: {
      readonly signal: AbortSignal;
      readonly onProgress?: (bytes: number) => void;
      readonly beforeNaming?: () => Promise<void>;
      readonly isReplacing?: boolean;
    },
  ): Promise<void>;
  /**
   * True where `uploadNew` leaves what is at the path already, a file or a folder, and looks for it right before the
   * transfer. Elsewhere it must be asked for first, and `upload` called.
   */
  readonly leavesTaken?: boolean;
  /**
   * As `upload`, to a path where nothing is to be; only where `leavesTaken`. False where a file was there already,
   * which is left as it is, and where that cannot be told. Rejects where a folder is.
   */
  uploadNew?(
    local: string,
    path: string,
    options: { readonly signal: AbortSignal; readonly onProgress?: (bytes: number) => void },
  ): Promise<boolean>;
  /**
   * Removes temporary files that interrupted uploads of this daemon left next to the path. No upload to it
   * may be running.
   */
  clearLeftovers(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** The target must not exist. */
  moveFile(from: string, to: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** The target must not exist. */
  moveFolder(from: string, to: string, options: { readonly signal: AbortSignal }): Promise<void>;
  deleteFile(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Creates the folder and its parents; no error when it exists. */
  makeFolder(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Rejects when it is not empty. */
  removeFolder(path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Makes the share's mount read these folders again when they are next asked for. */
  forget(folders: readonly string[], options: { readonly signal: AbortSignal }): Promise<void>;
}

/** Result of a lookup in the lower layer, by path. */
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
  /** Where files lie that their users gave up, for a while; on the same file system. */
  readonly discarded: string;
  /** A folder for the uploader's own records, on the same file system. */
  readonly records: string;
  /** Paths that are open for writing now. */
  openForWriting(): Promise<ReadonlySet<string>>;
  /**
   * Files that are open and folders that are somebody's working directory, with all their parents: they
   * should keep their place on the remote.
   */
  inUse(): Promise<ReadonlySet<string>>;
  /**
   * What the lower layer alone has at these paths: whiteouts and marks of the upper folder are ignored.
   * Runs outside the daemon's process, with a deadline.
   */
  below(paths: readonly string[], options: { readonly signal: AbortSignal }): Promise<LookBelow<RemoteEntry>>;
  /**
   * What users may have seen in the lower layer when they changed something there, where another version may
   * show by now; null for nothing. `bornMs`: when the changed file began to be, in milliseconds since the
   * epoch; without it, the change was made after what `learnt` told last. Undefined: what shows now is what
   * they saw. Absent: the lower layer never changes below users.
   */
  held?(path: string, bornMs?: number): RemoteEntry | null | undefined;
  /**
   * Since when `held` knows what the lower layer showed (milliseconds since the epoch): before that, it may have been
   * anything that the remote had by then.
   */
  heldSinceMs?(): number;
  /**
   * Resolves when whatever was in the upper folder before the call cannot be lost in a power cut that leaves what is
   * put on record after it. At once where the file system keeps changes in order. Rejects where the disk cannot be
   * written out. Absent: nothing is to be waited for.
   */
  onDisk?(): Promise<void>;
  /** All that users had changed before that time (milliseconds since the epoch) is on record. */
  learnt?(beforeMs: number): void;
  /** Entries of these folders in the lower layer alone. */
  listBelow(
    folders: readonly string[],
    options: { readonly signal: AbortSignal },
  ): Promise<LookBelow<readonly RemoteEntry[]>>;
  /**
   * Removes from the upper folder what the remote now has, too (files, whiteouts, marks of moved folders,
   * folders that became empty), so that users see the remote's version. Entries that changed meanwhile or
   * are open for writing stay: resolves with the paths that were removed. For an entry with `copy`, the
   * remote has it at that path instead.
   */
  takeOut(entries: readonly LeavingEntry[]): Promise<readonly string[]>;
  /**
   * Paths of entries that were to come back after a `takeOut` and could not, for instance for want of space. They lie
   * beside the upper folder, and each `takeOut` tries again. They are missing there, and were not deleted.
   */
  unrestored?(): ReadonlySet<string>;
  /**
   * Paths of files that a `takeOut` has removed, and that a later one brings back if somebody has touched them by then.
   * Absent: what has left stays out.
   */
  resting?(): Promise<ReadonlySet<string>>;
  /**
   * Lets users' calls that ask the lower layer wait, for a few seconds at most, until a `takeOut` has renewed marks, or
   * what it returns was called for all that hold them. Resolves when those that came before are answered. For a move of
   * a folder on the remote: until its mark is renewed, users find it empty.
   */
  holdCalls?(): Promise<() => void>;
  /**
   * Rewrites only the marks of these entries (`nowAt`). Resolves with the paths of those that had not
   * changed meanwhile.
   */
  rewriteMarks(entries: readonly LeavingEntry[]): Promise<readonly string[]>;
}

/** One entry of the upper folder. Times in nanoseconds since the epoch. */
export interface UpperEntry {
  readonly path: string;
  /**
   * `whiteout`: users deleted the lower entry. `other`: a symlink, a socket or the like, which no remote
   * can store.
   */
  readonly kind: 'file' | 'folder' | 'whiteout' | 'other';
  readonly inode: bigint;
  readonly bytes: number;
  readonly modifiedNs: bigint;
  readonly changedNs: bigint;
  /** For a folder: nothing of the lower folder is visible. */
  readonly isOpaque: boolean;
  /**
   * For a folder, or a file without data: the path in the lower layer that its mark refers to, from before
   * the rename.
   */
  readonly movedFrom?: string | undefined;
  /**
   * A file for which overlayfs stores only a rename or a changed mode (`metacopy`). Its bytes are not the
   * content.
   */
  readonly hasNoData?: boolean | undefined;
}

/**
 * An entry that the remote has, too. A file without data may be removed whatever the lower layer has: it
 * holds nothing of the user's.
 */
export interface LeavingEntry extends UpperEntry {
  /** Where the remote has it, when someone else's version has taken its path. */
  readonly copy?: string | undefined;
  /**
   * For a folder, or a file without data, whose mark is out of date: where the remote has its lower entry
   * now. The mark is rewritten, and never removed while an overlay is mounted, because overlayfs caches the
   * former one: first the mark, then the mount refreshes the folders, then the names are dropped. The entry
   * counts as removed once a lookup through the overlay has shown the new place; it stays in the upper
   * folder.
   */
  readonly nowAt?: string | undefined;
  /**
   * For a file that the remote once had exactly like this: what others have put there since; without
   * `entry` they removed it. The file is removed here when the lower layer shows just that.
   */
  readonly theirs?: { readonly entry?: RemoteEntry } | undefined;
  /**
   * For a folder that hides its lower content: the folders in it that show theirs together with it. It goes on hiding
   * where one of them has changed.
   */
  readonly shownWith?: readonly UpperEntry[] | undefined;
  /**
   * For a file that is given up: the absolute path to which it is moved instead of being removed. `theirs` says
   * what users are to see in its place.
   */
  readonly discardTo?: string | undefined;
}

export type QueueState = 'waiting' | 'uploading' | 'stuck';

/** One change that the remote does not have yet. */
export interface QueueEntry {
  readonly path: string;
  readonly action: 'upload' | 'delete' | 'move' | 'make folder';
  readonly state: QueueState;
  readonly bytes: number;
  /** Bytes sent in the current attempt. */
  readonly sentBytes: number;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** A plain sentence why it is not uploaded yet, with the remote's own message when it refused. */
  readonly reason: string;
  readonly tries: number;
  /** Milliseconds since the epoch; undefined when it is sent as soon as a slot is free. */
  readonly nextTryAt?: number | undefined;
  /** Of a file with content: tells this version of it from every other. */
  readonly version?: string | undefined;
}

/** Two versions of one file, both kept. */
export interface Conflict {
  readonly path: string;
  /** Path of the other version; the same as `path` when there is only one. */
  readonly copy: string;
  readonly what: 'changed' | 'deleted' | 'moved';
  readonly at: number;
  /**
   * When both are files: what the remote had at the path, and what users wrote here, which is now at
   * `copy`.
   */
  readonly versions?:
    | { readonly theirs: RemoteVersion; readonly mine: Pick<RemoteVersion, 'bytes' | 'modifiedMs'> }
    | undefined;
}

/** Figures from the last scan of the upper folder. */
export interface UploadFigures {
  /** When that scan began, in monotonic milliseconds. */
  readonly lookedAtMs: number;
  readonly dirtyFiles: number;
  readonly dirtyBytes: number;
  /** Milliseconds since the epoch; undefined when everything is on the remote. */
  readonly oldestDirtyAt?: number | undefined;
  readonly stuckFiles: number;
  /** Why the first stuck entry is stuck. */
  readonly stuckReason?: string | undefined;
  readonly uploading: number;
  /** Since the uploader has begun. */
  readonly uploadedBytes: number;
  /** Content in the upper folder, also of files that the remote has, too. */
  readonly localBytes: number;
  /**
   * True when the scan found nothing that waits, but files were renamed during it: one that waits may have been
   * seen by none of its names. Also while a file is being discarded: it may come back.
   */
  readonly isTorn?: boolean;
}

/** Uploads one share's upper folder for as long as the share is mounted. */
export interface ShareUploads {
  readonly figures: UploadFigures | undefined;
  /**
   * Scans the upper folder; resolves with the resulting figures. Where very many files wait, with those of a scan up to
   * ten seconds ago, unless `isNew`.
   */
  look(signal: AbortSignal, options?: { readonly isNew?: boolean }): Promise<UploadFigures>;
  /**
   * Resolves when users see every folder at the path that the remote has it at; until the returned function
   * is called, the uploader moves no folder. Only then may listings of the lower layer be refreshed: a
   * folder that was moved on the remote would look empty. Rejects when the signal ends the wait.
   */
  holdMoves(signal: AbortSignal): Promise<() => void>;
  /**
   * Called before the lower layer is replaced while the overlay stays: rewrites the marks to where the
   * remote has the folders now. `remote` must answer. Rejects when that is unknown, or the marks cannot be
   * written.
   */
  settleMoves(signal: AbortSignal): Promise<void>;
  /**
   * Tells that the share refreshed this listing (`isDeep`: with everything below): the upper folder gives
   * way to what others changed.
   */
  refreshed(folder: string, isDeep: boolean): void;
  /** Everything that waits may be sent now: no quiet time, no pause between attempts. Ends a pause. */
  flush(): void;
  /** Milliseconds since the epoch; undefined when nothing is paused. */
  readonly pausedUntil: number | undefined;
  /** Until then only what users name is sent. 0 resumes at once. */
  pause(until: number): void;
  queue(): readonly QueueEntry[];
  conflicts(): readonly Conflict[];
  /** Ends running uploads; what waits stays in the upper folder. */
  stop(): Promise<void>;
}

export interface UploadOptions {
  readonly layer: WriteLayer;
  readonly remote: RemoteFiles;
  /** Quiet time after the last change of a closed file, in milliseconds. */
  readonly writeBackMs: () => number;
  readonly transfers: () => number;
  /** When files that the remote has, too, are removed from the upper folder. Absent: never. */
  readonly clean?: CleanRules | undefined;
  /** Called after each look that found the upper folder other than the look before. */
  readonly onChange?: () => void;
}

/** Cache rules of the configuration; each is read when it is needed. */
export interface CleanRules {
  /** Maximum age of what is known about a remote folder, in milliseconds. */
  readonly listingAgeMs: () => number;
  /** Files that nobody has changed for this many milliseconds are removed. */
  readonly keepMs: () => number;
  /** Free bytes that the disk of the upper folder should have. */
  readonly minFreeBytes: () => number;
  /** Most bytes that the upper folder should hold; `Infinity` for no limit. Absent: no limit. */
  readonly mostBytes?: () => number;
}

/** An upper folder that no overlay uses at the moment. */
export interface SettleOptions {
  readonly upper: string;
  readonly records: string;
  /** Asked about moves whose answer never arrived. */
  readonly remote: Pick<RemoteFiles, 'stat' | 'list'>;
  readonly signal: AbortSignal;
}

/** An upper folder after a power cut, which no overlay uses yet. */
export interface LateWritesOptions {
  readonly upper: string;
  readonly records: string;
  /** Everything that was changed before is on the disk, in milliseconds since the epoch, by the clock of then. */
  readonly sinceMs: number;
  readonly signal: AbortSignal;
}

/** Provided under the name `uploader`. */
export interface Uploader {
  start(options: UploadOptions): ShareUploads;
  /**
   * Called right before an overlay is mounted again: rewrites the marks of folders as the remote has them
   * now, and removes what only the former overlay needed. Nobody may use the upper folder, and no uploader
   * may run on it.
   */
  settle(options: SettleOptions): Promise<void>;
  /**
   * Called after a power cut, before anything else is done with the upper folder: files that were written too late to
   * be on the disk for sure are kept, and not sent before they are written again or sent by hand. Resolves with their
   * number. Rejects when that cannot be told; then the folder must not be mounted.
   */
  noteLateWrites(options: LateWritesOptions): Promise<number>;
  /** What waits in an upper folder without a mount. */
  waiting(
    upper: string,
    records: string,
  ): Promise<{ readonly count: number; readonly bytes: number; readonly paths: readonly string[] }>;
}
