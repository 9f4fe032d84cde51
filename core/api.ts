/**
 * The public contract: everything a plugin may use, in-tree or from a stranger.
 * The interfaces marked "open" are extended by declaration merging (`declare module 'mountkeeper' { … }`).
 */
import type { Plugin as HapiPlugin, ServerRoute } from '@hapi/hapi';
import type { CliCommand } from './api-cli.ts';
import type { Config, ConfigContribution } from './api-config.ts';
import type { Health, ShareStatus, StatusRecord } from './api-status.ts';
import type { Bandwidth, DirectoryRefresher, Exporter, Mounter, Prober, RemoteEvidence } from './ports.ts';
import type { ConfigChanges, ConfigPresets } from './contract/config-changes.ts';
import type { SetupService } from './contract/setup.ts';
import type { Tab, TabsService } from './contract/dashboard.ts';
import type { MetricsService, MetricVerb } from './contract/metrics.ts';
import type { StoreService } from './contract/store.ts';
import type { Uploader } from './contract/write-layer.ts';
import type {
  BandwidthService, Clock, ConfigDiff, ConfigService, LoadedConfig, LogFileService, Logger, MountReader, MountTable, Paths,
  PluginsService, Processes, Release, Secrets, SharesService, Snapshot, StatusService,
} from './services.ts';

export { default as Joi } from 'joi';
export { default as Boom } from '@hapi/boom';
export type * from './api-cli.ts';
export type * from './api-config.ts';
export type * from './api-http.ts';
export type * from './api-status.ts';
export type * from './ports.ts';
export type * from './services.ts';
export type * from './contract/config-changes.ts';
export type * from './contract/dashboard.ts';
export type * from './contract/metrics.ts';
export type * from './contract/store.ts';
export type * from './contract/setup.ts';
export type * from './contract/write-layer.ts';
export { Fragment, h, html } from './html.ts';
export { editToml, readToml } from './config/edit.ts';
export type { TomlEdit } from './config/edit.ts';
export { durationMs, formatBytes, formatDuration, formatRate, rateBytes, sizeBytes } from './config/units.ts';
export { documented } from './http/documented.ts';
export type { RouteDocument } from './http/documented.ts';
export { isLoopback } from './http/address.ts';
export { isFromCommandSocket } from './http/command-socket.ts';
export { duration, filePath, onlyInFile, rate, secret, size, MASK } from './config/types.ts';
export { cronProblem } from './system/cron.ts';
export { createClock } from './system/clock.ts';
export { keepServer } from './system/kept-server.ts';
export type { KeptServer, KeptServerOptions } from './system/kept-server.ts';
export { addressProblem, askOnce, ownAddress, portProblem } from './system/server-address.ts';
export type { AddressOrigin, Question, ServerAddress } from './system/server-address.ts';
export { exporterOf, provideExporter } from './system/serving-exporter.ts';
export type { ExporterParts, ExporterTools, ExporterWiring, ServingExporter } from './system/serving-exporter.ts';
export { showShares } from './system/shown-shares.ts';
export type { ShownShares, ShownSharesOptions } from './system/shown-shares.ts';
export {
  addressKey, clientAddress, ConnectionPool, CredentialDigest, parseBasicCredentials, Throttle, trustedProxies,
} from './sdk/index.ts';
export type {
  Attempt, BasicCredentials, ConnectionPoolOptions, ThrottleOptions, TrustedProxies, Verdict,
} from './sdk/index.ts';
export { makeFolder } from './system/make-folder.ts';
export { inEveryLanguage, readTexts } from './system/texts.ts';
export type { Texts } from './system/texts.ts';
export { writeWhole } from './system/whole-file.ts';
export { eventStream } from './http/event-stream.ts';
export type { EventSink, EventStreamOptions, StreamEvent } from './http/event-stream.ts';

export type Awaitable<T> = T | Promise<T>;

// ---------------------------------------------------------------- commands, hooks, services

/** Something that people should hear of, wherever they are. */
export interface NotificationEvent {
  /** Dotted, such as `nas.offline`. */
  readonly type: string;
  readonly severity: 'info' | 'warning' | 'error';
  /** One plain sentence. */
  readonly message: string;
  /** Names and figures for machines; never a secret. */
  readonly data: Readonly<Record<string, string | number | boolean | null>>;
  /** Events with equal keys are delivered once. */
  readonly key: string;
}

/** Open: what can be sent to the supervisor. `send` resolves when the command is accepted, not when it is done. */
export interface Commands {
  reload: { args: [next: LoadedConfig]; result: void };
  /** Texts as they came; a value that cannot be read is logged and changes nothing. */
  bwlimit: { args: [limit: { up: string; down: string }]; result: void };
  reconnect: { args: [share: string]; result: void };
  /** For whoever delivers notifications: the one plugin that handles it, and all that tap the hook `notification`. */
  notify: { args: [event: NotificationEvent]; result: void };
}

export interface Notice {
  readonly level: 'info' | 'warning' | 'error';
  readonly message: string;
}

/** One line of `mountkeeper doctor`. `advice` says what to do and is empty when all is well. */
export interface Check {
  readonly title: string;
  readonly result: 'ok' | 'warning' | 'error';
  readonly detail: string;
  readonly advice: string;
}

/**
 * The closed catalogue of hooks. `before…` may veto (a returned string is the reason), `after…` and `…Changed` observe,
 * `resolve…` transform their argument synchronously, `collect…` gather lists.
 */
