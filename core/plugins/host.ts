/**
 * The plugin host: one change of the plugin set at a time. It declares all, projects all, swaps in one go,
 * disposes what was replaced (last in, first out) and activates what is new. A plugin's failure is that
 * plugin's state, and never affects the others.
 */
import type { Commands } from '../contract/commands.ts';
import type { Config, ConfigDiff, LoadedConfig } from '../contract/config.ts';
import type { Plugin } from '../contract/plugin.ts';
import type { PluginInfo, Services } from '../contract/services.ts';
import { createHooks } from './hooks.ts';
import type { HookRunner } from './hooks.ts';
import type { ProtocolName } from '../config/checks/protocols.ts';
import type { Isolation, ThirdPartyPlugins } from '../config/checks/third-party.ts';
import type { Clock, Logger } from '../contract/platform.ts';
import { activateMembers, inspectMembers } from './activate.ts';
import { BrokenOff } from './broken-off.ts';
import type { Guilt } from './broken-off.ts';
import { actAsCore } from './instance/acting-plugin.ts';
import { CommandHandlers } from './instance/command-handlers.ts';
import { discoverPlugins } from './discovery/discover.ts';
import type { Discovery, DiscoveryRequest } from './discovery/discover.ts';
import { compareFound, entryOf, isPassing, onUnlessSaid, protocolsOf } from './discovery/found.ts';
import type { ContributionEntry, FoundPlugin } from './discovery/found.ts';
import { EventBus } from './instance/event-bus.ts';
import { createInstance } from './instance/instance.ts';
import { logLevelOf } from './instance/own-config.ts';
import type { Instance, InstanceEnv } from './instance/instance.ts';
import { createExporters } from './guarded-exporters.ts';
import { readmeOf } from './readme.ts';
import { carriedIn, Runners } from './runner/runners.ts';
import { createLatestQueue } from '../sdk/latest.ts';
import { StallWatch } from '../sdk/stall-watch.ts';
import { placeIn, sameLedgers } from './instance/ledger.ts';
import type { Ledger, Projector } from './instance/ledger.ts';
import { ledgersOf, planMembers, restartDependants, takeConfig } from './plugin-set.ts';
import type { ChangeRequest, MakeInstance, Members } from './plugin-set.ts';
import { describeMember, reportStates, tellNotKept } from './plugin-info.ts';
import { buildMembers, createBuilder } from './projections.ts';
import type { Build, Builder } from './projections.ts';
import type { JobScheduler } from './instance/recurring.ts';
import type { DisposeReason } from './instance/scope.ts';
import { PluginStore } from './instance/store.ts';
import { sweepStage } from './discovery/stage.ts';
import { watchedTab } from '../sdk/watched-tab.ts';
import { createWebhookFormats } from './webhook-formats.ts';
import { createSerialQueue } from '../platform/serial-queue.ts';

export type { Discovery, DiscoveryRequest } from './discovery/discover.ts';
export type { ContributionEntry } from './discovery/found.ts';

