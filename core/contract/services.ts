/** Contract of services: what plugins provide to each other and what the core provides to all. */
import type { ConfigChanges, ConfigPresets, NasFinder, SetupService } from './config-changes.ts';
import type { ConfigService, Secrets } from './config.ts';
import type { ConnectionMonitors } from './connections.ts';
import type { FileDownloads, TabsService } from './dashboard.ts';
import type { Exporter, ExportersService, RefusedSignInsService } from './exporter.ts';
import type { MetricsService } from './metrics.ts';
import type { Check, WebhookFormatsService } from './notifications.ts';
import type { DirectoryRefresher, Mounter, Prober, RcloneService } from './mount.ts';
import type { Clock, LogFileService, MountReader, MountTable, Paths, Processes } from './platform.ts';
import type { BandwidthService, SharesService } from './shares.ts';
import type { StatusService } from './status.ts';
import type { CertificatesService, SignInsService, WebService } from './http.ts';
import type { Uploader } from './write-layer.ts';

/** Open: what plugins provide to each other and what the core provides to all. */
export interface Services {
  clock: Clock;
  processes: Processes;
  mountTable: MountTable;
  mountReader: MountReader;
  config: ConfigService;
  /** Provided by the plugin `control-api`. */
  configChanges: ConfigChanges;
  /** Provided by the plugin `presets`. */
  configPresets: ConfigPresets;
  setup: SetupService;
  /** Provided by the plugin `discovery`. */
  nasFinder: NasFinder;
  secrets: Secrets;
  certificates: CertificatesService;
  web: WebService;
  /** Provided by the plugin `auth`. */
  signIns: SignInsService;
  /** Provided by the plugin `audit`. */
  refusedSignIns: RefusedSignInsService;
  status: StatusService;
  shares: SharesService;
  bandwidth: BandwidthService;
  plugins: PluginsService;
  pluginPackages: PluginPackages;
  exporters: ExportersService;
  tabs: TabsService;
  webhookFormats: WebhookFormatsService;
  fileDownloads: FileDownloads;
  paths: Paths;
  logFile: LogFileService;
  /** Documents of the plugin that calls it. */
  store: StoreService;
  metrics: MetricsService;
  mounter: Mounter;
  rclone: RcloneService;
  uploader: Uploader;
  prober: Prober;
  /** Of the plugin `probing`. */
  connections: ConnectionMonitors;
  directoryRefresher: DirectoryRefresher;
  [exporter: `exporter:${string}`]: Exporter;
}

export type PluginState = 'disabled' | 'waiting' | 'active' | 'failed' | 'invalid';

/**
 * What a third party's plugin asks for in its package.json: `"mountkeeper": { "permissions": [ … ] }`. Left out:
 * `read-status`, `send-commands`, `network` and `own-files`.
 */
export type Permission =
  | 'read-status'
  | 'send-commands'
  | 'hold-mounts'
  | 'network'
  | 'own-files'
  | 'files'
  | 'processes'
  | 'workers'
  | 'addons';

export interface PluginInfo {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly state: PluginState;
  /**
   * Why it is waiting, failed or invalid; of an active one, what this machine does not keep it from, and which of its
   * runs takes long. Undefined otherwise.
   */
  readonly reason: string | undefined;
  /** Labels of what is active now: effects, jobs, intervals. */
  readonly effects: readonly string[];
  /** Names of what it declares, by kind such as `routes`; absent when the plugin was not loaded. */
  readonly contributes?: readonly (readonly [kind: string, names: readonly string[]])[];
  readonly thirdParty: boolean;
  /** Where its code runs, or would: `own`, in a process of its own; `none`, inside the daemon. */
  readonly isolation: 'own' | 'shared' | 'none';
  /** What this machine does not keep its process from, though it has no permission for it; a sentence. */
  readonly notKept?: string | undefined;
  /** What its process may do beyond its permissions since it may use the network, as doctor tells it. */
  readonly everyUser?: Pick<Check, 'detail' | 'advice'> | undefined;
  /** Put there by `mountkeeper plugin install`, which can update and remove it. */
  readonly isInstalled?: boolean;
  /** It was switched off since it broke off: `enable` brings it back. */
  readonly isBrokenOff?: boolean;
  /** What a third party's plugin asks for; with the isolation `none` it may do everything, whatever it asks for. */
  readonly permissions?: readonly Permission[];
}

