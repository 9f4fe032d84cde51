/** The contract of what the machine offers: time, processes, mounts, folders, the log. */
import type { FileHandle } from 'node:fs/promises';

export type { Logger } from 'pino';

/** The only source of time. Milliseconds everywhere. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Never goes backwards; for measuring spans. */
  monotonic(): number;
  /** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Runs `fn` once after `ms`; the returned release cancels it. The timer keeps the process alive only if
   * `keepAlive`.
   */
  after(ms: number, fn: () => void, options?: { readonly keepAlive?: boolean }): () => void;
  /**
   * A signal that aborts after `ms` with a `TimeoutError`, or with `parent`'s reason if that comes first. Its
   * timer is freed on either.
   */
  deadline(ms: number, parent?: AbortSignal): AbortSignal;
}

/** What to run, and what a later daemon must know to adopt it. */
export interface ProcessSpec {
  /** Unique and stable over restarts, such as `mount/photos`. At most one process lives under a key. */
  readonly key: string;
  readonly command: string;
  /** Never put a secret here: arguments are readable by every user of the machine. */
  readonly args: readonly string[];
  /** The child's environment in addition to PATH, HOME, LANG and TZ. Kept out of records and logs. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Hash of everything the process depends on; an adopter compares it with what it would start itself. */
  readonly fingerprint: string;
  /** Kept in the record (mode 0600) for the adopter: control port, credentials, mount point. */
  readonly notes?: Readonly<Record<string, string | number>>;
  /** What it is left with; undefined: all that the daemon may. See `leastRights`. */
  readonly rights?: ProcessRights | undefined;
  /**
   * Folders that are opened for it, as descriptors 4, 5 and so on: it reaches what lies in them by
   * `/proc/self/fd/4/…`, though it may not walk down to them by itself. Without links.
   */
  readonly folders?: readonly string[];
  /** A folder that no other process may lock for as long as this one lives, whichever daemon started it. */
  readonly lock?: FolderLock;
}

export interface FolderLock {
  readonly folder: string;
  /** The sentence with which the start is refused where another process has it. */
  readonly taken: string;
}

/** A user of this machine, and her group. */
export interface ServiceUser {
  readonly uid: number;
  readonly gid: number;
}

/** What a child of a root daemon is left with; what it starts gets no more (`no_new_privs`). */
export interface ProcessRights {
  /** Undefined: the daemon's own user. */
  readonly user?: ServiceUser | undefined;
  /** In lower case and without `cap_`, such as `net_bind_service`. */
  readonly capabilities: readonly string[];
}

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Last lines the process wrote, newest last; empty if none. */
  readonly lastLines: readonly string[];
}

/** A process in its own session whose output goes to a file, started or adopted by this daemon. */
export interface ManagedProcess {
  readonly key: string;
  readonly pid: number;
  readonly fingerprint: string;
  readonly notes: Readonly<Record<string, string | number>>;
  readonly adopted: boolean;
  readonly logFile: string;
  /**
   * Settles within 500 ms of the end, also for an adopted process (whose `code` is then null). Never rejects.
   */
  readonly exited: Promise<ProcessExit>;
  isAlive(): boolean;
  /** One letter of the kernel's process state (`R S D T Z`…), or undefined when it has ended. */
  state(): string | undefined;
  signal(name: NodeJS.Signals): void;
  /** Last lines of its output. */
  tail(lines: number): Promise<readonly string[]>;
  /**
   * Sends SIGTERM to the process, after `graceMs` SIGKILL to its whole session; resolves when it has ended.
   */
  stop(options: { readonly graceMs: number }): Promise<ProcessExit>;
  /** Forgets the process without ending it: the record stays for the next daemon. */
  release(): void;
}

/** Starts, adopts and stops long-lived child processes that outlive a crash of the daemon. */
export interface Processes {
  /** Rejects with a plain sentence when the command is missing or the key is taken by a living process. */
  start(spec: ProcessSpec): Promise<ManagedProcess>;
  /**
   * The living process that a former daemon recorded under `key`: pid, start time and command line must all
   * match.
   */
  adopt(key: string): Promise<ManagedProcess | undefined>;
  /** Keys of all records, living or stale, that start with `prefix`. */
  recorded(prefix: string): Promise<readonly string[]>;
  /**
   * Runs a short command to its end. Rejects on a spawn failure or the deadline (then killed), never on the
   * exit code.
   */
  run(spec: ShortCommand): Promise<ShortCommandResult>;
}

export interface ShortCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A function is called as soon as the command has written something to its output: it is ready then. */
  readonly input?: string | (() => string | Promise<string>);
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Of a child of a root daemon: it has these alone, in lower case and without `cap_`. Undefined: as the daemon. */
  readonly capabilities?: readonly string[] | undefined;
  /** Bytes of each stream that are kept, the last ones; default 1 MiB. */
  readonly maxOutputBytes?: number;
}

export interface ShortCommandResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One line of `/proc/self/mountinfo`. */
export interface MountEntry {
  readonly mountPoint: string;
  readonly fsType: string;
  readonly source: string;
  /** Minor of the anonymous device: the name of the connection under `/sys/fs/fuse/connections`. */
  readonly deviceMinor: number;
  readonly readOnly: boolean;
  /** The kernel's number of the mount, and of the one in which its mount point lies. Absent: not known. */
  readonly id?: number;
  readonly parentId?: number;
}

/** What is mounted, by asking the kernel; never touches a mounted path. */
export interface MountTable {
  /** Returns the same array as before when nothing has changed. */
  list(): Promise<readonly MountEntry[]>;
  /** The topmost mount at exactly this path. */
  find(mountPoint: string): Promise<MountEntry | undefined>;
}

/** File work below a mount, done in helper children with a deadline whose exit is never awaited. */
export interface MountReader {
  /** Lists one directory; rejects with `TimeoutError` when the mount does not answer in time. */
  list(path: string, options: { readonly timeoutMs: number }): Promise<readonly string[]>;
  /**
   * Resolves when the folder can be opened in time: this asks the process behind the mount and never the
   * remote (`statfs` may wait for the remote).
   */
  touch(path: string, options: { readonly timeoutMs: number }): Promise<void>;
  /** Lazy unmount (`umount -l`, else `fusermount3 -uz`). Resolves also when nothing was mounted. */
  detach(path: string, options: { readonly timeoutMs: number }): Promise<void>;
  /** Aborts a FUSE connection in the kernel: every call into it ends at once. Needs root. */
  abort(deviceMinor: number): Promise<void>;
  /** How many calls into a FUSE connection have no answer yet; 0 for one that has ended. Needs root. */
  waiting(deviceMinor: number): Promise<number>;
}

export interface Paths {
  /** Absolute; mode 0700. */
  readonly stateDir: string;
  /** Folder of the package itself. */
  readonly packageDir: string;
}

/** The daemon's log file, as opened at the start. A change of `log.file` needs a restart. */
export interface LogFileService {
  /** The path that the daemon started with; empty when it keeps no log file. */
  readonly path: string;
  /**
   * Opens the file that lines are written to now for reading; after a rotation that is the new file as soon
   * as SIGHUP has come. The caller closes it. Rejects when there is none, it was removed, or it cannot be
   * read.
   */
  open(): Promise<FileHandle>;
}

export type Awaitable<T> = T | Promise<T>;

/** Undoes one side effect. May be called once only; a rejection is logged with the effect's label. */
export type Release = () => void | Promise<void>;
