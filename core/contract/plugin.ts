/** The contract of a plugin: its manifest, and the context that it declares itself with. */
import type { Plugin as HapiPlugin, ServerRoute } from '@hapi/hapi';
import type { Logger } from 'pino';
import type { Awaitable, Release } from './platform.ts';
import type { CliCommand } from './cli.ts';
import type { Commands } from './commands.ts';
import type { ConfigContribution } from './config.ts';
import type { Tab } from './dashboard.ts';
import type { Hooks } from './hooks.ts';
import type { MetricVerb } from './metrics.ts';
import type { Services } from './services.ts';
import type { ShareStatus, StatusRecord } from './status.ts';

/**
 * A job on a 5-field cron expression: `run` in the daemon's process, or `worker` in a worker thread of its
 * own.
 */
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
export interface Interval {
  readonly name: string;
  readonly ms: () => number;
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/**
 * All verbs but `use` and `send` declare; `use`, `send` and `config` work from activation on, inside what was
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
  /**
   * A side effect and its release: children, sockets, watchers. Acquired at activation, released last in
   * first out.
   */
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
