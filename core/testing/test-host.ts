/**
 * A host for tests of plugins: the daemon's own plugin host, configuration and web server, without the
 * supervisor and without shares. Time stands still unless the test advances it.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { stringify } from 'smol-toml';
import type { Plugin } from '../contract/plugin.ts';
import type { NotificationEvent } from '../contract/notifications.ts';
import { createSecrets } from '../config/secrets/secrets.ts';
import { createConfigService } from '../config/service.ts';
import { Contributions } from '../plugins/contributions.ts';
import type { HookRunner } from '../plugins/hooks.ts';
import { createHttp } from '../http/http.ts';
import { requesterNow } from '../http/requests.ts';
import { createMetricReadings } from '../plugins/metric-readings.ts';
import type { FoundPlugin } from '../plugins/discovery/found.ts';
import { createHost } from '../plugins/host.ts';
import type { PluginHost, PluginHostOptions } from '../plugins/host.ts';
import { dryRun } from '../plugins/instance/instance.ts';
import { manifestProblem } from '../plugins/discovery/manifest.ts';
import { sentence } from '../platform/log/thrown.ts';
import type { JobScheduler } from '../plugins/instance/recurring.ts';
import { packageDir } from '../plugins/discovery/stage.ts';
import type { Clock, Logger, Release } from '../contract/platform.ts';
import type { ConfigService, LoadedConfig } from '../contract/config.ts';
import type { PluginInfo, Services } from '../contract/services.ts';
import type { Commands } from '../contract/commands.ts';
import type { ShareStatus, StatusRecord } from '../contract/status.ts';
import { loopTimes } from '../platform/loop-times.ts';
import { StallWatch } from '../sdk/stall-watch.ts';
import { emptyRecord, emptyShareStatus, StatusStore } from '../status.ts';
import { readableLog } from '../platform/log/log-file.ts';
import { createCertificates } from '../platform/certificates/certificates.ts';
import { createMountReader } from '../platform/mounts/mount-reader.ts';
import { createMountTable } from '../platform/mounts/mount-table.ts';
import { createProcesses } from '../platform/processes/processes.ts';
import { inject } from './inject.ts';
import type { InjectRequest, InjectResponse } from './inject.ts';
import { createManualClock } from './manual-clock.ts';
import type { ManualClock } from './manual-clock.ts';

// Plugins' contexts differ by their configuration type; a host takes all of them.
// eslint-disable-next-line typescript/no-explicit-any
export type AnyPlugin = Plugin<any>;

export interface TestHostOptions {
  readonly plugins: readonly AnyPlugin[];
  /** The document: TOML text or a table; `connections = []` is added when it is missing. */
  readonly config?: string | Readonly<Record<string, unknown>>;
  /** Default: a manual clock. */
  readonly clock?: Clock;
  readonly log?: Logger;
  /**
   * Names of plugins that are treated as third-party: off unless switched on, not waited for when they are
   * slow, and with their routes below `/ext/<name>/`.
   */
  readonly strangers?: readonly string[];
  /** Replacements for the core's services, or for those of plugins that are not part of the test. */
  readonly services?: Partial<Services>;
  readonly limits?: PluginHostOptions['limits'];
  /** Handles commands that no plugin handles. */
  readonly send?: (command: string, args: readonly unknown[]) => Promise<void>;
}

export interface TestHost {
  readonly host: PluginHost;
  readonly hooks: HookRunner;
  readonly clock: Clock;
  readonly config: ConfigService;
  /** Temporary folder; removed by `close`. */
  readonly stateDir: string;
  /** Commands that plugins sent, in order. */
  readonly sent: readonly { readonly command: string; readonly args: readonly unknown[] }[];
  list(): readonly PluginInfo[];
  /** The entry of one plugin. */
  info(plugin: string): PluginInfo;
  /** Active effects: `plugin: label`. */
  effects(): readonly string[];
  /** The status record with what plugins contribute. */
  status(): StatusRecord;
  shareStatus(share: string): ShareStatus;
  /** Sends a request through the web server, with its checks. */
  inject(request: string | InjectRequest): Promise<InjectResponse>;
  /** Advances the manual clock. */
  advance(ms: number): Promise<void>;
  /** Runs a job once, now: `plugin/job`. */
  runJob(key: string): Promise<void>;
  /** Keys of the jobs that are scheduled. */
  jobs(): readonly string[];
  /** Applies another document. Rejects with its problems. */
  configure(config: string | Readonly<Record<string, unknown>>): Promise<void>;
  /** Replaces the available plugins and applies the configuration again. */
  setPlugins(plugins: readonly AnyPlugin[]): Promise<void>;
  /** Disposes everything. Always call it: `after(() => host.close())`. */
  close(): Promise<void>;
}