export interface PluginHostOptions {
  readonly dirs: { readonly inTree: string };
  /** When set, no third-party plugin is loaded; the sentence says why. */
  readonly strangersOff?: string;
  /** The core's own services; `plugins`, `tabs`, `webhookFormats`, `exporters` and `store` are added by the host. */
  readonly services: Partial<Services>;
  readonly projectors: readonly Projector[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly scheduler: JobScheduler;
  /** Default: one of its own. */
  readonly stalls?: StallWatch;
  /** Told of plugins that were switched off since they broke off, with the reason; undefined once that is over. */
  readonly onSwitchedOff?: (plugin: string, reason: string | undefined) => void;
  /**
   * Told of each active plugin that this machine does not keep from what it has no permission for; with undefined
   * once that is over.
   */
  readonly onNotKept?: (plugin: string, reason: string | undefined) => void;
  /** Told after each look for plugins: whether one could not be loaded, and may be later. */
  readonly onPassing?: (isPassing: boolean) => void;
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
   * Reads the folders again; third-party plugins that are on are copied by content hash. Takes effect with
   * the next `apply`.
   */
  discover(request: DiscoveryRequest): Promise<void>;
  /**
   * Whether a third-party plugin was switched on or off since the folders were read, or is to run in another
   * process.
   */
  isStale(enabled: ReadonlySet<string>, isolation?: ReadonlyMap<string, Isolation>): boolean;
  /** Third-party plugins as the configuration's checks see them. */
  readonly strangers: ThirdPartyPlugins;
  /** Whether one could not be loaded, and may be later. */
  readonly isPassing: boolean;
  entries(): readonly ContributionEntry[];
  /** Third-party plugins, and folders of them, that are on and cannot be used; found, not yet applied. */
  refused(): readonly { readonly name: string; readonly reason: string }[];
  /** By which protocols shares are shown, or could be. */
  protocols(): readonly ProtocolName[];
  /**
   * Runs one change at a time; a burst of calls becomes one change with the latest document. Rejects only
   * when nothing could be changed.
   */
  apply(next: LoadedConfig, diff?: ConfigDiff): Promise<void>;
  /**
   * The first change of a start, with no projection but the hooks: shares can be mounted, and the next `apply`
   * builds all others, which takes as long as a mount.
   */
  begin(next: LoadedConfig): Promise<void>;
  /**
   * Switches off the third-party plugin in whose code an uncaught error began; it comes back when its files
   * change, it is switched off and on, or by `enable`. To be called where the error came up. Undefined when no plugin
   * is to blame, or the core is.
   */
  condemn(error: unknown): Guilt | undefined;
  /** Brings back a plugin that was switched off since it broke off; false for every other one. */
  enable(name: string): boolean;
  /** Its README; undefined where there is none. */
  readme(name: string): Promise<string | undefined>;
  /** Enabled plugins with their services and hooks, but without effects: used by `doctor`. */
  inspect(next: LoadedConfig): Promise<void>;
  /** Ledgers of all usable plugins, written without activation. */
  dryRun(): readonly Ledger[];
  /** Ledgers of the active plugins. */
  ledgers(): readonly Ledger[];
  service<K extends keyof Services>(name: K): Services[K] | undefined;
  services(prefix: string): readonly (readonly [string, unknown])[];
  readonly hooks: HookRunner;
  handlers<K extends keyof Commands>(command: K): readonly Handler<K>[];
  /** Calls what plugins have registered for the command, each with a time limit. Never rejects. */
  handle(command: keyof Commands, args: readonly unknown[]): Promise<void>;
  list(): readonly PluginInfo[];
  /** Whether it is a third party's: asked for each field of each share in each cycle. */
  isStranger(plugin: string): boolean;
  /** Disposes everything, last in first out. With 'handover', releases know to leave children running. */
  stop(reason: 'shutdown' | 'handover'): Promise<void>;
}

export function createPluginHost(options: PluginHostOptions): PluginHost {
  const { dirs, log, limits, strangersOff } = options;
  const runners = new Runners({ log, onGivenUp: (plugin, reason) => host.giveUp(plugin, reason) });
  const host = new Host(options, (request) =>
    discoverPlugins({
      ...request,
      runners,
      ...(strangersOff !== undefined && { strangersOff }),
      inUse: () => host.copiesInUse(),
      inTree: dirs.inTree,
      log,
      importMs: limits?.importMs ?? 10_000,
    }),
  );
  return host;
}

export function createHost(options: PluginHostOptions, discovery: Discovery): PluginHost {
  return new Host(options, discovery);
}

class Host implements PluginHost {
  readonly hooks: HookRunner;
  readonly #options: PluginHostOptions;
  readonly #discovery: Discovery;
  readonly #coreServices: Readonly<Record<string, unknown>>;
  readonly #brokenOff: BrokenOff;
  readonly #handlers: CommandHandlers;
  readonly #hooksBuilder: Builder;
  readonly #wholeBuilder: Builder;
  /** The one for changes from now on, and the one that has built what is projected. */
  #builder: Builder;
  #projectedBy: Builder | undefined;
  readonly #env: InstanceEnv;
  readonly #queue = createLatestQueue<Config>((config) => this.#change(config));
  #found: readonly FoundPlugin[] = [];
  #members: Members = new Map();
  #projected: readonly Ledger[] | undefined;
  /** Active or activating, in the order of activation; disposed in reverse. */
  #instances: readonly Instance[] = [];
  #reported: readonly PluginInfo[] = [];
  #stopping = false;
  readonly #discoveries = createSerialQueue();
  /** Where the copy lies that each third party's plugin was loaded from. */
  readonly #copies = new WeakMap<Plugin, string>();
  #lastConfig: Config | undefined;
  #unfit: LoadedConfig['unfit'];
  #lastDiscovery: DiscoveryRequest = { thirdPartyDirs: [], stateDir: '', enabled: new Set() };

