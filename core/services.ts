/**
 * Services that the core itself provides to every plugin through `ctx.use(name)`.
 * Shapes only; implementations live in `core/system`, `core/config` and `core/status.ts`.
 */
import type { FileHandle } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Config, Health, Notice, StatusRecord } from './api.ts';
import type { Bandwidth, Mount, MountStats, RemoteEvidence, ShareSpec } from './ports.ts';

/** Undoes one side effect. May be called once only; a rejection is logged with the effect's label. */
export type Release = () => void | Promise<void>;

/** The only source of time. Milliseconds everywhere. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Never goes backwards; for measuring spans. */
  monotonic(): number;
  /** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs `fn` once after `ms`; the returned release cancels it. The timer keeps the process alive only if `keepAlive`. */
  after(ms: number, fn: () => void, options?: { readonly keepAlive?: boolean }): () => void;
  /** A signal that aborts after `ms` with a `TimeoutError`, or with `parent`'s reason if that comes first. Its timer is freed on either. */
  deadline(ms: number, parent?: AbortSignal): AbortSignal;
}

/** What to run, and what a later daemon must know to adopt it. */
export interface ProcessSpec {
  /** Unique and stable over restarts, such as `mount/photos`. At most one process lives under a key. */
  readonly key: string;
  readonly command: string;
  /** Never put a secret here: arguments are readable by every user of the machine. */
  readonly args: readonly string[];
  /** The child's whole environment beside PATH, HOME, LANG and TZ. Kept out of records and logs. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Hash of everything the process depends on; an adopter compares it with what it would start itself. */
  readonly fingerprint: string;
  /** Kept in the record (mode 0600) for the adopter: control port, credentials, mount point. */
  readonly notes?: Readonly<Record<string, string | number>>;
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
  /** Settles within 500 ms of the end, also for an adopted process (whose `code` is then null). Never rejects. */
  readonly exited: Promise<ProcessExit>;
  isAlive(): boolean;
  /** One letter of the kernel's process state (`R S D T Z`…), or undefined when it has ended. */
  state(): string | undefined;
  signal(name: NodeJS.Signals): void;
  /** Last lines of its output. */
  tail(lines: number): Promise<readonly string[]>;
  /** Sends SIGTERM to the process, after `graceMs` SIGKILL to its whole session; resolves when it has ended. */
  stop(options: { readonly graceMs: number }): Promise<ProcessExit>;
  /** Forgets the process without ending it: the record stays for the next daemon. */
  release(): void;
}

/** Starts, adopts and stops long-lived child processes that outlive a crash of the daemon. */
export interface Processes {
  /** Rejects with a plain sentence when the command is missing or the key is taken by a living process. */
  start(spec: ProcessSpec): Promise<ManagedProcess>;
  /** The living process that a former daemon recorded under `key`: pid, start time and command line must all match. */
  adopt(key: string): Promise<ManagedProcess | undefined>;
  /** Keys of all records, living or stale, that start with `prefix`. */
  recorded(prefix: string): Promise<readonly string[]>;
  /** Runs a short command to its end. Rejects on a spawn failure or the deadline (then killed), never on the exit code. */
  run(spec: ShortCommand): Promise<ShortCommandResult>;
}

export interface ShortCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
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
}

/** What is mounted, by asking the kernel; never touches a mounted path. */
export interface MountTable {
  /** The very same list as before when nothing has changed. */
  list(): Promise<readonly MountEntry[]>;
  /** The topmost mount at exactly this path. */
  find(mountPoint: string): Promise<MountEntry | undefined>;
}