interface FakeScheduler extends JobScheduler {
  readonly jobs: Map<string, Parameters<JobScheduler['add']>[0]>;
}

function createFakeScheduler(): FakeScheduler {
  const jobs: FakeScheduler['jobs'] = new Map();
  return {
    jobs,
    add: async (job) => {
      if (jobs.has(job.key)) throw new Error(`the job ${job.key} is scheduled twice`);
      jobs.set(job.key, job);
      return () => {
        jobs.delete(job.key);
      };
    },
  };
}

/** The plugin as discovery would return it, in-tree by default. */
export function offer(plugin: Plugin, log: Logger, thirdParty = false): FoundPlugin {
  const { name, version, description } = plugin;
  const base = { name, version, description, folder: name, thirdParty, guard: plugin.guard === true };
  try {
    const problem = manifestProblem(plugin, name);
    return problem === undefined
      ? { ...base, plugin, ledger: dryRun(plugin, log, thirdParty) }
      : { ...base, problem };
  } catch (error) {
    return { ...base, problem: sentence(error) };
  }
}

function documentText(config: TestHostOptions['config'] = {}): string {
  return typeof config === 'string' ? config : stringify({ connections: [], ...config });
}

function isManual(clock: Clock): clock is ManualClock {
  return 'advance' in clock;
}

/** Activates the plugins with the configuration. Rejects when the configuration is not valid. */
export async function createTestHost(options: TestHostOptions): Promise<TestHost> {
  const stateDir = await mkdtemp(path.join(tmpdir(), 'mountkeeper-test-'));
  const test = new Bench(options, stateDir);
  try {
    await test.start();
    return test;
  } catch (error) {
    await test.close();
    throw error;
  }
}

class Bench implements TestHost {
  readonly host: PluginHost;
  readonly clock: Clock;
  readonly config: ReturnType<typeof createConfigService>;
  readonly stateDir: string;
  readonly sent: { command: string; args: readonly unknown[] }[] = [];
  readonly #options: TestHostOptions;
  readonly #scheduler = createFakeScheduler();
  readonly #http: ReturnType<typeof createHttp>;
  readonly #status: StatusStore;
  readonly #reader: ReturnType<typeof createMountReader>;
  readonly #processes: ReturnType<typeof createProcesses>;
  readonly #contributions: Contributions;
  #plugins: readonly AnyPlugin[];
  #endWatch: Release | undefined;

