/**
 * The plugin host: one change of the plugin set at a time. Declare all, project all, swap in one go, dispose
 * what was replaced (last in first out), activate what is new. One plugin's failure is that plugin's state,
 * never the others' outage.
 */
import type { Commands } from '../contract/commands.ts';
import type { Config, ConfigDiff, LoadedConfig } from '../contract/config.ts';
import type { Plugin } from '../contract/plugin.ts';
import type { PluginInfo, Services } from '../contract/services.ts';
import { createHooks } from './hooks.ts';
import type { HookRunner } from './hooks.ts';
import type { StrangerPlugins } from '../config/checks/third-party.ts';
import type { Clock, Logger } from '../contract/platform.ts';
import { activateMembers, inspectMembers } from './activate.ts';
import { pluginToBlame } from './blame.ts';
import { discoverPlugins } from './discovery/discover.ts';
import { compareFound, entryOf } from './discovery/found.ts';
import type { ContributionEntry, FoundPlugin } from './discovery/found.ts';
import { createInstance } from './instance/instance.ts';
import type { Instance, InstanceEnv } from './instance/instance.ts';
import { createLatestQueue } from '../sdk/latest.ts';
import { isEmptyLedger } from './instance/ledger.ts';
import type { Ledger, Projector } from './instance/ledger.ts';
import { ledgersOf, planMembers, restartDependants, sentence } from './members.ts';
import type { ChangeRequest, MakeInstance, Member, Members } from './members.ts';
import { describeMember, reportStates } from './plugin-info.ts';
import { isEnabled } from './instance/own-config.ts';
import { buildMembers, createBuilder } from './projections.ts';
import type { Build, Builder } from './projections.ts';
import type { JobScheduler } from './instance/recurring.ts';
import type { DisposeReason } from './instance/scope.ts';
import { StoreRoom } from './instance/store.ts';
import { sweepStage } from './discovery/stage.ts';
import { createSerialQueue } from '../platform/serial-queue.ts';

export type { ContributionEntry } from './discovery/found.ts';