  constructor(options: PluginHostOptions, discovery: Discovery) {
    const { clock, log, scheduler, limits = {} } = options;
    const { stalls = new StallWatch({ clock, log }) } = options;
    this.#options = options;
    this.#discovery = discovery;
    const tabs = {
      list: () =>
        this.ledgers().flatMap((ledger) =>
          ledger.tabs.map((tab) => ({
            plugin: ledger.plugin,
            tab: watchedTab(tab, (at) => placeIn(ledger, at), stalls),
          })),
        ),
    };
    const store = new PluginStore({ stateDir: options.services.paths?.stateDir ?? '', clock, log });
    this.#brokenOff = new BrokenOff({ log, onSwitchedOff: options.onSwitchedOff });
    const exporters = createExporters(
      {
        members: () => [...this.#members.values()],
        leaving: () => this.#leaving(),
        config: () => this.#lastConfig && options.services.config?.current.config,
      },
      { clock, log },
    );
    this.#coreServices = {
      plugins: {
        list: () => this.list(),
        enable: (name: string) => this.enable(name),
        readme: (name: string) => this.readme(name),
      },
      tabs,
      webhookFormats: createWebhookFormats({ ledgers: () => this.ledgers(), clock, stalls }),
      exporters,
      store,
      ...options.services,
    };
    // All plugins share these objects: no plugin may replace a function that others call.
    for (const service of Object.values(this.#coreServices)) Object.freeze(service);
    const hooks = createHooks({ clock, log, stalls, timeoutMs: limits.hookMs ?? 5_000 });
    this.hooks = hooks.runner;
    this.#handlers = new CommandHandlers({
      ledgers: () => this.ledgers(),
      clock,
      log,
      timeoutMs: limits.hookMs,
      stalls,
    });
    const isActive = this.#isActive;
    this.#hooksBuilder = createBuilder({ projectors: [hooks.projector], isActive });
    this.#wholeBuilder = createBuilder({ projectors: [hooks.projector, ...options.projectors], isActive });
    this.#builder = this.#wholeBuilder;
    const events = new EventBus({
      ledgers: () => this.ledgers(),
      clock,
      log,
      stalls,
      ...(limits.hookMs !== undefined && { timeoutMs: limits.hookMs }),
    });
    this.#env = {
      clock,
      log,
      scheduler,
      limits,
      isThirdParty: this.#isThirdParty,
      runsHere: (plugin) => this.#isThirdParty(plugin.name) && carriedIn(plugin) === undefined,
      // The only service that differs per plugin.
      service: (name, plugin) => (name === 'store' ? store.of(plugin) : this.#service(name)),
      logLevel: (name) => this.#lastConfig && logLevelOf(name, this.#lastConfig),
      send: (command, args) => options.send(command as keyof Commands, ...(args as never)),
      give: ({ name }, value) => events.give(name, value),
      stalls,
    };
  }

  /** Runs one after the other, so that the result belongs to the last request. */
  discover(request: DiscoveryRequest): Promise<void> {
    this.#lastDiscovery = request;
    return this.#discoveries.run(async () => {
      this.#found = (await this.#discovery(request)).map((one) => this.#hopeful(one)).sort(compareFound);
      for (const one of this.#found)
        if (one.plugin && one.stagedFolder !== undefined) this.#copies.set(one.plugin, one.stagedFolder);
      this.#options.onPassing?.(this.isPassing);
      this.#brokenOff.meet(this.#found);
    });
  }

