/**
 * One instance of a plugin: its ledger, written by `register()`, and, once activated, its services and side
 * effects.
 */
import type { Plugin } from '../../contract/plugin.ts';
import type { Clock, Logger, Release } from '../../contract/platform.ts';
import { actAs, actAsCore, lentService, serviceOf } from './acting-plugin.ts';
import type { Actor } from './acting-plugin.ts';
import { createContext } from './context.ts';
import type { ContextRuntime } from './context.ts';
import { createRecorder, placeIn } from './ledger.ts';
import { EventGiver } from './event-giver.ts';
import type { EffectEntry, EventEntry, Ledger, ServiceEntry } from './ledger.ts';
import { PluginLog } from './plugin-log.ts';
import { startInterval, startJob } from './recurring.ts';
import type { JobScheduler, Recurring, Watched } from './recurring.ts';
import { routePrefixOf } from './route-place.ts';
import { createScope } from './scope.ts';
import type { DisposeReason, Scope, ScopeOptions } from './scope.ts';
import { sentence } from '../../platform/log/thrown.ts';
import type { StallWatch } from '../../sdk/stall-watch.ts';
import { isWithRelease } from '../../sdk/with-release.ts';

/** How long a third party's interval may go on when its plugin goes, unless it is said. */
const STOP_MS = 5_000;

/** What instances need from the host. */
export interface InstanceEnv {
  readonly clock: Clock;
  readonly log: Logger;
  readonly scheduler: JobScheduler;
  readonly limits?: Pick<ScopeOptions, 'acquireMs' | 'releaseMs'> & { readonly stopMs?: number };
  /** Lowest level that the plugin logs; undefined: the level of `log`. */
  logLevel?(plugin: string): string | undefined;
  /** Whether the plugin of this name does not come with Mountkeeper. */
  isThirdParty(plugin: string): boolean;
  /** Whether it is a third party's, and its code runs in this process. Default: no. */
  runsHere?(plugin: Plugin): boolean;
  /** A service of the core or of an active plugin, as `plugin` sees it. */
  service(name: string, plugin: string): unknown;
  send(command: string, args: readonly unknown[]): Promise<unknown>;
  /** Tells those who listen; the value has been checked. */
  give(event: EventEntry, value: unknown): void;
  /** Names what holds up everything else; nobody is held up in a process of a plugin's own. */
  readonly stalls?: StallWatch;
}

export interface Instance {
  readonly plugin: Plugin;
  readonly config: object;
  readonly ledger: Ledger;
  readonly active: boolean;
  readonly effects: readonly string[];
  /** Sentences about its runs that take long: of intervals and jobs. */
  late(): readonly string[];
  /** A service this instance provides; undefined before activation and after disposal. */
  provided(name: string): unknown;
  /**
   * Starts services and effects, once. On a failure everything that was started is released before this
   * rejects.
   */
  activate(): Promise<void>;
  /** Stops an activation in progress; an active instance is left alone. */
  cancel(reason: DisposeReason): void;
  /** Services and declarations only, without effects; for checking the machine without a daemon. */
  inspect(): void;
  /** Applies a new value of the configuration; listeners are called only while active. */
  changeConfig(next: object): void;
  /** Logs from now on what the environment's `logLevel` says. */
  takeLogLevel(): void;
  /** Makes jobs and intervals read their schedule again. */
  refresh(): Promise<void>;
  /** Never rejects: what could not be released is logged. */
  dispose(reason: DisposeReason): Promise<void>;
}

