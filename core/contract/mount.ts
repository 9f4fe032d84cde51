/**
 * Contract of mounts: what shares need from the plugin that mounts, probes and refreshes them. Names no
 * vendor.
 */
import type { ConnectionConfig, ShareConfig } from './config.ts';

/** A share together with the connection it uses. */
export interface ShareSpec {
  readonly share: ShareConfig;
  readonly connection: ConnectionConfig;
}

/** What a mount of a share depends on. A pure function of the configuration. */
export interface MountPlan {
  readonly mountPoint: string;
  /** Equal: the active mount can stay. Different: the share must be mounted again. */
  readonly fingerprint: string;
  /**
   * Identifies where dirty files go: connection, remote path and cache folder. Before it changes, all dirty
   * files must be uploaded.
   */
  readonly identity: string;
  /**
   * Identifies the place on the NAS alone, wherever the cache is. Absent where that is not known: what waits for a
   * place waits on.
   */
  readonly place?: string | undefined;
}

/** Figures of one active mount, fresh from its remote control. Sizes in bytes, speed in bytes per second. */
export interface MountStats {
  readonly cacheBytes: number;
  /** Files whose content is not yet on the remote: queued, uploading, or open with changes. */
  readonly dirtyFiles: number;
  /** Size of those files; absent while it is unknown for one of them. */
  readonly dirtyBytes?: number | undefined;
  /**
   * When the oldest of these changes was made, in milliseconds since the epoch; absent where the mounter
   * does not record it.
   */
  readonly oldestDirtyAt?: number | undefined;
  readonly erroredFiles: number;
  readonly speed: number;
  readonly transfers: number;
  readonly errors: number;
  /** True when something is being uploaded now; bandwidth is divided by this demand. */
  readonly uploading: boolean;
  /** True when something is being downloaded now. Absent: any transfer may be a download. */
  readonly downloading?: boolean;
  /** Bytes uploaded since the mount began; absent while uploads cannot be told from downloads. */
  readonly uploadedBytes?: number | undefined;
  /**
   * A plain sentence about a problem of a mount that still works, such as a full disk; undefined without a
   * problem.
   */
  readonly trouble?: string | undefined;
  /** True when users may come to something else by the share's path: what they write there, nobody knows. */
  readonly isHidden?: boolean;
}

/** A file that is not on the remote yet. */
export interface QueuedUpload {
  /** Relative to the share. */
  readonly path: string;
  readonly bytes: number;
  readonly isUploading: boolean;
  /** How often its upload has failed. */
  readonly failures: number;
  /** Milliseconds since the epoch; absent when it goes as soon as there is room. */
  readonly goesAt?: number;
  /** When it was last changed here, in milliseconds since the epoch; absent where the mounter does not know. */
  readonly changedAt?: number;
}

/** Holds the uploads of one mount back for a while. What is being uploaded goes on. */
export interface UploadPause {
  /** When the pause ends by itself, in milliseconds since the epoch; undefined when nothing is paused. */
  readonly until: number | undefined;
  /** A plain sentence why uploads cannot be paused as things are; undefined where they can. */
  readonly obstacle: string | undefined;
  /**
   * Pauses until then (milliseconds since the epoch); `flush` ends it. Rejects with a plain sentence when
   * nothing was paused.
   */
  set(until: number, signal: AbortSignal): Promise<void>;
}

/** Files that wait on the local disk, found without any mount. */
export interface PendingFiles {
  readonly count: number;
  readonly bytes: number;
  /** Paths relative to the share, at most 1,000 of them. */
  readonly paths: readonly string[];
}

/** Bytes per second for each direction; 0 means unlimited. */
export interface Bandwidth {
  readonly up: number;
  readonly down: number;
}

/** The most that one share may use: bytes per second for each direction; 0 means no limit of its own. */
export interface ShareLimit extends Bandwidth {
  readonly share: string;
}

/**
 * Result of refreshing directory listings: each folder counts once. Paths are relative to the share; `''`
 * is its root.
 */
export interface RefreshResult {
  readonly ok: number;
  readonly failed: readonly {
    readonly path: string;
    readonly reason: string;
  }[];
}

