/** Contract of a plugin: its manifest, and the context with which it declares what it does. */
import type { Plugin as HapiPlugin, ServerRoute } from '@hapi/hapi';
import type { Logger } from 'pino';
import type { Awaitable, Release } from './platform.ts';
import type { CliCommand } from './cli.ts';
import type { Commands, EventDeclaration, Events, GiveEvent } from './commands.ts';
import type { ConfigContribution } from './config.ts';
import type { Tab } from './dashboard.ts';
import type { Hooks } from './hooks.ts';
import type { MetricVerb } from './metrics.ts';
import type { WebhookFormat } from './notifications.ts';
import type { Services } from './services.ts';
import type {
  PluginField,
  PluginShareField,
  ShareStatus,
  ShareStatusFields,
  StatusField,
  StatusRecord,
} from './status.ts';

/** A job on a 5-field cron expression: `run` in the daemon's process, or `worker` in a worker thread. */
export interface Job {
  readonly name: string;
  /** Read at each (re)activation; an empty string switches the job off. */
  readonly cron: () => string;
  readonly timezone?: () => string | undefined;
  readonly run?: (signal: AbortSignal) => Promise<void>;
  /** Absolute path of an ES module for work that would block. */
  readonly worker?: { readonly file: string; readonly data?: unknown };
}

/** Runs `run` again `ms()` milliseconds after its last end; never twice at once. */
export interface Interval {
  readonly name: string;
  readonly ms: () => number;
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** A value together with what undoes it, as `withRelease` makes it. */
export interface WithRelease<T> {
  readonly value: T;
  readonly release: Release;
}

/**
 * What a verb's function has made: undefined before the plugin comes up, and once its release has begun.
 */
export type Made<T> = () => T | undefined;

/**
 * All verbs but `use`, `find` and `send` declare; these and `config` work from activation on, inside what was
 * declared.
 */
export interface PluginContext<C extends object = object> {
  /** The applied value of the plugin's own section. */
  readonly config: Readonly<C>;
  readonly log: Logger;
  /**
   * Aborted at disposal; reason: 'reload', 'disable', 'shutdown', 'handover' (leave children running) or
   * 'failure'.
   */
  readonly signal: AbortSignal;
  tap<K extends keyof Hooks>(
    hook: K,
    fn: (...args: Hooks[K]['args']) => Awaitable<Hooks[K]['result']>,
    stage?: number,
  ): void;
  handle<K extends keyof Commands>(
    command: K,
    fn: (...args: Commands[K]['args']) => Promise<Commands[K]['result']>,
  ): void;
  /** Without a default, the field is left out while the plugin is off. */
  status<K extends PluginField>(
    field: K,
    declared: StatusField<StatusRecord[K]> | (() => StatusRecord[K]),
  ): void;
  /** Without defaults, a field belongs to the first plugin that gives it. */
  shareStatus<K extends PluginShareField>(
    declared: ShareStatusFields<K> | ((share: string) => Partial<Pick<ShareStatus, K>>),
  ): void;
  route(...routes: ServerRoute[]): void;
  /** A native hapi plugin, registered again in every HTTP generation. */
  hapi<T>(plugin: HapiPlugin<T>, options: T): void;
  tab(tab: Tab): void;
  cli(command: CliCommand): void;
  /** How receivers of webhooks are told. */
  webhookFormat(format: WebhookFormat): void;
  /** Counted and observed metrics return their counter or histogram. */
  metric: MetricVerb;
  /** An event that other plugins can listen to. Returns the function that gives it. */
  event<K extends keyof Events>(declared: EventDeclaration<K>): GiveEvent<K>;
  /**
   * Listens to an event, by its full name; the plugin that gives it may come later, or never. Events come one after
   * the other, in the order in which they were given; `fn` has 5 seconds.
   */
  on<K extends keyof Events>(event: K, fn: (value: Events[K]) => Awaitable<void>): void;
  /**
   * `create` runs first of all when the plugin comes up. It may return `withRelease(service, release)`: then
   * the service is released after all effects, within their time.
   */
  provide<K extends keyof Services, S extends Services[K]>(
    name: K,
    create: () => S | WithRelease<S>,
  ): Made<S>;
  job(job: Job): void;
  every(interval: Interval): void;
  /**
   * A side effect and its release: child processes, sockets, watchers. Acquired at activation, released
   * last in, first out.
   */
  effect(label: string, acquire: (signal: AbortSignal) => Awaitable<Release>): void;
  /** One whose value the plugin's other verbs work with. */
  effect<T>(label: string, acquire: (signal: AbortSignal) => Awaitable<WithRelease<T>>): Made<T>;
  /** Called when only live keys of the own section changed. */
  onConfigChange(fn: (next: C, previous: C) => void): void;
  /** Throws when nobody provides the service: name it in `requires`. */
  use<K extends keyof Services>(name: K): Services[K];
  /** A service that the plugin can do without; undefined while nobody provides it. */
  find<K extends keyof Services>(name: K): Services[K] | undefined;
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
  /**
   * True for a plugin that authenticates clients: while it is enabled but not active, every route answers
   * 503.
   */
  readonly guard?: boolean;
  /** Off unless `[plugins.<name>] enabled = true`. In-tree plugins are on by default. */
  readonly enabledByDefault?: boolean;
  /** Synchronous and pure: declares, does nothing. Called any number of times. */
  register(ctx: PluginContext<C>): void;
}