/** File work below a mount, done in helper children with a deadline whose exit is never awaited. */
export interface MountReader {
  /** Lists one directory; rejects with `TimeoutError` when the mount does not answer in time. */
  list(path: string, options: { readonly timeoutMs: number }): Promise<readonly string[]>;
  /** Resolves when the folder can be opened in time: always a call into the process behind the mount, never into the remote (which `statfs` may wait for). */
  touch(path: string, options: { readonly timeoutMs: number }): Promise<void>;
  /** Lazy unmount (`umount -l`, else `fusermount3 -uz`). Resolves also when nothing was mounted. */
  detach(path: string, options: { readonly timeoutMs: number }): Promise<void>;
  /** Aborts a FUSE connection in the kernel: every call into it ends at once. Needs root. */
  abort(deviceMinor: number): Promise<void>;
}

/** A problem in a configuration document. `path` is dotted (`shares[0].connection`), line and column count from 1. */
export interface ConfigProblem {
  readonly message: string;
  readonly path?: string;
  readonly line?: number;
  readonly column?: number;
}

export type ChangeTier = 'live' | 'protocol' | 'per-share' | 'global' | 'restart';

/**
 * Whether only the configuration file may change a key: `true`, over HTTP it stays as it is;
 * `'but-default'`, over HTTP it may also be put back to its default.
 */
export type FileOnly = boolean | 'but-default';

export interface ConfigChange {
  readonly path: string;
  readonly tier: ChangeTier;
  readonly before: unknown;
  readonly after: unknown;
}

/** All differences between two documents; `summary` is one readable text with secrets masked. */
export interface ConfigDiff {
  readonly changes: readonly ConfigChange[];
  /** The highest tier touched; undefined when nothing changed. */
  readonly tier: ChangeTier | undefined;
  readonly summary: string;
}

/** An accepted document. Frozen. */
export interface LoadedConfig {
  /** The exact text it came from. */
  readonly text: string;
  /** As written: explicit keys only, secret references kept. */
  readonly document: Readonly<Record<string, unknown>>;
  /** With every default filled in; secrets still as written (literal or reference). */
  readonly config: Config;
  readonly warnings: readonly string[];
  /** By which way it was accepted. */
  readonly origin?: ConfigOrigin;
}

/** Where a document came from. Over HTTP it may not bring in or change what only the file may say. */
export type ConfigOrigin = 'file' | 'http';

export type ConfigCheck =
  | { readonly ok: true; readonly loaded: LoadedConfig; readonly diff: ConfigDiff }
  | { readonly ok: false; readonly stage: 'parse' | 'validate'; readonly problems: readonly ConfigProblem[]; readonly message: string };

/** One documented key of the configuration; the source of help, comments and reference pages. */
export interface ConfigKey {
  /** Dotted, `[]` for arrays: `shares[].name`. */
  readonly path: string;
  readonly type: string;
  readonly description: string;
  readonly default: unknown;
  readonly tier: ChangeTier;
  readonly secret: boolean;
  readonly fileOnly: FileOnly;
  /** Name of the plugin that declares it, or `core`. */
  readonly owner: string;
}

export interface ConfigService {
  readonly file: string;
  readonly current: LoadedConfig;
  /**
   * Parses, validates and compares with the running document. Changes nothing. With `keepSecrets`, the mask stands for the secret that
   * the running document has at the same key; with it may be done what may be done with a reference, and no more.
   */
  check(text: string, origin: ConfigOrigin, options?: { readonly keepSecrets?: boolean }): Promise<ConfigCheck>;
  /**
   * Atomic: temporary file, fsync, rename; permissions and symlinks kept. Rejects with the reason and leaves the old file whole. With
   * `basis`, the running document that the text was made from: rejects when it runs no more, or the file holds what nobody has read yet.
   */
  write(text: string, basis?: LoadedConfig): Promise<void>;
  /** Commented TOML of a document: every comment is the schema's description. Explicit keys only; the rest stands commented out with its default. */
  render(document: Readonly<Record<string, unknown>>): string;
  /**
   * TOML text, by default the running one, in which secrets and notes that may hold one read as the mask; for `check` with
   * `keepSecrets`. Throws when it is no TOML.
   */
  shown(text?: string): string;
  /** All differences between two accepted documents. */
  compare(before: Config, after: Config): ConfigDiff;
  /** The running document with defaults filled in and every secret as `"********"`. */
  redacted(): Record<string, unknown>;
  keys(): readonly ConfigKey[];
}