export interface ServeOptions {
  /** The protocol to serve, such as `webdav`. */
  readonly protocol: string;
  /**
   * Where to create the private socket: an absolute path of at most 107 bytes in a folder that nobody else
   * may enter.
   */
  readonly socket: string;
  /** URL path of the share's root, decoded, with a leading and without a trailing slash. */
  readonly baseUrl: string;
  /** Awaited by `freeze`, even when the tool cannot serve: afterwards no client may begin to write. */
  readonly onFreeze: () => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * How a process beside the daemon looks into a mount's cache: `module` is the path of an ES module that
 * exports `openCacheView(parameters): CacheView`. The parameters hold credentials: hand them over by a pipe,
 * never on a command line.
 */
export interface CacheAccess {
  readonly module: string;
  readonly parameters: Readonly<Record<string, string | number>>;
}

/**
 * One file as the remote has it now. `isCached`: all of its content is in the cache, by the cache's own
 * records. `cachedBytes`: how much of it is, where it is a part.
 */
export interface CacheViewFile {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly isCached: boolean;
  readonly cachedBytes?: number;
}

/**
 * A file whose content the remote does not have yet. `failed`: the last attempt was refused, and another one
 * follows.
 */
export interface UnsavedFile {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly state: 'waiting' | 'uploading' | 'failed';
}

/**
 * Call it outside the daemon's process only: calls are slow and read many small files. Paths are relative
 * to the share.
 */
export interface CacheView {
  /**
   * Upper limit of bytes of unfinished files that one reader may leave behind: read-ahead cannot be
   * cancelled.
   */
  readonly aheadBytes: number;
  /** A folder as the remote has it now; does not go through the mount. */
  list(folder: string): Promise<{
    readonly folders: readonly string[];
    readonly files: readonly CacheViewFile[];
  }>;
  /** Files directly in the folder that are not on the remote as users see them. Absent: nobody can tell. */
  unsaved?(folder: string): Promise<readonly UnsavedFile[]>;
  isWhole(path: string, file: { readonly bytes: number; readonly modifiedMs: number }): boolean;
  /**
   * Whether at least `bytes` of the file are on the disk. For files that are open: their ranges are not
   * recorded yet.
   */
  holds(path: string, bytes: number): boolean;
  /** Bytes that the cache can still take without evicting anything. */
  roomBytes(): Promise<number>;
  /**
   * Transfers under way, with the bytes moved so far. `isUpload` is absent where the direction is unknown.
   */
  transfers(): Promise<
    readonly {
      readonly path: string;
      readonly bytes: number;
      readonly isUpload?: boolean;
    }[]
  >;
  /** Resolves with false when the mount or the remote behind it does not answer. */
  answers(): Promise<boolean>;
}

/** A folder that shows a mount's files, kept by a process of its own. */
export interface HandleFolder {
  readonly path: string;
  /** Of the process. The kernel's handles in the folder last as long as it does. */
  readonly pid: number;
  /** Ends the process, which keeps the mount busy: nobody shows the folder any more. */
  end(): Promise<void>;
}

/** Names of files and folders by a regular expression, with the flags `i` and `u`. */
export interface UnkeptNames {
  readonly pattern: string;
  /** What is wrong with them, as the end of a sentence. */
  readonly because: string;
}

/** One active mount. All calls are bounded by the caller's signal or their own deadline. */
export interface Mount {
  readonly shareName: string;
  readonly plan: MountPlan;
  readonly rcPort: number;
  readonly pid: number;
  /**
   * The process that reads from the remote for it, where another one may take its place while the mount stays: the
   * latest one, perhaps dead. Absent: `pid`.
   */
  readonly readerPid?: number | undefined;
  /**
   * True while the remote answers and the share's path is not there, or is another folder than it was: folders may show
   * empty that are not. Absent: nobody looks.
   */
  readonly isRootLost?: boolean;
  /**
   * True while nothing of the remote can be read, not even from the cache, since what reads cannot be started: folders
   * cannot be listed, and new files only made where the remote has nothing. Its figures' `trouble` says so. Absent:
   * that never is so.
   */
  readonly isUnreadable?: boolean;
  /**
   * True until what reads for it has read each folder that has cached files, or while that is unknown: without the
   * remote, cached files can be read in folders alone that were listed since it was started. Absent: in all of them.
   */
  readonly hasUnreadFolders?: boolean;
  readonly adopted: boolean;
  /** True for an adopted mount that a former daemon had frozen: it must be mounted again to accept writes. */
  readonly isFrozen?: boolean;
  /** Settles with a plain sentence when the mount's process has ended. Never rejects. */
  readonly exited: Promise<string>;
  stats(signal: AbortSignal): Promise<MountStats>;
  /**
   * A light check that the remote answers over this mount's own connection. Rejects with the reason as a
   * plain sentence, as a `RemoteFailure` where it can.
   */
  checkRemote(signal: AbortSignal): Promise<void>;
  /** Resolves while the mount answers file system calls; rejects when it hangs or is gone. */
  checkAlive(timeoutMs: number): Promise<void>;
  setBandwidth(limit: Bandwidth, signal: AbortSignal): Promise<void>;
  /**
   * Freezes the mount: refuses new writes, and can be read. What is open for writing may be written to its end. Only
   * unmounting undoes it.
   */
  freeze(): Promise<void>;
  /**
   * Serves the mount's files from its own process, not through the kernel, on a private socket; keeps a
   * server that is already there. The server ends with the mount. Resolves with false when this tool
   * cannot. Absent: it never can.
   */
  serve?(options: ServeOptions): Promise<boolean>;
  /**
   * A folder with the same files as the mount point, for servers that name files by the kernel's handles, where
   * the mount point has none. Started at the first call, and again by a call after its process has ended; ends
   * with the mount, and outlives the daemon as it does. Sizes and names may change below it at any time: ask it
   * for them anew. Rejects with a plain sentence. Absent: the mount point itself has handles.
   */
  handleFolder?(): Promise<HandleFolder>;
  /**
   * Names that wait here for good, since the remote would not give them back: a server may refuse them at its door.
   * Absent: none is known.
   */
  readonly unkeptNames?: readonly UnkeptNames[];
  /** Uploads queued files now instead of after their write-back delay, where the tool can; ends a pause. */
  flush(signal: AbortSignal): Promise<void>;
  /**
   * Uploads a file that waits, or what waits in a folder, next: without its write-back delay, without the pause
   * after a failed try, and despite a pause of uploads. Rejects with a plain sentence when nothing of it waits.
   * Absent: single files cannot be sent.
   */
  sendNow?(path: string, signal: AbortSignal): Promise<void>;
  /** What is being uploaded and what waits, in the order in which it goes. Absent: the mounter cannot tell. */
  uploadQueue?(signal: AbortSignal): Promise<readonly QueuedUpload[]>;
  /** Absent: uploads of this mount cannot be paused. */
  readonly uploadPause?: UploadPause;
  /**
   * Reads a folder's listing from the remote again, with everything below it when `recursive`. Readers and
   * figures do not wait for it; it waits for another refresh of this mount. Rejects when the signal ends it; folders
   * that could not be read are in the result.
   */
  refreshDirectories(
    path: string,
    options: { readonly recursive: boolean; readonly signal: AbortSignal },
  ): Promise<RefreshResult>;
  /**
   * Somebody asked to reconnect the share: what the remote's folder shows now is what is meant to be there, where the
   * mount took it for another one. Absent: it never does.
   */
  acceptRemote?(): void;
  /**
   * Unmounts and ends the process. Never loses a dirty file: files that were not uploaded stay in the
   * cache.
   */
  unmount(): Promise<void>;
  /**
   * Ends a mount that hangs: kills its process, aborts the connection in the kernel, clears the mount point.
   */
  kill(): Promise<void>;
  /** Absent where the mounter cannot look into the cache. Undefined while nobody can, since nothing has read yet. */
  cacheAccess?(): CacheAccess | undefined;
  /** Dirty files in this mount's own cache folder, read from the disk; works after the mount is down, too. */
  pending(): Promise<PendingFiles>;
  /** Forgets the mount without ending it, for the next daemon to adopt. */
  release(): void;
}

/** What reading from a remote has shown. */
export interface LineFigures {
  /** One listing with all that a new connection takes, in milliseconds; the best of a few. */
  readonly listingMs: number;
  /** Sizes of files that were found near the top, in bytes. */
  readonly sizes: readonly number[];
  /** Of one file, read once; absent where none is large enough to tell. */
  readonly bytesPerSecond?: number | undefined;
}

export interface MountOptions {
  readonly isUnprobed?: boolean;
}

/** Mounts remote paths. Provided by a plugin under the name `mounter`. */
/** One option of a connection; `lines`: a text of several lines, such as a key. */
export interface ConnectionOption {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'lines';
}

export interface Mounter {
  plan(spec: ShareSpec): MountPlan;
  /**
   * Resolves when the remote path can be listed. Rejects with the reason as a plain sentence, as a
   * `RemoteFailure` where it can. The signal ends it.
   */
  probe(spec: ShareSpec, signal: AbortSignal): Promise<void>;
  /**
   * Names of the folders directly below the remote path. Rejects like `probe`. Absent: folders cannot be
   * listed.
   */
  folders?(spec: ShareSpec, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Measures the line by reading, past any mount and cache; takes up to two minutes and changes nothing. Rejects
   * like `probe`. Absent: it cannot be measured.
   */
  measure?(spec: ShareSpec, signal: AbortSignal): Promise<LineFigures>;
  /**
   * Which of what a connection sends may reach somebody else, as far as its options show: plain sentences without a
   * full stop. Whoever sets it up is told. Absent: nothing is known.
   */
  doubtsOf?(connection: Pick<ConnectionConfig, 'type' | 'options'>): readonly string[];
  /** Options that connections of a type may be given by a form. Absent, or none: they are not known. */
  optionsOf?(type: string): readonly ConnectionOption[];
  /**
   * Whether this share is mounted although its remote does not answer, because what users write waits on
   * the local disk. Absent: never.
   */
  mountsWithoutRemote?(spec: ShareSpec): Promise<boolean>;
  /**
   * Whether `mount` can find out by itself that the remote path can be listed, before anybody sees the share: for one
   * that was mounted here before, from where it leads now. Absent: never.
   */
  mountsUnprobed?(spec: ShareSpec): Promise<boolean>;
  /**
   * Resolves when the kernel shows the mount and it answers; clears a stale mount point first. Rejects with
   * the reason as a plain sentence. `isUnprobed`: nobody has probed the remote path, so it rejects, too, and leaves
   * nothing mounted, unless that was listed.
   */
  mount(spec: ShareSpec, signal: AbortSignal, options?: MountOptions): Promise<Mount>;
  /** Living mounts that a former daemon left, whatever they were started with. */
  adopt(): Promise<readonly Mount[]>;
  /**
   * Dirty files of a share in every folder that its cache has ever been in; also for shares that are no
   * longer configured.
   */
  pending(shareName: string): Promise<PendingFiles>;
  /** Names of all shares that have a cache on disk. */
  cached(): Promise<readonly string[]>;
}

/** Provided under the name `rclone` by the plugin that mounts with it. */
export interface RcloneService {
  /** The program's path, or its name on the PATH. */
  readonly command: string;
}

/** What a failure shows about the remote: it has said something (no, for example), or nothing came back. */
export type RemoteEvidence = 'answers' | 'silent';

/** An error that a mounter may throw; it says what it shows about the remote. Absent: nothing. */
export interface RemoteFailure extends Error {
  readonly remote?: RemoteEvidence | undefined;
}

export type ProbeResult =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly reason: string;
      readonly remote?: RemoteEvidence | undefined;
    };

/** Decides whether a share may be mounted. Provided under the name `prober`. */
export interface Prober {
  /** Never rejects; a time-out is a failure with its reason. */
  probe(spec: ShareSpec, signal: AbortSignal): Promise<ProbeResult>;
  /**
   * Whether the mount may find out by itself, which spares the time of a probe: where that fails, the share is probed.
   * Never rejects. Absent: never.
   */
  leavesToMount?(spec: ShareSpec, signal: AbortSignal): Promise<boolean>;
}

/**
 * Refreshes folders of mounted shares, one refresh per share at a time. Provided under
 * `directoryRefresher`.
 */
export interface DirectoryRefresher {
  /**
   * Rejects with a plain sentence when the share cannot be refreshed now; folders that could not be read
   * are in the result.
   */
  refresh(shareName: string, path: string): Promise<RefreshResult>;
}
