/**
 * The composition root: builds every part, wires them and owns the order of start and stop.
 * Start: lock, plugins discovered, configuration, plugins active, web, shares. Stop is the reverse, with the drain first.
 */
import { chmod, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { durationMs, formatDuration } from './api.ts';
import type { Clock, ConfigCheck, Exporter, LoadedConfig, PluginInfo, Services } from './api.ts';
import { CommandChannel } from './commands.ts';
import type { Command } from './commands.ts';
import { diffConfig } from './config/diff.ts';
import { createSecrets } from './config/secrets.ts';
import { createConfigService } from './config/service.ts';
import { shareStatus, statusFields } from './contributions.ts';
import { createHttp } from './http/http.ts';
import { peekConfig } from './peek.ts';
import type { Peeked } from './peek.ts';
import { createPluginHost } from './plugin/host.ts';
import { lockStateDir } from './state-lock.ts';
import { StatusStore } from './status.ts';
import { Supervisor } from './supervisor.ts';
import type { LeftFiles } from './supervisor.ts';
import { createClock } from './system/clock.ts';
import { createLogger } from './system/logger.ts';
import { createMountReader } from './system/mount-reader.ts';
import { createMountTable } from './system/mount-table.ts';
import { createProcesses } from './system/processes.ts';
import { createScheduler } from './system/scheduler.ts';
import { watchFiles } from './system/watcher.ts';

/** Folder of the package: `dist/core/daemon.js` is two below it. */
export const PACKAGE_DIR = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const IN_TREE_PLUGINS = join(PACKAGE_DIR, 'dist', 'plugins');

const LISTEN_AGAIN_MS = 5_000;

export interface DaemonOptions {
  readonly configFile: string;
  readonly json: boolean;
  readonly env: NodeJS.ProcessEnv;
}

/** The file is no valid configuration; `problems` are ready to print. */
export class ConfigRefused extends Error {
  readonly check: Extract<ConfigCheck, { ok: false }>;

  constructor(check: Extract<ConfigCheck, { ok: false }>) {
    super(check.message);
    this.check = check;
  }
}

/** How a daemon ended. */
export interface DaemonEnd {
  readonly reason: 'stopped' | 'handed over';
  /** Files that were not on their remote yet; they go up at the next start. */
  readonly left: readonly LeftFiles[];
}

/** Everything the daemon consists of. */
interface Parts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly logger: ReturnType<typeof createLogger>;
  readonly status: StatusStore;
  readonly commands: CommandChannel;
  readonly processes: ReturnType<typeof createProcesses>;
  readonly reader: ReturnType<typeof createMountReader>;
  readonly scheduler: ReturnType<typeof createScheduler>;
  readonly config: ReturnType<typeof createConfigService>;
  readonly http: ReturnType<typeof createHttp>;
  readonly host: ReturnType<typeof createPluginHost>;
  readonly unlock: () => Promise<void>;
}

export class Daemon {
  readonly #parts: Parts;
  readonly #supervisor: Supervisor;
  readonly #hurry = new AbortController();
  readonly #ending = new AbortController();
  #releases: (() => void | Promise<void>)[] = [];
  #end: Promise<DaemonEnd> | undefined;

  private constructor(parts: Parts, supervisor: Supervisor) {
    this.#parts = parts;
    this.#supervisor = supervisor;
  }

  get log(): Logger {
    return this.#parts.log;
  }

  /** Rejects with ConfigRefused, or with a sentence about what else is in the way; nothing is left running then. */
  static async start(options: DaemonOptions): Promise<Daemon> {
    const parts = await buildParts(options);
    try {
      const check = await parts.config.loadFile();
      if (!check.ok) throw new ConfigRefused(check);
      for (const warning of check.loaded.warnings) parts.log.warn({ warning }, 'configuration');
      parts.config.commit(check.loaded);
      await parts.host.apply(check.loaded);
      const supervisor = new Supervisor({ clock: parts.clock, log: parts.log.child({ plugin: 'supervisor' }), status: parts.status, plugins: pluginsOf(parts) }, check.loaded);
      const daemon = new Daemon(parts, supervisor);
      await daemon.#open();
      return daemon;
    } catch (error) {
      await parts.host.stop('shutdown');
      await closeParts(parts);
      throw error;
    }
  }

