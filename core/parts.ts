/** The parts of a daemon, built in dependency order and closed in the reverse order. */
import type { Logger } from 'pino';
import type { BandwidthState } from './contract/shares.ts';
import type { Clock } from './contract/platform.ts';
import type { Commands } from './contract/commands.ts';
import type { LoadedConfig, WebConfig } from './contract/config.ts';
import type { PluginInfo, Services } from './contract/services.ts';
import type { CertificatesService, WebService } from './contract/http.ts';
import { CommandChannel } from './commands.ts';
import type { CommandName } from './commands.ts';
import { Contributions } from './plugins/contributions.ts';
import { createSecrets } from './config/secrets/secrets.ts';
import { createConfigService } from './config/service.ts';
import { createHttp } from './http/http.ts';
import { requesterNow } from './http/requests.ts';
import { createMetricReadings } from './plugins/metric-readings.ts';
import { enabledIn, peekConfig } from './config/peek.ts';
import { createPluginHost } from './plugins/host.ts';
import { createPackages } from './plugins/packages/packages.ts';
import type { OwnedPackages } from './plugins/packages/packages.ts';
import { installedFolder, searchedFolders } from './plugins/discovery/installed.ts';
import { prepareStateFolder } from './platform/files/state-folder.ts';
import { lockStateDir } from './platform/state-lock.ts';
import { StallWatch } from './sdk/stall-watch.ts';
import { StatusStore } from './status.ts';
import type { Supervisor, SupervisorPlugins } from './shares/supervisor.ts';
import { createCertificates } from './platform/certificates/certificates.ts';
import { createClock } from './platform/clock.ts';
import { createLogger } from './platform/log/logger.ts';
import { createMountReader } from './platform/mounts/mount-reader.ts';
import { createMountTable } from './platform/mounts/mount-table.ts';
import { IN_TREE_PLUGINS, PACKAGE_DIR } from './platform/package.ts';
import { createProcesses } from './platform/processes/processes.ts';
import { PLUGINS_USER, serviceUser } from './platform/processes/rights.ts';
import { createScheduler } from './platform/scheduler.ts';
import { StartAttempt } from './platform/start-attempt.ts';
import type { Judge } from './plugins/uncaught.ts';

const NO_LIMIT = { up: 0, down: 0 };

export interface DaemonOptions {
  readonly configFile: string;
  readonly json: boolean;
  /** Third-party plugins stay off. That also happens by itself after three failed starts in a row. */
  readonly safeMode?: boolean;
  readonly env: NodeJS.ProcessEnv;
  /** Called when the plugin host exists, before any plugin is active. */
  readonly onPlugins?: (judge: Judge) => void;
}

/** Everything the daemon consists of. */
export interface Parts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly logger: ReturnType<typeof createLogger>;
  readonly status: StatusStore;
  readonly commands: CommandChannel;
  readonly certificates: CertificatesService;
  readonly processes: ReturnType<typeof createProcesses>;
  readonly reader: ReturnType<typeof createMountReader>;
  readonly scheduler: ReturnType<typeof createScheduler>;
  readonly stalls: StallWatch;
  readonly config: ReturnType<typeof createConfigService>;
  readonly http: ReturnType<typeof createHttp>;
  readonly host: ReturnType<typeof createPluginHost>;
  readonly contributions: Contributions;
  readonly packages: OwnedPackages;
  /** Filled in once the supervisor exists; until then there are no shares. */
  readonly active: {
    shares: Pick<Supervisor, 'live' | 'find'> | undefined;
    bandwidth: (() => BandwidthState) | undefined;
    web: WebService | undefined;
    /** Told after each look for plugins whether it is worth another try. */
    passing: ((isPassing: boolean) => void) | undefined;
  };
  /** Counts failed starts with third-party plugins. */
  readonly attempt: StartAttempt;
  /** When the plugin folders were read for the first time, in milliseconds since the epoch. */
  readonly pluginsReadAtMs: number;
  readonly unlock: () => Promise<void>;
}