/** A literal secret or where to find it. */
export type Secret = string | { readonly env: string } | { readonly file: string } | { readonly credential: string };

export interface Secrets {
  /** The clear text. Throws with a sentence naming the variable, file or credential that is missing. */
  resolve(secret: Secret): string;
}

/** An immutable status record. Readers never wait for a cycle. */
export interface Snapshot {
  /** Grows by one with every published change. */
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
  readonly record: StatusRecord;
}

export interface StatusService {
  readonly snapshot: Snapshot;
  /** Calls `fn` after each publication until released. Only inside an effect. */
  onPublish(fn: (snapshot: Snapshot) => void): () => void;
  /** What `collectNotices` gathered in the last cycles: for the dashboard and for people. */
  readonly notices: readonly Notice[];
}

/** Figures of a mount and when they were taken (monotonic). */
export interface TakenFigures {
  readonly stats: MountStats;
  readonly takenAtMs: number;
  /** How long the mount took to give them, in milliseconds. */
  readonly tookMs?: number | undefined;
}

/** A configured share as it is now. `mount` is undefined while it is not mounted. */
export interface LiveShare {
  readonly spec: ShareSpec;
  readonly health: Health;
  readonly mount: Mount | undefined;
  /** Whether the remote answered the last light check; undefined before the first. */
  readonly remoteAnswers: boolean | undefined;
  /** How long that check took, in milliseconds; left out while the remote does not answer. */
  readonly remoteTookMs?: number | undefined;
  /** What the check showed when it failed; left out where the mounter does not say. */
  readonly remoteEvidence?: RemoteEvidence | undefined;
  /** The mount's last figures; left out before the first. */
  readonly figures?: TakenFigures | undefined;
}

/** The supervisor's shares, for plugins that work on living mounts. A mount may end at any time: take it anew each time. */
export interface SharesService {
  list(): readonly LiveShare[];
}

/** What the mounts may use. Bytes per second; 0 is unlimited. */
export interface BandwidthState {
  /** As set by the configuration or by the last `bwlimit`. */
  readonly limit: Bandwidth;
  /** What plugins have made of it: the whole that is divided. */
  readonly effective: Bandwidth;
  /** What each mount has been given. */
  readonly shares: readonly ({ readonly share: string } & Bandwidth)[];
}

/** The daemon's one bandwidth budget as it is now. */
export interface BandwidthService {
  read(): BandwidthState;
}

export type PluginState = 'disabled' | 'waiting' | 'active' | 'failed' | 'invalid';

export interface PluginInfo {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly state: PluginState;
  /** Why it is waiting, failed or invalid; undefined otherwise. */
  readonly reason: string | undefined;
  /** Labels of what it holds now: effects, jobs, intervals. */
  readonly effects: readonly string[];
  /** Names of what it declares, by kind such as `routes`; left out where nothing of it is known. */
  readonly contributes?: readonly (readonly [kind: string, names: readonly string[]])[];
  readonly thirdParty: boolean;
}

export interface PluginsService {
  list(): readonly PluginInfo[];
}

export interface Paths {
  /** Absolute; mode 0700. */
  readonly stateDir: string;
  /** Folder of the package itself. */
  readonly packageDir: string;
}

/** The daemon's log file. A change of `log.file` waits for the restart, and so does what is read here. */
export interface LogFileService {
  /** The path that the daemon started with; empty when it keeps no log file. */
  readonly path: string;
  /**
   * For reading, the very file that lines go to now: over a rotation it is the new one from SIGHUP on.
   * The caller closes it. Rejects when there is none, it was removed, or it cannot be read.
   */
  open(): Promise<FileHandle>;
}

export type { Logger };