export interface PluginHostOptions {
  readonly dirs: { readonly inTree: string };
  /** The sentence why no plugin of a third party is loaded. */
  readonly strangersOff?: string;
  /** The core's own services; `plugins` and `tabs` are added by the host. */
  readonly services: Partial<Services>;
  readonly projectors: readonly Projector[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly scheduler: JobScheduler;
  readonly send: <K extends keyof Commands>(command: K, ...args: Commands[K]['args']) => Promise<void>;
  /** Deadlines in milliseconds, for tests. */
  readonly limits?: {
    readonly acquireMs?: number;
    readonly releaseMs?: number;
    readonly hookMs?: number;
    readonly importMs?: number;
  };
}

type Handler<K extends keyof Commands> = (...args: Commands[K]['args']) => Promise<Commands[K]['result']>;

export interface PluginHost {
  /**
   * Reads the folders again; third-party plugins that are on are staged by content hash. Takes effect with
   * the next `apply`.
   */
  discover(request: DiscoveryRequest): Promise<void>;
  /**
   * Whether a plugin that does not come with the package is on or off now and was not when the folders were
   * read.
   */
  isStale(enabled: ReadonlySet<string>): boolean;
  /** Third parties' plugins as the configuration's checks see them. */
  readonly strangers: StrangerPlugins;
  entries(): readonly ContributionEntry[];
  /**
   * One change at a time; a burst becomes one with the latest document. Rejects only when nothing could be
   * changed.
   */
  apply(next: LoadedConfig, diff?: ConfigDiff): Promise<void>;
  /**
   * Takes a third party's plugin out in whose code an error began that nobody caught; it comes back when its
   * files change or it is switched off and on. Its name; undefined when it is nobody's, or the core's.
   */
  condemn(error: unknown): string | undefined;
  /** Enabled plugins with their services and hooks, but without any effect: what `doctor` looks through. */
  inspect(next: LoadedConfig): Promise<void>;
  /** Ledgers of all usable plugins, written without activation. */
  dryRun(): readonly Ledger[];
  /** Ledgers of the active plugins. */
  ledgers(): readonly Ledger[];
  service<K extends keyof Services>(name: K): Services[K] | undefined;
  services(prefix: string): readonly (readonly [string, unknown])[];
  readonly hooks: HookRunner;
  handlers<K extends keyof Commands>(command: K): readonly Handler<K>[];
  list(): readonly PluginInfo[];
  /** Disposes everything, last in first out. With 'handover', releases know to leave children running. */
  stop(reason: 'shutdown' | 'handover'): Promise<void>;
}

export function createPluginHost(options: PluginHostOptions): PluginHost {
  const { dirs, log, limits, strangersOff } = options;
  return createHost(options, (request) =>
    discoverPlugins({
      ...request,
      ...(strangersOff !== undefined && { strangersOff }),
      inTree: dirs.inTree,
      log,
      importMs: limits?.importMs ?? 10_000,
    }),
  );
}

export interface DiscoveryRequest {
  readonly thirdPartyDirs: readonly string[];
  readonly stateDir: string;
  /** Names of plugins that the configuration switches on: of third parties' plugins, no other is imported. */
  readonly enabled: ReadonlySet<string>;
}

/** Gives a host its plugins: the daemon's reads folders, a test's has them at hand. */
export type Discovery = (request: DiscoveryRequest) => Promise<readonly FoundPlugin[]>;

export function createHost(options: PluginHostOptions, discovery: Discovery): PluginHost {
  return new Host(options, discovery);
}

class Host implements PluginHost {
  readonly hooks: HookRunner;
  readonly #options: PluginHostOptions;
  readonly #discovery: Discovery;
  readonly #coreServices: Readonly<Record<string, unknown>>;
  readonly #hookProjector: Projector;
  readonly #builder: Builder;
  readonly #env: InstanceEnv;
  readonly #queue = createLatestQueue<Config>((config) => this.#change(config));
  #found: readonly FoundPlugin[] = [];
  #members: Members = new Map();
  #projected: readonly Ledger[] | undefined;
  /** Up or coming up, in the order in which that began; disposal goes backwards. */
  #instances: readonly Instance[] = [];
  #reported: readonly PluginInfo[] = [];
  #stopping = false;
  readonly #discoveries = createSerialQueue();
  #lastConfig: Config | undefined;
  readonly #condemned = new Map<Plugin, string>();
  #lastDiscovery: DiscoveryRequest = { thirdPartyDirs: [], stateDir: '', enabled: new Set() };

  constructor(options: PluginHostOptions, discovery: Discovery) {
    const { clock, log, scheduler, limits = {} } = options;
    this.#options = options;
    this.#discovery = discovery;
    const tabs = {
      list: () => this.ledgers().flatMap(({ plugin, tabs: own }) => own.map((tab) => ({ plugin, tab }))),
    };
    const store = new StoreRoom({ stateDir: options.services.paths?.stateDir ?? '', clock, log });
    this.#coreServices = { plugins: { list: () => this.list() }, tabs, store, ...options.services };
    // Everybody holds the same objects: nobody puts his own function into another's hands.
    for (const service of Object.values(this.#coreServices)) Object.freeze(service);
    const hooks = createHooks({ clock, log, timeoutMs: limits.hookMs ?? 5_000 });
    this.hooks = hooks.runner;
    this.#hookProjector = hooks.projector;
    this.#builder = createBuilder({
      projectors: [hooks.projector, ...options.projectors],
      clock,
      isActive: this.#isActive,
    });
    this.#env = {
      clock,
      log,
      scheduler,
      limits,
      // The one service that is another for each.
      service: (name, plugin) => (name === 'store' ? store.of(plugin) : this.#service(name)),
      send: (command, args) => options.send(command as keyof Commands, ...(args as never)),
    };
  }