export async function buildParts(options: DaemonOptions): Promise<Parts> {
  const peeked = await peekConfig(options.configFile);
  // It is watched from the start, and installing comes later.
  await prepareStateFolder(peeked.stateDir, [installedFolder(peeked.stateDir)]);
  const logger = createLogger({ file: peeked.logFile, level: peeked.logLevel, json: options.json });
  const { log } = logger;
  const unlock = await lockStateDir(peeked.stateDir);
  const thirdPartyDirs = await searchedFolders(peeked.pluginDirs, peeked.stateDir);
  const attempt = await StartAttempt.begin(peeked.stateDir, {
    isSafe: options.safeMode === true,
    hasStrangers: thirdPartyDirs.length > 0,
  });
  const clock = createClock();
  const secrets = createSecrets({ env: options.env });
  const certificates = createCertificates({ clock, log, stateDir: peeked.stateDir });
  const processes = createProcesses({ stateDir: peeked.stateDir, clock, log });
  const reader = createMountReader({ clock, log });
  const contributions = new Contributions({
    ledgers: () => host.ledgers(),
    known: () => host.dryRun(),
    isStranger: (plugin) => host.isStranger(plugin),
    clock,
    log,
  });
  const status = new StatusStore({ clock, log, owners: () => contributions.owners() });
  const commands = new CommandChannel({ log });
  const scheduler = createScheduler({ clock, log });
  const stalls = new StallWatch({ clock, log });
  const config = createConfigService({
    file: options.configFile,
    log,
    entries: () => host.entries(),
    protocols: () => host.protocols(),
    services: { processes, secrets, clock },
    strangers: () => host.strangers,
    requester: requesterNow,
    review: (next, diff) => host.hooks.veto('beforeReload', next, diff),
    reload: (next) => sendCommand({ commands, config }, 'reload', [next]),
  });
  const web = (): WebConfig => config.current.config.web;
  const http = createHttp({
    clock,
    log,
    hostnames: () => web().hostnames,
    trustedProxies: () => web().trusted_proxies,
    pluginsUser: async () =>
      process.geteuid?.() === 0 ? (await serviceUser(undefined, PLUGINS_USER))?.uid : undefined,
    answered: (request) => void host.hooks.observe('afterRequest', request),
    hsts: () => web().tls?.hsts === true,
    stalls,
  });
  const packages = createPackages({
    configFile: config.file,
    config: () => config.current.config,
    isGuarded: () => host.ledgers().some((ledger) => ledger.guard),
    requester: requesterNow,
    installed: () => host.list().flatMap(({ name, isInstalled }) => (isInstalled === true ? [name] : [])),
    clock,
    log,
  });
  const active: Parts['active'] = {
    shares: undefined,
    bandwidth: undefined,
    web: undefined,
    passing: undefined,
  };
  const services: Partial<Services> = {
    clock,
    processes,
    mountReader: reader,
    mountTable: createMountTable(),
    config,
    secrets,
    certificates,
    web: {
      get problem() {
        return active.web?.problem;
      },
    },
    status,
    shares: { list: () => active.shares?.live() ?? [], get: (name) => active.shares?.find(name) },
    bandwidth: { read: () => active.bandwidth?.() ?? { limit: NO_LIMIT, effective: NO_LIMIT, shares: [] } },
    plugins: {
      list: (): readonly PluginInfo[] => host.list(),
      enable: (name: string): boolean => host.enable(name),
      readme: (name: string): Promise<string | undefined> => host.readme(name),
    },
    pluginPackages: packages.service,
    paths: { stateDir: peeked.stateDir, packageDir: PACKAGE_DIR },
    logFile: logger.logFile,
    metrics: createMetricReadings({ ledgers: () => host.ledgers(), log }),
  };
  const host = createPluginHost({
    dirs: { inTree: IN_TREE_PLUGINS },
    ...(attempt.safeMode && { strangersOff: attempt.safeMode.reason }),
    services,
    projectors: [http.projector],
    clock,
    log,
    scheduler,
    stalls,
    send: (name, ...args) => sendCommand({ commands, config }, name, args),
    onPassing: (isPassing) => active.passing?.(isPassing),
    onSwitchedOff: (plugin, reason) =>
      status.setStanding(
        `switched off ${plugin}`,
        reason === undefined
          ? undefined
          : { level: 'error', message: `The plugin "${plugin}" is switched off: ${reason}.` },
      ),
    onNotKept: (plugin, reason) =>
      status.setStanding(
        `not kept ${plugin}`,
        reason === undefined
          ? undefined
          : { level: 'warning', message: `The plugin "${plugin}": ${reason}.` },
      ),
  });
  // What an administrator vouches for, in the daemon itself, may log what it wants.
  logger.limit((plugin) =>
    host.list().some((one) => one.name === plugin && one.thirdParty && one.isolation !== 'none'),
  );
  const pluginsReadAtMs = clock.now();
  await host.discover({
    thirdPartyDirs,
    stateDir: peeked.stateDir,
    enabled: enabledIn(peeked),
    isolation: peeked.isolation,
  });
  status.startWith(contributions.defaults());
  return {
    certificates,
    contributions,
    packages,
    clock,
    log,
    logger,
    status,
    commands,
    processes,
    reader,
    scheduler,
    stalls,
    config,
    http,
    host,
    active: active,
    attempt,
    pluginsReadAtMs,
    unlock,
  };
}

/**
 * An accepted document becomes the running one at once, so that the next one is compared with it even while
 * the reload is still in progress.
 */
export async function sendCommand<K extends CommandName>(
  parts: Pick<Parts, 'commands' | 'config'>,
  name: K,
  args: Commands[K]['args'],
): Promise<void> {
  await parts.commands.send(name, ...args);
  if (name === 'reload') parts.config.commit(args[0] as LoadedConfig);
}

export async function closeParts(parts: Parts): Promise<void> {
  await parts.packages.close();
  await parts.http.close();
  await parts.scheduler.close();
  parts.processes.releaseAll();
  parts.reader.close();
  await parts.unlock();
  parts.logger.close();
}

/** The supervisor's view of the plugins, which may change at any time. */
export function pluginsOf(parts: Parts): SupervisorPlugins {
  const { contributions, host } = parts;
  return {
    get hooks() {
      return host.hooks;
    },
    mounter: () => host.service('mounter'),
    prober: () => host.service('prober'),
    exporters: () =>
      host
        .service('exporters')
        ?.list()
        .map(({ exporter }) => exporter) ?? [],
    statusFields: () => contributions.statusFields(),
    shareReader: () => contributions.shareReader(),
  };
}