  /** Whoever reads why it is not up should know that nothing has to be done. */
  #hopeful(one: FoundPlugin): FoundPlugin {
    const isTried = this.#options.onPassing && isPassing(one);
    return isTried ? { ...one, problem: `${one.problem}; loading it is tried again` } : one;
  }

  /** Of what was found last, of what lives, and of what comes back when its successor does not come up. */
  copiesInUse(): ReadonlySet<string> {
    const instances = [...this.#members.values()].flatMap(({ instance, previous }) => [instance, previous]);
    const plugins = [
      ...this.#found.map(({ plugin }) => plugin),
      ...[...this.#instances, ...instances].map((instance) => instance?.plugin),
    ];
    return new Set(plugins.flatMap((plugin) => (plugin && this.#copies.get(plugin)) ?? []));
  }

  isStale(enabled: ReadonlySet<string>, isolation: ReadonlyMap<string, Isolation> = new Map()): boolean {
    const last = this.#lastDiscovery;
    const names = new Set([...enabled, ...last.enabled]);
    const isOurs = (name: string): boolean => this.#found.some((one) => one.name === name && !one.thirdParty);
    const isOther = (name: string): boolean =>
      enabled.has(name) !== last.enabled.has(name) ||
      (isolation.get(name) ?? 'own') !== (last.isolation?.get(name) ?? 'own');
    return [...names].some((name) => isOther(name) && !isOurs(name));
  }

  get strangers(): ThirdPartyPlugins {
    return {
      comesWithUs: (name) => this.#found.some((one) => one.name === name && !one.thirdParty),
      load: async (names, isolation) => {
        const isDormant = ({ name, plugin, problem }: FoundPlugin): boolean =>
          !plugin && problem === undefined && names.includes(name);
        // Its folder may have been laid a moment ago, and nobody has noticed yet.
        const isUnknown = (name: string): boolean => !this.#found.some((one) => one.name === name);
        if (!this.#found.some(isDormant) && !names.some(isUnknown)) return;
        const { enabled, isolation: former = new Map<string, Isolation>() } = this.#lastDiscovery;
        await this.discover({
          ...this.#lastDiscovery,
          enabled: new Set([...enabled, ...names]),
          isolation: new Map([...former, ...isolation]),
        });
      },
    };
  }

  get isPassing(): boolean {
    return this.#found.some(isPassing);
  }

  entries(): readonly ContributionEntry[] {
    return this.#found.flatMap(entryOf);
  }

  refused(): readonly { readonly name: string; readonly reason: string }[] {
    const { enabled } = this.#lastDiscovery;
    return this.#found.flatMap((one) => {
      const { name, thirdParty, problem } = one;
      const isOn = enabled.has(name) || onUnlessSaid(one);
      return thirdParty && isOn && problem !== undefined ? [{ name, reason: problem }] : [];
    });
  }

  protocols(): readonly ProtocolName[] {
    return this.#found.flatMap(protocolsOf);
  }

  apply(next: LoadedConfig): Promise<void> {
    this.#builder = this.#wholeBuilder;
    return this.#push(next);
  }

  begin(next: LoadedConfig): Promise<void> {
    this.#builder = this.#hooksBuilder;
    return this.#push(next);
  }

  #push(next: LoadedConfig): Promise<void> {
    this.#lastConfig = next.config;
    this.#unfit = next.unfit;
    return actAsCore(() => this.#queue.push(next.config));
  }

  condemn(error: unknown): Guilt | undefined {
    const guilt = this.#brokenOff.blame(error, this.#found);
    if (guilt?.isSwitchedOff) this.#lookAgain();
    return guilt;
  }

  enable(name: string): boolean {
    const isBack = this.#brokenOff.enable(name, this.#found);
    if (isBack) this.#lookAgain();
    return isBack;
  }

  readme(name: string): Promise<string | undefined> {
    return readmeOf(this.#found.find((one) => one.name === name));
  }

  /** Until its files change, it is switched off and on, or brought back by `enable`. */
  giveUp(plugin: Plugin, reason: string): void {
    this.#brokenOff.giveUp(plugin, reason);
    this.#lookAgain();
  }

  async inspect(next: LoadedConfig): Promise<void> {
    this.#unfit = next.unfit;
    const members = planMembers(this.#request(next.config));
    this.#swap(members, await this.#hooksBuilder.build(ledgersOf(members)));
    inspectMembers(members, this.#isCoreService);
    // A service may hold something: it goes with `stop`, too.
    this.#instances = [...members.values()].flatMap(({ instance }) => instance ?? []);
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

  handle(command: keyof Commands, args: readonly unknown[]): Promise<void> {
    return this.#handlers.run(command, args);
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

  isStranger(plugin: string): boolean {
    return this.#members.get(plugin)?.found.thirdParty === true;
  }

  async stop(reason: 'shutdown' | 'handover'): Promise<void> {
    this.#stopping = true;
    for (const member of this.#members.values()) member.instance?.cancel(reason);
    await this.#queue.idle();
    await this.#disposeGone(new Map(), () => reason);
  }

  readonly #isThirdParty = (name: string): boolean =>
    !this.#found.some((one) => one.name === name && !one.thirdParty);
  readonly #isActive = (name: string): boolean => this.#members.get(name)?.instance?.active === true;
  readonly #isCoreService = (name: string): boolean => Object.hasOwn(this.#coreServices, name);
  readonly #make: MakeInstance = (plugin, config) => createInstance(plugin, config, this.#env);

  #active(): Instance[] {
    return [...this.#members.values()].flatMap(({ instance }) => (instance?.active ? [instance] : []));
  }

  #leaving(): Instance[] {
    const kept = new Set([...this.#members.values()].map(({ instance }) => instance));
    return this.#instances.filter((instance) => !kept.has(instance));
  }

  #service(name: string): unknown {
    if (this.#isCoreService(name)) return this.#coreServices[name];
    return this.#active()
      .map((instance) => instance.provided(name))
      .find((service) => service !== undefined);
  }

  #request(config: Config): ChangeRequest {
    this.#brokenOff.forgive(config);
    return {
      found: this.#found,
      current: this.#members,
      config,
      make: this.#make,
      isCoreService: this.#isCoreService,
      condemned: this.#brokenOff.reasons,
      unfit: this.#unfit,
    };
  }

  /** One whole change. Before the swap it may reject, with nothing changed; after it, it never does. */
  async #change(config: Config): Promise<void> {
    if (this.#stopping) throw new Error('the plugin host has stopped');
    if (this.#projected === undefined) await this.#sweep();
    const builder = this.#builder;
    const request = this.#request(config);
    const next = planMembers(request);
    this.#swap(next, await this.#build(next, builder, () => restartDependants(next, request)));
    this.#projectedBy = builder;
    await this.#disposeGone(next, (name) => (next.get(name)?.enabled ? 'reload' : 'disable'));
    for (const member of next.values()) {
      member.instance?.takeLogLevel();
      takeConfig(member);
    }
    await this.#activate(builder);
    for (const instance of this.#active()) await instance.refresh();
    const states = this.list();
    reportStates(states, this.#reported, this.#options.log);
    tellNotKept(states, this.#reported, this.#options.onNotKept);
    this.#reported = states;
    this.#brokenOff.tell(this.#found);
  }

  /** Undefined where what is projected is what would be built. */
  async #build(members: Members, builder: Builder, settle: () => boolean): Promise<Build | undefined> {
    const isFirst = this.#projectedBy !== builder;
    const projected = isFirst ? undefined : this.#projected;
    if (projected && sameLedgers(ledgersOf(members), projected)) return undefined;
    return buildMembers({ members, builder, settle, isFirst });
  }

  /** Removes old copies at the start only; later ones may still be in use. */
  async #sweep(): Promise<void> {
    const kept = this.#found.flatMap((one) =>
      one.plugin && one.stagedFolder !== undefined ? [one.stagedFolder] : [],
    );
    await sweepStage(this.#lastDiscovery.stateDir, new Set(kept)).catch((error: unknown) =>
      this.#options.log.warn({ err: error }, 'old copies of plugins not removed'),
    );
  }

  /** A change without a new configuration, for states that plugins have changed by themselves. */
  readonly #lookAgain = (): void => {
    if (this.#stopping || !this.#lastConfig) return;
    const config = this.#lastConfig;
    void actAsCore(() => this.#queue.push(config)).catch((err: unknown) =>
      this.#options.log.error({ err }, 'the set of plugins was not brought up to date'),
    );
  };

  /** Without an await in between, so that readers see either the old set or the new one. */
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

  async #activate(builder: Builder): Promise<void> {
    const members = this.#members;
    const { clock, log } = this.#options;
    await activateMembers(members, {
      clock,
      log,
      make: this.#make,
      isCoreService: this.#isCoreService,
      isStopping: () => this.#stopping,
      reproject: async () => this.#swap(members, await builder.build(ledgersOf(members))),
      onBegin: (instance) => {
        if (!this.#instances.includes(instance)) this.#instances = [...this.#instances, instance];
      },
      onLate: this.#lookAgain,
    });
  }
}