  /** Drains every share and stops. Called again, it leaves at once. */
  stop(): Promise<DaemonEnd> {
    if (this.#end) this.#hurry.abort(new Error('a second signal'));
    this.#end ??= this.#stop();
    return this.#end;
  }

  /** Ends the daemon alone; mounts and servers go on for the next one to adopt. */
  handOver(): Promise<DaemonEnd> {
    this.#end ??= this.#handOver();
    return this.#end;
  }

  /** Reads the configuration file again. A document that is not valid changes nothing. */
  async reloadFile(): Promise<void> {
    const { config, commands, log } = this.#parts;
    const check = await config.loadFile();
    if (!check.ok) {
      const problems = check.problems.map((problem) => `${config.file}:${problem.line ?? 1}:${problem.column ?? 1}: ${problem.message}`);
      log.error({ problems }, 'configuration file refused, the running configuration stays');
      return;
    }
    for (const warning of check.loaded.warnings) log.warn({ warning }, 'configuration');
    if (check.diff.tier === undefined) config.commit(check.loaded);
    else await commands.send('reload', check.loaded);
  }

  reopenLog(): void {
    this.#parts.logger.reopen();
  }

  async #open(): Promise<void> {
    const { commands, config, clock, log } = this.#parts;
    await this.#supervisor.start();
    commands.consume((command) => this.#dispatch(command));
    await this.#listen(config.current);
    const changed = (): void => void this.reloadFile().catch((error: unknown) => log.error({ err: error }, 'configuration file not reloaded'));
    this.#releases.push(await watchFiles({ paths: [config.file], clock, log, onChange: changed }));
    await this.#watchPluginDirs(config.current);
    log.info({ version: process.env.npm_package_version, shares: config.current.config.shares.length, pid: process.pid }, 'mountkeeper is up');
  }

  /** A port that is taken must not take the shares with it: it is tried again until it is free. */
  async #listen(loaded: LoadedConfig): Promise<void> {
    const { clock, http, log } = this.#parts;
    const { listen: host, port } = loaded.config.web;
    try {
      await http.listen({ host, port });
      log.info({ host, port: http.address?.port ?? port }, 'web interface is up');
    } catch (error) {
      log.error({ host, port, reason: (error as Error).message }, 'web interface not reachable, trying again every 5 s');
      this.#releases.push(clock.after(LISTEN_AGAIN_MS, () => {
        const { web } = this.#parts.config.current.config;
        if (!this.#ending.signal.aborted && web.listen === host && web.port === port) void this.#listen(this.#parts.config.current);
      }));
    }
  }

  async #watchPluginDirs(loaded: LoadedConfig): Promise<void> {
    const { clock, config, host, log } = this.#parts;
    const paths = loaded.config.plugins.dirs;
    if (paths.length === 0) return;
    const rediscover = async (): Promise<void> => {
      await host.discover(config.current.config.plugins.dirs, loaded.config.supervisor.state_dir);
      await host.apply(config.current);
    };
    const changed = (): void => void rediscover().catch((error: unknown) => log.error({ err: error }, 'plugin folders not read'));
    this.#releases.push(await watchFiles({ paths, clock, log, onChange: changed }));
  }

  // ------------------------------------------------------------ commands

  async #dispatch(command: Command): Promise<void> {
    const [first] = command.args;
    if (command.name === 'reload') await this.#reload(first as LoadedConfig);
    if (command.name === 'bwlimit') this.#supervisor.setBandwidth(first as { up: string; down: string });
    if (command.name === 'reconnect') this.#supervisor.reconnect(first as string);
    for (const handler of this.#parts.host.handlers(command.name)) await (handler as (...args: readonly unknown[]) => Promise<unknown>)(...command.args);
  }

  async #reload(next: LoadedConfig): Promise<void> {
    const { config, host, log } = this.#parts;
    const former = config.current;
    const diff = diffConfig(former.config, next.config, config.keys());
    config.commit(next);
    if (diff.tier === undefined) return;
    log.info({ tier: diff.tier, changes: diff.changes.map((change) => change.path) }, 'configuration applied');
    if (former.config.plugins.dirs.join() !== next.config.plugins.dirs.join()) {
      await host.discover(next.config.plugins.dirs, next.config.supervisor.state_dir);
      await this.#watchPluginDirs(next);
    }
    await host.apply(next, diff);
    this.#supervisor.applyConfig(next, diff.changes.some((change) => change.tier === 'global' || change.tier === 'protocol'));
    const { web } = former.config;
    if (web.listen !== next.config.web.listen || web.port !== next.config.web.port) await this.#listen(next);
    await host.hooks.observe('afterReload', next, diff);
  }

  // ------------------------------------------------------------ the end

  async #stop(): Promise<DaemonEnd> {
    const { clock, config, host, log } = this.#parts;
    const stopTimeoutMs = durationMs(config.current.config.supervisor.stop_timeout);
    log.info({ stopTimeout: formatDuration(stopTimeoutMs) }, 'stopping: shares are drained, a second signal leaves at once');
    await this.#quiesce();
    const left = await this.#supervisor.stop(clock.deadline(stopTimeoutMs, this.#hurry.signal));
    for (const share of left) log.warn({ share: share.share, files: share.count, bytes: share.bytes, paths: share.paths }, 'files are kept in the cache and go up at the next start');
    await host.stop('shutdown');
    log.info({ filesLeft: left.reduce((sum, share) => sum + share.count, 0) }, 'stopped');
    await closeParts(this.#parts);
    return { reason: 'stopped', left };
  }

  async #handOver(): Promise<DaemonEnd> {
    this.#parts.log.info('handing over: mounts and servers go on for the next daemon');
    await this.#quiesce();
    await this.#supervisor.release();
    await this.#parts.host.stop('handover');
    await closeParts(this.#parts);
    return { reason: 'handed over', left: [] };
  }

  async #quiesce(): Promise<void> {
    this.#ending.abort();
    await this.#parts.commands.close();
    for (const release of this.#releases.splice(0)) await release();
  }
}