export interface PluginsService {
  list(): readonly PluginInfo[];
  /**
   * Brings back a plugin that was switched off since it broke off: by an error that nobody caught, or by a
   * process of its own that ended too often. False, and nothing else, for every other one.
   */
  enable(name: string): boolean;
  /**
   * Its README.md as text, also while it is off; undefined where there is none. At most 256 KiB, written by a
   * stranger perhaps: show it as text.
   */
  readme(name: string): Promise<string | undefined>;
}

/** What is to be done: a package of the registry by its name, or a plugin that was installed, by its own. */
export interface PackageOrder {
  readonly verb: 'install' | 'update' | 'remove';
  /** For `install` such as `@friend/garden` or `garden@^1`, for the others such as `garden`. */
  readonly what: string;
}

/**
 * Why nothing has begun. `off`: `plugins.install_from_page` is false; `nobody-asked`: without a password anybody could
 * ask for it; `not-admin`: it is no administrator of the page who asks; `busy`: another one is at work; `name`: this
 * is no such name; `question`: this is not what is asked now.
 */
export type PackageRefusal = 'off' | 'nobody-asked' | 'not-admin' | 'busy' | 'name' | 'question';

/** What has come of it. Texts are on one line; a stranger may have chosen them. */
export interface PackageResult {
  /** Of the plugin. */
  readonly name: string;
  /** Undefined for one that was removed. */
  readonly version?: string | undefined;
  /** The version before. */
  readonly former?: string | undefined;
  readonly package?: string | undefined;
  readonly integrity?: string | undefined;
  /** Shown by the registry, not verified; '': it shows none; undefined: it did not say, or was not asked. */
  readonly provenance?: string | undefined;
  readonly permissions: readonly Permission[];
  /** The package has scripts for its installation, which were not run. */
  readonly hasScripts: boolean;
  readonly warnings: readonly string[];
}

/** The change that is under way, or the last one since the daemon started. */
export interface PackageChange {
  readonly order: PackageOrder;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly state: 'running' | 'done' | 'failed';
  /** What the command line said last: its progress. */
  readonly said: string;
  /** Once it is done. */
  readonly result?: PackageResult;
  /** Once it has failed: the command line's own words. */
  readonly problem?: string;
  /** It has failed since somebody must agree to this first: `agree` does. */
  readonly question?: string;
}

export interface FoundPackage {
  readonly name: string;
  readonly version: string;
  readonly description: string;
}

/** The search that is under way, or the last one since the daemon started. */
export interface PackageSearch {
  readonly words: string;
  readonly state: 'running' | 'done' | 'failed';
  readonly found: readonly FoundPackage[];
  /** Once it has failed: the command line's own words. */
  readonly problem?: string;
}

/**
 * `mountkeeper plugin install`, `update`, `remove` and `search` in a process of its own, one change and one search at
 * a time. No plugin in a process of its own has it. Each call is held to what the file says then, and to who sent the
 * request that it works for.
 */
export interface PluginPackages {
  /** Why nobody may use it now. */
  readonly refusal: 'off' | 'nobody-asked' | undefined;
  readonly change: PackageChange | undefined;
  readonly search: PackageSearch | undefined;
  /** Undefined: it has begun. */
  begin(order: PackageOrder): PackageRefusal | undefined;
  /** Begins the last change again, that of `what`, which asked `question`, with a yes to that and to nothing else. */
  agree(what: string, question: string): PackageRefusal | undefined;
  /** Undefined: the search has begun. At most five words. */
  look(words: string): PackageRefusal | undefined;
}

/** `ctx.use('store')`: each plugin sees only its own documents. */
export interface StoreService {
  /**
   * Opens the document of this name; its value is `initial` when there is none yet. Names follow the rules
   * of plugin names. Rejects, and changes nothing, when a later version of the plugin wrote the document,
   * when `migrate` throws, or when the disk cannot be read. A corrupt file is moved aside and named in the
   * log.
   */
  open<T>(name: string, options: StoreOptions<T>): Promise<StoredDocument<T>>;
}

export interface StoreOptions<T> {
  /** Version of the document's format, from 1 on. Raise it when the format changes. */
  readonly version: number;
  /** Any JSON value. */
  readonly initial: T;
  /** Converts a document of an earlier version. Absent: it is used as it is. */
  readonly migrate?: (value: unknown, version: number) => T;
}

export interface StoredDocument<T> {
  /** As last saved; every read returns a new copy. */
  readonly value: T;
  /**
   * Resolves when the document is on the disk; after a power cut either the former or the new one is there.
   * Rejects for values that are not JSON, for more than 1 MiB, and when the disk refuses: the former one
   * stays.
   */
  save(value: T): Promise<void>;
}