export interface Hooks {
  /** Asked after a successful probe, before each mount. The reason given is shown as why the share failed. */
  beforeMount: { args: [share: string]; result: string | undefined };
  /** A share is mounted, or was adopted from a former daemon. */
  afterMount: { args: [share: string]; result: void };
  /** A mount is gone: taken down, dead or killed because it hung. */
  afterUnmount: { args: [share: string]; result: void };
  /** A share went from one health to another; `reason` is set when it failed, `remote` when that shows something about the remote. */
  shareHealthChanged: { args: [change: { share: string; from: Health; to: Health; reason: string | null; remote?: RemoteEvidence | undefined }]; result: void };
  /** Asked about every valid document that differs from the running one, from the file or over HTTP. The reason given refuses it. */
  beforeReload: { args: [next: LoadedConfig, diff: ConfigDiff]; result: string | undefined };
  /** A document has been applied. */
  afterReload: { args: [next: LoadedConfig, diff: ConfigDiff]; result: void };
  /** People should hear of something: every plugin that delivers such events does it here, each in its own way. */
  notification: { args: [event: NotificationEvent]; result: void };
  /** A cycle of the supervisor has ended; `tookMs` is how long it took. Whoever is slow misses cycles. */
  afterCycle: { args: [snapshot: Snapshot, tookMs?: number]; result: void };
  /** Changes the whole budget before it is divided over the shares. Called at every division: must be quick. */
  resolveBandwidth: { args: [budget: Bandwidth]; result: Bandwidth };
  /** What the daemon has to say to people. Gathered in every cycle. */
  collectNotices: { args: []; result: readonly Notice[] };
  /** Lines of `mountkeeper doctor`. Called without any other effect of the plugin being up. */
  collectChecks: { args: [config: Config]; result: readonly Check[] };
}

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

// ---------------------------------------------------------------- plugins

/** A job on a 5-field cron expression: `run` in the daemon's process, or `worker` in a worker thread of its own. */
export interface Job {
  readonly name: string;
  /** Read at each (re)activation; an empty string switches the job off. */
  readonly cron: () => string;
  readonly timezone?: () => string | undefined;
  readonly run?: (signal: AbortSignal) => Promise<void>;
  /** Absolute path of an ES module for work that would block. */
  readonly worker?: { readonly file: string; readonly data?: unknown };
}

/** `run` again `ms()` after its last end; never two at once. */
export interface Interval { readonly name: string; readonly ms: () => number; readonly run: (signal: AbortSignal) => Promise<void> }

/** All verbs but `use` and `send` declare; `use`, `send` and `config` work from activation on, inside what was declared. */
export interface PluginContext<C extends object = object> {
  /** The applied value of the plugin's own section. */
  readonly config: Readonly<C>;
  readonly log: Logger;
  /** Aborted at disposal; reason: 'reload', 'disable', 'shutdown', 'handover' (leave children running) or 'failure'. */
  readonly signal: AbortSignal;
  tap<K extends keyof Hooks>(hook: K, fn: (...args: Hooks[K]['args']) => Awaitable<Hooks[K]['result']>, stage?: number): void;
  handle<K extends keyof Commands>(command: K, fn: (...args: Commands[K]['args']) => Promise<Commands[K]['result']>): void;
  status<K extends keyof StatusRecord>(field: K, read: () => StatusRecord[K]): void;
  shareStatus(read: (share: string) => Partial<ShareStatus>): void;
  route(...routes: ServerRoute[]): void;
  /** A native hapi plugin, registered anew in every HTTP generation. */
  hapi<T>(plugin: HapiPlugin<T>, options: T): void;
  tab(tab: Tab): void;
  cli(command: CliCommand): void;
  /** Counted and observed metrics return what they are counted or observed with. */
  metric: MetricVerb;
  provide<K extends keyof Services>(name: K, create: () => Services[K]): void;
  job(job: Job): void;
  every(interval: Interval): void;
  /** A side effect and its release: children, sockets, watchers. Acquired at activation, released last in first out. */
  effect(label: string, acquire: (signal: AbortSignal) => Awaitable<Release>): void;
  /** Called when only live keys of the own section changed. */
  onConfigChange(fn: (next: C, previous: C) => void): void;
  /** Throws when nobody provides the service: name it in `requires`. */
  use<K extends keyof Services>(name: K): Services[K];
  send<K extends keyof Commands>(command: K, ...args: Commands[K]['args']): Promise<Commands[K]['result']>;
}

export interface Plugin<C extends object = object> {
  /** Kebab-case; the folder's name, the log field and the hapi realm. */
  readonly name: string;
  readonly version: string;
  /** Raised only by a breaking change of this file. */
  readonly apiVersion: 1;
  readonly description: string;
  /** Services, never plugins. */
  readonly requires?: readonly (keyof Services)[];
  readonly config?: ConfigContribution<C>;
  /** True for a plugin that guards the door: while it is enabled but not active, every route answers 503. */
  readonly guard?: boolean;
  /** Off unless `[plugins.<name>] enabled = true`. In-tree plugins are on by default. */
  readonly enabledByDefault?: boolean;
  /** Synchronous and pure: declares, does nothing. Called any number of times. */
  register(ctx: PluginContext<C>): void;
}

/** Types the context by the plugin's configuration. Returns its argument. */
export function definePlugin<C extends object>(plugin: Plugin<C>): Plugin<C> {
  return plugin;
}