function pluginsOf(parts: Parts): ConstructorParameters<typeof Supervisor>[0]['plugins'] {
  const { host, log } = parts;
  return {
    get hooks() { return host.hooks; },
    mounter: () => host.service('mounter'),
    prober: () => host.service('prober'),
    exporters: () => host.services('exporter:').map(([, exporter]) => exporter as Exporter),
    statusFields: () => statusFields(host.ledgers(), log),
    shareStatus: (share) => shareStatus(host.ledgers(), share, log),
  };
}

async function buildParts(options: DaemonOptions): Promise<Parts> {
  const peeked = await peekConfig(options.configFile);
  await prepareStateDir(peeked);
  const logger = createLogger({ file: peeked.logFile, level: peeked.logLevel, json: options.json });
  const { log } = logger;
  const unlock = await lockStateDir(peeked.stateDir);
  const clock = createClock();
  const secrets = createSecrets({ env: options.env });
  const processes = createProcesses({ stateDir: peeked.stateDir, clock, log });
  const reader = createMountReader({ clock, log });
  const status = new StatusStore({ clock, log });
  const commands = new CommandChannel({ log });
  const scheduler = createScheduler({ clock, log });
  const config = createConfigService({
    file: options.configFile, log,
    entries: () => host.entries(),
    services: { processes, secrets, clock },
    review: (next, diff) => host.hooks.veto('beforeReload', next, diff),
  });
  const http = createHttp({ clock, log, hostnames: () => config.current.config.web.hostnames });
  const services: Partial<Services> = {
    clock, processes, mountReader: reader, mountTable: createMountTable(), config, secrets, status,
    plugins: { list: (): readonly PluginInfo[] => host.list() },
    paths: { stateDir: peeked.stateDir, packageDir: PACKAGE_DIR },
  };
  const host = createPluginHost({
    dirs: { inTree: IN_TREE_PLUGINS }, services, projectors: [http.projector], clock, log, scheduler,
    send: (name, ...args) => commands.send(name, ...args),
  });
  await host.discover(peeked.pluginDirs, peeked.stateDir);
  return { clock, log, logger, status, commands, processes, reader, scheduler, config, http, host, unlock };
}

async function prepareStateDir(peeked: Peeked): Promise<void> {
  try {
    await mkdir(peeked.stateDir, { recursive: true, mode: 0o700 });
    await chmod(peeked.stateDir, 0o700);
  } catch (cause) {
    throw new Error(`the state folder ${peeked.stateDir} cannot be made (${(cause as Error).message}); choose another with supervisor.state_dir`, { cause });
  }
}

async function closeParts(parts: Parts): Promise<void> {
  await parts.http.close();
  await parts.scheduler.close();
  parts.processes.releaseAll();
  parts.reader.close();
  await parts.unlock();
  parts.logger.close();
}