/** Makes a ledger. A plugin whose `register()` throws is invalid. */
export function declare(
  plugin: Plugin,
  runtime: ContextRuntime,
  { isThirdParty, actor }: { readonly isThirdParty: boolean; readonly actor?: Actor | undefined },
): Ledger {
  const routePrefix = isThirdParty ? routePrefixOf(plugin.name) : '';
  const recorder = createRecorder(plugin.name, { guard: plugin.guard === true, routePrefix, actor });
  const ctx = createContext(plugin.name, recorder, runtime);
  const returned: unknown = actAs(actor, () => plugin.register(ctx));
  recorder.freeze();
  if (returned instanceof Promise) {
    // What it says is of no use: it should not have returned a promise at all.
    void returned.catch(() => undefined);
    throw new Error(
      'register() must declare at once and return nothing; asynchronous work belongs into ctx.effect()',
    );
  }
  return recorder.ledger;
}

/** The ledger of a plugin, without activating anything. */
export function dryRun(plugin: Plugin, log: Logger, isThirdParty = false): Ledger {
  const idle = {
    started: false,
    config: {},
    log,
    signal: new AbortController().signal,
    made: () => undefined,
    give: () => undefined,
    use: () => undefined,
    send: async () => undefined,
  };
  return declare(plugin, idle, { isThirdParty });
}

export function createInstance(plugin: Plugin, config: object, env: InstanceEnv): Instance {
  return new ActiveInstance(plugin, config, env);
}

class ActiveInstance implements Instance {
  readonly plugin: Plugin;
  readonly ledger: Ledger;
  readonly #env: InstanceEnv;
  readonly #logging: PluginLog;
  readonly #log: Logger;
  readonly #scope: Scope;
  readonly #events: EventGiver;
  /** By what was declared: what it has made and not released. */
  readonly #made = new Map<EffectEntry | ServiceEntry, unknown>();
  /** By its name, each service as others get it. */
  readonly #provided = new Map<string, unknown>();
  readonly #recurring: Recurring[] = [];
  /** Of a third party's whose code runs in this process. */
  readonly #actor: Actor | undefined;
  #config: object;
  #started = false;
  #active = false;
  #activation: Promise<void> | undefined;

