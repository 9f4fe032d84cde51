/**
 * The contract of mounts: what shares need of whoever mounts, probes and refreshes them. No names of vendors.
 */
import type { ConnectionConfig, ShareConfig } from './config.ts';

/** A share together with the connection it uses. */
export interface ShareSpec {
  readonly share: ShareConfig;
  readonly connection: ConnectionConfig;
}

/** What a mount of a share would depend on. Pure function of the configuration. */
export interface MountPlan {
  readonly mountPoint: string;
  /** Equal: the active mount can stay as it is. Different: it must be mounted anew. */
  readonly fingerprint: string;
  /**
   * Names where dirty files go: connection, remote path and cache folder. While it changes, dirty files must
   * go up first.
   */
  readonly identity: string;
}

/** Figures of one active mount, fresh from its remote control. Sizes in bytes, speed in bytes per second. */
export interface MountStats {
  readonly cacheBytes: number;
  /** Files whose content is not yet on the remote: queued, uploading, or open with changes. */
  readonly dirtyFiles: number;
  /** Of those files; left out while it cannot be told for all of them. */
  readonly dirtyBytes?: number | undefined;
  /**
   * When the oldest of their changes was made, in milliseconds since the epoch; left out where nobody keeps
   * it.
   */
  readonly oldestDirtyAt?: number | undefined;
  readonly erroredFiles: number;
  readonly speed: number;
  readonly transfers: number;
  readonly errors: number;
  /** True when something is going up right now; the demand that bandwidth is divided by. */
  readonly uploading: boolean;
  /** True when something is coming down right now. Left out: any transfer may be coming down. */
  readonly downloading?: boolean;
  /**
   * Bytes that have gone up since the mount began; left out while they cannot be told from what came down.
   */
  readonly uploadedBytes?: number | undefined;
  /**
   * A plain sentence about what is wrong though the mount works, such as a full disk; undefined when nothing
   * is.
   */
  readonly trouble?: string | undefined;
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

/**
 * What came of reading folders anew: each folder counts once. Paths are relative to the share; `''` is its
 * root.
 */
export interface RefreshResult {
  readonly ok: number;
  readonly failed: readonly { readonly path: string; readonly reason: string }[];
}

export interface ServeOptions {
  /** What clients speak, such as `webdav`. */
  readonly protocol: string;
  /**
   * Where the private socket is to be: an absolute path of at most 107 bytes in a folder that nobody else may
   * enter.
   */
  readonly socket: string;
  /** Path below which the files are, decoded, with a slash before and none behind. */
  readonly baseUrl: string;
  /** `seal` waits for it, also where the tool cannot serve: no client may begin to write afterwards. */
  readonly onSeal: () => Promise<void>;
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
 * One file as the remote shows it now. `isCached`: all of it lies in the cache, as the files on the disk
 * tell.
 */
export interface CacheViewFile {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly isCached: boolean;
}

/**
 * Asked outside the daemon's process only: its calls take their time and read many small files. Paths are
 * relative to the share.
 */
export interface CacheView {
  /**
   * Bytes of unfinished files that one reader may leave behind at most: what is read ahead of it cannot be
   * called back.
   */
  readonly aheadBytes: number;
  /** A folder as the remote shows it now, asked beside the mount. */
  list(
    folder: string,
  ): Promise<{ readonly folders: readonly string[]; readonly files: readonly CacheViewFile[] }>;
  /** Lets the mount show the folder as the remote does. */
  refresh(folder: string): Promise<void>;
  isWhole(path: string, file: { readonly bytes: number; readonly modifiedMs: number }): boolean;
  /**
   * Whether so many bytes lie on the disk, though nothing says yet which: while somebody has the file open.
   */
  holds(path: string, bytes: number): boolean;
  /** What the cache may still take without giving up anything that is in it. */
  roomBytes(): Promise<number>;
  /** Files on their way now, with the bytes that have passed. `isUpload` is left out where it is not told. */
  transfers(): Promise<
    readonly { readonly path: string; readonly bytes: number; readonly isUpload?: boolean }[]
  >;
  /** Resolves with false when the mount or the remote behind it does not answer. */
  answers(): Promise<boolean>;
}

/** One active mount. All calls are bounded by the caller's signal or their own deadline. */
export interface Mount {
  readonly shareName: string;
  readonly plan: MountPlan;
  readonly rcPort: number;
  readonly pid: number;
  readonly adopted: boolean;
  /** True for an adopted mount that a former daemon had frozen: it is mounted anew to take writes again. */
  readonly isSealed?: boolean;
  /** Settles with a plain sentence when the mount's process has ended. Never rejects. */
  readonly exited: Promise<string>;
  stats(signal: AbortSignal): Promise<MountStats>;
  /**
   * A light check that the remote answers through this mount's own connection. Rejects with the reason in
   * plain words, as a `RemoteFailure` where it can.
   */
  checkRemote(signal: AbortSignal): Promise<void>;
  /** Resolves while the mount answers file system calls; rejects when it hangs or is gone. */
  checkAlive(timeoutMs: number): Promise<void>;
  setBandwidth(limit: Bandwidth, signal: AbortSignal): Promise<void>;
  /**
   * Refuses new writes from now on (read-only, or off the air where that cannot be had). Undone by unmount
   * only.
   */
  seal(): Promise<void>;
  /**
   * Serves the mount's files from inside its own process, past the kernel, on a private socket; what serves
   * there already goes on. It ends with the mount. Resolves with false where the tool cannot. Not there at
   * all: it never can.
   */
  serve?(options: ServeOptions): Promise<boolean>;
  /** Lets queued files go up now instead of after their write-back delay, where the tool can. */
  flush(signal: AbortSignal): Promise<void>;
  /**
   * Reads a folder's listing anew from the remote, with all below it when `recursive`. Neither readers nor
   * figures wait for it. Rejects when the signal ends it or another refresh of this mount is under way;
   * folders that cannot be read are in the result.
   */
  refreshDirectories(
    path: string,
    options: { readonly recursive: boolean; readonly signal: AbortSignal },
  ): Promise<RefreshResult>;
  /** Takes the mount down and ends its process. Never loses a dirty file: what is left stays in the cache. */
  unmount(): Promise<void>;
  /**
   * Ends a mount that hangs: kills its process, aborts the connection in the kernel, clears the mount point.
   */
  kill(): Promise<void>;
  /** Absent where the cache cannot be looked into. */
  cacheAccess?(): CacheAccess;
  /** Dirty files in this mount's own cache folder, read from the disk; works after the mount is down, too. */
  pending(): Promise<PendingFiles>;
  /** Lets go without touching it, for the next daemon to adopt. */
  release(): void;
}

/** Mounts remote paths. Provided by a plugin under the name `mounter`. */
export interface Mounter {
  plan(spec: ShareSpec): MountPlan;
  /**
   * Resolves when the remote path is listable. Rejects with the reason in plain words, as a `RemoteFailure`
   * where it can; ended by the signal.
   */
  probe(spec: ShareSpec, signal: AbortSignal): Promise<void>;
  /**
   * Names of the folders directly below the remote path. Rejects like `probe`. Left out: they cannot be
   * listed.
   */
  folders?(spec: ShareSpec, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Whether this share is of use while its remote is silent, since what users write waits on the local disk:
   * it is mounted then all the same. Not there at all: no share is.
   */
  mountsWithoutRemote?(spec: ShareSpec): Promise<boolean>;
  /**
   * Resolves when the kernel shows the mount and it answers; clears a stale mount point first. Rejects in
   * plain words.
   */
  mount(spec: ShareSpec, signal: AbortSignal): Promise<Mount>;
  /** Living mounts that a former daemon left, by share name, whatever they were started with. */
  adopt(): Promise<readonly Mount[]>;
  /**
   * Dirty files of a share in every folder that a cache of it has been in, whether it is still configured or
   * not.
   */
  pending(shareName: string): Promise<PendingFiles>;
  /** Names of all shares that have a cache on disk. */
  cached(): Promise<readonly string[]>;
}

/** What a failure shows about the remote: it has said something (no, for example), or nothing came back. */
export type RemoteEvidence = 'answers' | 'silent';

/**
 * What a mounter may throw: an error that says what it shows about the remote. Left out where it shows
 * nothing.
 */
export interface RemoteFailure extends Error {
  readonly remote?: RemoteEvidence | undefined;
}

export type ProbeResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly remote?: RemoteEvidence | undefined };

/** Decides whether a share may be mounted. Provided under the name `prober`. */
export interface Prober {
  /** Never rejects; a time-out is a failure with its reason. */
  probe(spec: ShareSpec, signal: AbortSignal): Promise<ProbeResult>;
}

/**
 * Reads folders of mounted shares anew, one refresh per share at a time. Provided under `directoryRefresher`.
 */
export interface DirectoryRefresher {
  /**
   * Rejects with a plain sentence when the share cannot be refreshed now; folders that cannot be read are in
   * the result.
   */
  refresh(shareName: string, path: string): Promise<RefreshResult>;
}