  /** One after the other, so that what was found belongs to the request that came last. */
  discover(request: DiscoveryRequest): Promise<void> {
    this.#lastDiscovery = request;
    return this.#discoveries.run(async () => {
      this.#found = [...(await this.#discovery(request))].sort(compareFound);
    });
  }

  isStale(enabled: ReadonlySet<string>): boolean {
    const last = this.#lastDiscovery;
    const names = new Set([...enabled, ...last.enabled]);
    const isOurs = (name: string): boolean => this.#found.some((one) => one.name === name && !one.thirdParty);
    return (
      last.thirdPartyDirs.length > 0 &&
      [...names].some((name) => enabled.has(name) !== last.enabled.has(name) && !isOurs(name))
    );
  }

  get strangers(): StrangerPlugins {
    return {
      comesWithUs: (name) => this.#found.some((one) => one.name === name && !one.thirdParty),
      load: async (names) => {
        const isDormant = ({ name, plugin, problem }: FoundPlugin): boolean =>
          !plugin && problem === undefined && names.includes(name);
        if (!this.#found.some(isDormant)) return;
        await this.discover({
          ...this.#lastDiscovery,
          enabled: new Set([...this.#lastDiscovery.enabled, ...names]),
        });
      },
    };
  }

  entries(): readonly ContributionEntry[] {
    return this.#found.flatMap(entryOf);
  }

  apply(next: LoadedConfig): Promise<void> {
    this.#lastConfig = next.config;
    return this.#queue.push(next.config);
  }

  condemn(error: unknown): string | undefined {
    const folders = this.#found.flatMap((one) =>
      one.plugin && one.stagedFolder !== undefined ? [[one.name, one.stagedFolder] as const] : [],
    );
    const name = pluginToBlame(error, new Map(folders));
    const plugin = this.#found.find((one) => one.name === name)?.plugin;
    if (name === undefined || !plugin || !this.#lastConfig) return undefined;
    this.#condemned.set(
      plugin,
      `it broke off with an error that nobody caught: ${sentence(error)}; mend it, or switch it off and on`,
    );
    this.#lookAgain();
    return name;
  }

  async inspect(next: LoadedConfig): Promise<void> {
    const members = planMembers(this.#request(next.config));
    const { clock } = this.#options;
    this.#swap(
      members,
      await createBuilder({ projectors: [this.#hookProjector], clock, isActive: this.#isActive }).build(
        ledgersOf(members),
      ),
    );
    inspectMembers(members, this.#isCoreService);
  }

  dryRun(): readonly Ledger[] {
    return this.#found.flatMap((one) => (one.plugin ? [one.ledger] : []));
  }

  ledgers(): readonly Ledger[] {
    return this.#active().map((instance) => instance.ledger);
  }

  service<K extends keyof Services>(name: K): Services[K] | undefined {
    return this.#service(name) as Services[K] | undefined;
  }

  services(prefix: string): readonly (readonly [string, unknown])[] {
    return this.#active().flatMap((instance) =>
      instance.ledger.services
        .filter((entry) => entry.name.startsWith(prefix))
        .map((entry) => [entry.name, instance.provided(entry.name)] as const),
    );
  }

  handlers<K extends keyof Commands>(command: K): readonly Handler<K>[] {
    return this.ledgers().flatMap((ledger) =>
      ledger.handlers
        .filter((entry) => entry.command === command)
        .map((entry) => entry.fn as unknown as Handler<K>),
    );
  }

  list(): readonly PluginInfo[] {
    const infos = [...this.#members.values()].map((member) =>
      describeMember(member, this.#members, this.#coreServices),
    );
    return infos.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async stop(reason: 'shutdown' | 'handover'): Promise<void> {
    this.#stopping = true;
    for (const member of this.#members.values()) member.instance?.cancel(reason);
    await this.#queue.idle();
    await this.#disposeGone(new Map(), () => reason);
  }

  readonly #isActive = (name: string): boolean => this.#members.get(name)?.instance?.active === true;
  readonly #isCoreService = (name: string): boolean => Object.hasOwn(this.#coreServices, name);
  readonly #make: MakeInstance = (plugin, config) => createInstance(plugin, config, this.#env);

  #active(): Instance[] {
    return [...this.#members.values()].flatMap(({ instance }) => (instance?.active ? [instance] : []));
  }

  #service(name: string): unknown {
    if (this.#isCoreService(name)) return this.#coreServices[name];
    return this.#active()
      .map((instance) => instance.provided(name))
      .find((service) => service !== undefined);
  }

  #request(config: Config): ChangeRequest {
    for (const { name, plugin, thirdParty } of this.#found) {
      if (plugin && thirdParty && !isEnabled(name, false, config)) this.#condemned.delete(plugin);
    }
    return {
      found: this.#found,
      current: this.#members,
      config,
      make: this.#make,
      isCoreService: this.#isCoreService,
      condemned: this.#condemned,
    };
  }

  /**
   * One change from beginning to end. Up to the swap it may reject, with nothing changed; from there on it
   * never does.
   */
  async #change(config: Config): Promise<void> {
    if (this.#stopping) throw new Error('the plugin host has stopped');
    if (this.#projected === undefined) await this.#sweep();
    const request = this.#request(config);
    const next = planMembers(request);
    const isProjected = this.#projected !== undefined && sameLedgers(ledgersOf(next), this.#projected);
    this.#swap(
      next,
      isProjected
        ? undefined
        : await buildMembers(next, this.#builder, () => restartDependants(next, request)),
    );
    await this.#disposeGone(next, (name) => (next.get(name)?.enabled ? 'reload' : 'disable'));
    for (const member of next.values()) takeConfig(member);
    await this.#activate();
    for (const instance of this.#active()) await instance.refresh();
    const states = this.list();
    reportStates(states, this.#reported, this.#options.log);
    this.#reported = states;
  }

  /** Copies of former days go at the start; later ones may still be in use. */
  async #sweep(): Promise<void> {
    const kept = this.#found.flatMap((one) =>
      one.plugin && one.stagedFolder !== undefined ? [one.stagedFolder] : [],
    );
    await sweepStage(this.#lastDiscovery.stateDir, new Set(kept)).catch((error: unknown) =>
      this.#options.log.warn({ err: error }, 'old copies of plugins not removed'),
    );
  }

  /** A change without another configuration, for what plugins have done by themselves. */
  readonly #lookAgain = (): void => {
    if (this.#stopping || !this.#lastConfig) return;
    void this.#queue
      .push(this.#lastConfig)
      .catch((err: unknown) =>
        this.#options.log.error({ err }, 'the set of plugins was not brought up to date'),
      );
  };

  /** Without an await in between: whoever looks sees the old set or the new one. */
  #swap(next: Members, build: Build | undefined): void {
    build?.commit();
    this.#members = next;
    this.#projected = ledgersOf(next);
  }

  async #disposeGone(next: Members, reasonOf: (name: string) => DisposeReason): Promise<void> {
    const kept = new Set([...next.values()].map((member) => member.instance));
    for (const instance of this.#instances.toReversed())
      if (!kept.has(instance)) await instance.dispose(reasonOf(instance.plugin.name));
    this.#instances = this.#instances.filter((one) => kept.has(one));
  }

  async #activate(): Promise<void> {
    const members = this.#members;
    const { clock, log } = this.#options;
    await activateMembers(members, {
      clock,
      log,
      make: this.#make,
      isCoreService: this.#isCoreService,
      isStopping: () => this.#stopping,
      reproject: async () => this.#swap(members, await this.#builder.build(ledgersOf(members))),
      onBegin: (instance) => {
        if (!this.#instances.includes(instance)) this.#instances = [...this.#instances, instance];
      },
      onLate: this.#lookAgain,
    });
  }
}

function sameLedgers(next: readonly Ledger[], projected: readonly Ledger[]): boolean {
  return (
    next.length === projected.length &&
    next.every((ledger, index) => ledger === projected[index] || isSameEmpty(ledger, projected[index]))
  );
}

/** The empty ledger of a guard that is not up is made anew each time. */
function isSameEmpty(a: Ledger, b: Ledger | undefined): boolean {
  return a.plugin === b?.plugin && isEmptyLedger(a) && isEmptyLedger(b);
}

function takeConfig(member: Member): void {
  if (member.nextConfig && member.instance) member.instance.changeConfig(member.nextConfig);
  member.nextConfig = undefined;
}