  constructor(plugin: Plugin, config: object, env: InstanceEnv) {
    this.plugin = plugin;
    this.#config = config;
    this.#env = env;
    this.#logging = new PluginLog(env.log, plugin.name);
    this.#log = this.#logging.log;
    this.takeLogLevel();
    this.#scope = createScope({ clock: env.clock, log: this.#log, ...env.limits });
    this.#events = new EventGiver({ clock: env.clock, log: this.#log, give: env.give });
    const { name } = plugin;
    if (env.runsHere?.(plugin) === true) this.#actor = { name, plugin };
    this.ledger = declare(plugin, this.#runtime(), {
      isThirdParty: env.isThirdParty(name),
      actor: this.#actor,
    });
  }

  get config(): object {
    return this.#config;
  }

  get active(): boolean {
    return this.#active;
  }

  get effects(): readonly string[] {
    return this.#scope.labels;
  }

  late(): readonly string[] {
    return this.#recurring.flatMap((one) => one.late() ?? []);
  }

  provided(name: string): unknown {
    return this.#provided.get(name);
  }

  inspect(): void {
    try {
      actAs(this.#actor, () => this.#createServices());
    } catch (error) {
      void this.dispose('failure');
      throw error;
    }
    this.#active = true;
  }

  activate(): Promise<void> {
    this.#activation ??= actAs(this.#actor, () => this.#bringUp());
    return this.#activation;
  }

  async #bringUp(): Promise<void> {
    try {
      this.#createServices();
      for (const effect of this.ledger.effects) await this.#acquire(effect);
      await this.#startRecurring();
      if (this.#scope.signal.aborted) throw new Error('it was stopped while it started');
      this.#active = true;
    } catch (error) {
      await this.dispose('failure');
      throw error;
    }
  }

  cancel(reason: DisposeReason): void {
    if (!this.#active) this.#scope.cancel(reason);
  }

  changeConfig(next: object): void {
    const previous = this.#config;
    this.#config = next;
    if (!this.#active) return;
    const failed = (error: unknown): void =>
      this.#log.error(
        { err: error ?? sentence(error) },
        'plugin failed to take over its changed configuration',
      );
    for (const listener of this.ledger.configListeners) {
      // Its type promises nothing to wait for, which an async function fits as well.
      const change = (): unknown => listener(next as never, previous as never);
      try {
        const given = actAs(this.#actor, () => this.#watched('onConfigChange', change));
        if (given instanceof Promise) given.catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  }

  takeLogLevel(): void {
    const { log, logLevel } = this.#env;
    this.#logging.setLevel(logLevel?.(this.plugin.name) ?? log.level);
  }

  async refresh(): Promise<void> {
    for (const one of this.#recurring) {
      await actAs(this.#actor, () => one.refresh()).catch((error: unknown) =>
        this.#log.error({ err: error }, 'schedule could not be changed'),
      );
    }
  }

  async dispose(reason: DisposeReason): Promise<void> {
    this.#active = false;
    this.#recurring.length = 0;
    await actAs(this.#actor, () => this.#scope.dispose(reason)).catch((error: unknown) =>
      this.#log.error({ reason, err: error }, 'plugin left something behind'),
    );
    this.#made.clear();
    this.#provided.clear();
  }

  #runtime(): ContextRuntime {
    const isStarted = (): boolean => this.#started;
    const config = (): object => this.#config;
    return {
      get started() {
        return isStarted();
      },
      get config() {
        return config();
      },
      log: this.#log,
      signal: this.#scope.signal,
      made: (entry) => this.#made.get(entry),
      give: (entry, value) => {
        if (this.#started && !this.#scope.signal.aborted) actAsCore(() => this.#events.give(entry, value));
      },
      use: (name) => this.provided(name) ?? this.#serviceOfOthers(name),
      send: (command, args) => actAsCore(() => this.#env.send(command, args)),
    };
  }

  #serviceOfOthers(name: string): unknown {
    const service = this.#env.service(name, this.plugin.name);
    return this.#actor ? lentService(service) : service;
  }

  #createServices(): void {
    this.#started = true;
    for (const entry of this.ledger.services) {
      const made = this.#watched(`service ${entry.name}`, () => entry.create());
      if (isWithRelease(made)) this.#scope.hold(`service ${entry.name}`, made.release);
      const value: unknown = Object.freeze(isWithRelease(made) ? made.value : made);
      this.#made.set(entry, value);
      this.#provided.set(entry.name, this.#actor ? serviceOf(this.#actor, value) : value);
    }
  }

  readonly #watched: Watched = (at, run) =>
    this.#env.stalls ? this.#env.stalls.call(placeIn(this.ledger, at), run) : run();

  /** What an effect has made is gone for the other verbs as soon as its release begins. */
  #acquire(effect: EffectEntry): Promise<void> {
    return this.#scope.acquire(effect.label, async (signal) => {
      const made = await this.#watched(`effect ${effect.label}`, () => effect.acquire(signal));
      if (!isWithRelease(made)) return made as Release;
      this.#made.set(effect, made.value);
      return () => {
        this.#made.delete(effect);
        return made.release();
      };
    });
  }

  async #startRecurring(): Promise<void> {
    const { clock, scheduler } = this.#env;
    const { signal } = this.#scope;
    const isStranger = this.#env.isThirdParty(this.plugin.name);
    const stopMs = this.#env.limits?.stopMs ?? STOP_MS;
    const watched = this.#watched;
    const options = { clock, log: this.#log, signal, watched, ...(isStranger && { stopMs }) };
    const keep = (label: string, begin: () => Recurring | Promise<Recurring>): Promise<void> =>
      this.#scope.acquire(label, async () => {
        const one = await begin();
        this.#recurring.push(one);
        return () => one.release();
      });
    for (const interval of this.ledger.intervals)
      await keep(`every ${interval.name}`, () => startInterval(interval, options));
    for (const job of this.ledger.jobs)
      await keep(`job ${job.name}`, () => startJob(job, { ...options, plugin: this.plugin.name, scheduler }));
  }
}
