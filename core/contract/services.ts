/** The contract of services: what plugins provide to each other and what the core provides to all. */
import type { ConfigChanges, ConfigPresets, SetupService } from './config-changes.ts';
import type { ConfigService, Secrets } from './config.ts';
import type { TabsService } from './dashboard.ts';
import type { Exporter } from './exporter.ts';
import type { MetricsService } from './metrics.ts';
import type { DirectoryRefresher, Mounter, Prober } from './mount.ts';
import type { Clock, LogFileService, MountReader, MountTable, Paths, Processes } from './platform.ts';
import type { BandwidthService, SharesService } from './shares.ts';
import type { StatusService } from './status.ts';
import type { Uploader } from './write-layer.ts';

/** Open: what plugins provide to each other and what the core provides to all. */
export interface Services {
  clock: Clock;
  processes: Processes;
  mountTable: MountTable;
  mountReader: MountReader;
  config: ConfigService;
  /** Of the plugin `control-api`. */
  configChanges: ConfigChanges;
  /** Of the plugin `presets`. */
  configPresets: ConfigPresets;
  setup: SetupService;
  secrets: Secrets;
  status: StatusService;
  shares: SharesService;
  bandwidth: BandwidthService;
  plugins: PluginsService;
  tabs: TabsService;
  paths: Paths;
  logFile: LogFileService;
  /** Documents of the plugin that asks. */
  store: StoreService;
  metrics: MetricsService;
  mounter: Mounter;
  uploader: Uploader;
  prober: Prober;
  directoryRefresher: DirectoryRefresher;
  [exporter: `exporter:${string}`]: Exporter;
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

/** `ctx.use('store')`: each plugin sees its own documents alone. */
export interface StoreService {
  /**
   * The document of this name, `initial` where there is none yet. Names are like plugins' names. Rejects when
   * the document was written by a later version of the plugin, when `migrate` throws, or when the disk cannot
   * be read: nothing is changed then. A file that is no document any more is laid aside and named in the log.
   */
  open<T>(name: string, options: StoreOptions<T>): Promise<StoredDocument<T>>;
}

export interface StoreOptions<T> {
  /** Of the document's form, from 1 on. Raise it when what is kept is written in another way. */
  readonly version: number;
  /** JSON. */
  readonly initial: T;
  /** Makes this version's document of an earlier one's. Left out, an earlier one is taken as it is. */
  readonly migrate?: (value: unknown, version: number) => T;
}

export interface StoredDocument<T> {
  /** As it was saved last; a copy of its own at each look. */
  readonly value: T;
  /**
   * Resolves when all of it is on the disk; a loss of power leaves the former one or this one. Rejects for
   * what is not JSON, for more than 1 MiB, and when the disk refuses: the former one stays.
   */
  save(value: T): Promise<void>;
}