  constructor(options: TestHostOptions, stateDir: string) {
    const { log = pino({ level: 'silent' }), clock = createManualClock() } = options;
    this.#options = options;
    this.#plugins = options.plugins;
    this.clock = clock;
    this.stateDir = stateDir;
    this.#contributions = new Contributions({
      ledgers: () => this.host.ledgers(),
      known: () => this.host.dryRun(),
      isStranger: () => true,
      clock,
      log,
    });
    this.#status = new StatusStore({ clock, log, owners: () => this.#contributions.owners() });
    this.#processes = createProcesses({ stateDir, clock, log });
    this.#reader = createMountReader({ clock, log });
    const secrets = createSecrets({ env: process.env });
    const ownServices = { clock, secrets, processes: this.#processes, ...options.services };
    this.config = createConfigService({
      file: path.join(stateDir, 'mountkeeper.toml'),
      entries: () => this.host.entries(),
      protocols: () => this.host.protocols(),
      services: ownServices,
      log,
      requester: requesterNow,
      reload: (next) => this.#send('reload', [next]),
    });
    const web = () => this.config.current.config.web;
    const trustedProxies = (): readonly string[] => web().trusted_proxies;
    const stalls = new StallWatch({ clock, log });
    if (!isManual(clock)) this.#endWatch = stalls.watchLoop(clock, loopTimes);
    this.#http = createHttp({
      clock,
      log,
      hostnames: () => web().hostnames,
      trustedProxies,
      answered: (request) => void this.hooks.observe('afterRequest', request),
      stalls,
    });
    this.host = createHost(
      {
        dirs: { inTree: '' },
        projectors: [this.#http.projector],
        clock,
        log,
        scheduler: this.#scheduler,
        stalls,
        send: (command, ...args) => this.#send(command, args),
        ...(options.limits && { limits: options.limits }),
        services: {
          config: this.config,
          status: this.#status,
          certificates: createCertificates({ clock, log, stateDir }),
          mountTable: createMountTable(),
          mountReader: this.#reader,
          paths: { stateDir, packageDir },
          shares: { list: () => [], get: () => undefined },
          logFile: readableLog('', () => undefined),
          metrics: createMetricReadings({ ledgers: () => this.host.ledgers(), log }),
          bandwidth: {
            read: () => ({ limit: { up: 0, down: 0 }, effective: { up: 0, down: 0 }, shares: [] }),
          },
          ...ownServices,
        },
      },
      async () =>
        this.#plugins.map((plugin) =>
          offer(plugin as Plugin, log, options.strangers?.includes(plugin.name as string)),
        ),
    );
  }

  get hooks(): HookRunner {
    return this.host.hooks;
  }

  async start(): Promise<void> {
    await this.host.discover({ thirdPartyDirs: [], stateDir: this.stateDir, enabled: new Set() });
    await this.configure(this.#options.config ?? {});
  }

  async configure(config: string | Readonly<Record<string, unknown>>): Promise<void> {
    const text = documentText(config);
    await writeFile(this.config.file, text);
    await this.#apply(await this.config.check(text, 'file'));
  }

  async setPlugins(plugins: readonly AnyPlugin[]): Promise<void> {
    this.#plugins = plugins;
    await this.host.discover({ thirdPartyDirs: [], stateDir: this.stateDir, enabled: new Set() });
    await this.#apply(await this.config.check(this.config.current.text, 'file'));
  }

  async #apply(check: Awaited<ReturnType<ConfigService['check']>>): Promise<void> {
    if (!check.ok) throw new Error(check.message);
    this.config.commit(check.loaded satisfies LoadedConfig);
    await this.host.apply(check.loaded);
  }

  async #send(command: keyof Commands, args: readonly unknown[]): Promise<void> {
    this.sent.push({ command, args });
    const handlers = this.host.handlers(command) as readonly ((
      ...args: readonly unknown[]
    ) => Promise<unknown>)[];
    if (command === 'notify') await this.host.hooks.observe('notification', args[0] as NotificationEvent);
    for (const handler of handlers) await handler(...args);
    if (handlers.length === 0) await this.#options.send?.(command, args);
  }

  list(): readonly PluginInfo[] {
    return this.host.list();
  }

  info(plugin: string): PluginInfo {
    const info = this.list().find((one) => one.name === plugin);
    if (!info) throw new Error(`there is no plugin "${plugin}" in this test`);
    return info;
  }

  effects(): readonly string[] {
    return this.list().flatMap((info) => info.effects.map((label) => `${info.name}: ${label}`));
  }

  status(): StatusRecord {
    const record = { ...emptyRecord(this.clock.now()), ...this.#contributions.statusFields() };
    return record as StatusRecord;
  }

  shareStatus(share: string): ShareStatus {
    return { ...emptyShareStatus(share), ...this.#contributions.shareStatus(share) } as ShareStatus;
  }

  async inject(request: string | InjectRequest): Promise<InjectResponse> {
    if (!this.#http.address) await this.#http.listen({ host: '127.0.0.1', port: 0 });
    return inject(this.#http.address?.port ?? 0, typeof request === 'string' ? { url: request } : request);
  }

  async advance(ms: number): Promise<void> {
    if (!isManual(this.clock)) throw new Error('this test brought a clock that cannot be advanced');
    await this.clock.advance(ms);
  }

  async runJob(key: string): Promise<void> {
    const job = this.#scheduler.jobs.get(key);
    if (!job?.run)
      throw new Error(
        `there is no job "${key}" that could run here; there is ${this.jobs().join(', ') || 'none'}`,
      );
    await job.run(new AbortController().signal);
  }

  jobs(): readonly string[] {
    return [...this.#scheduler.jobs.keys()];
  }

  async close(): Promise<void> {
    await this.#endWatch?.();
    await this.host.stop('shutdown');
    await this.#http.close();
    this.#reader.close();
    this.#processes.releaseAll();
    await rm(this.stateDir, { recursive: true, force: true });
  }
}
