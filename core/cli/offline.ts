/**
 * What a subcommand needs without a daemon in this process: the discovered plugins and the configuration's
 * rules.
 */
import { pino } from 'pino';
import type { ConfigCheck } from '../contract/config.ts';
import type { Clock } from '../contract/platform.ts';
import type { Services } from '../contract/services.ts';
import { SERVICE_CREDENTIALS, createSecrets } from '../config/secrets/secrets.ts';
import { createConfigService } from '../config/service.ts';
import type { ContributionEntry } from '../config/service.ts';
import { enabledIn, peekConfig } from '../config/peek.ts';
import { createPluginHost } from '../plugins/host.ts';
import { searchedFolders } from '../plugins/discovery/installed.ts';
import { createCertificates } from '../platform/certificates/certificates.ts';
import { createClock } from '../platform/clock.ts';
import { readableLog } from '../platform/log/log-file.ts';
import { createMountReader } from '../platform/mounts/mount-reader.ts';
import { createMountTable } from '../platform/mounts/mount-table.ts';
import { IN_TREE_PLUGINS, PACKAGE_DIR } from '../platform/package.ts';
import { createProcesses } from '../platform/processes/processes.ts';
import { createScheduler } from '../platform/scheduler.ts';

export interface Offline {
  readonly clock: Clock;
  readonly secrets: Services['secrets'];
  readonly host: ReturnType<typeof createPluginHost>;
  readonly config: ReturnType<typeof createConfigService>;
  /** Checks the file as a daemon does that starts, with other keys of plugins than there are now. */
  checkFile(
    change: (entries: readonly ContributionEntry[]) => readonly ContributionEntry[],
  ): Promise<ConfigCheck>;
  /** Whether the configuration switches the plugin on. */
  isOn(plugin: string): boolean;
  /**
   * Discovers third-party plugins, too. Each one that is on costs a child process; one that hangs while it
   * is imported costs 10 s.
   */
  discoverAll(): Promise<void>;
  close(): Promise<void>;
}

export interface OfflineOptions {
  /** This process will be the daemon: its secrets are those that it has. */
  readonly isDaemon?: boolean;
}

/** Discovers the plugins that `configFile` names. Without the file, only the in-tree ones. */
export async function openOffline(configFile: string, options: OfflineOptions = {}): Promise<Offline> {
  const offline = await openInTree(configFile, options);
  await offline.discoverAll();
  return offline;
}

/** Discovers only in-tree plugins; most subcommands need no others. */
export async function openInTree(
  configFile: string,
  { isDaemon = false }: OfflineOptions = {},
): Promise<Offline> {
  const peeked = await peekConfig(configFile);
  const log = pino({ level: 'silent' });
  const clock = createClock();
  const secrets = createSecrets({
    env: isDaemon ? process.env : { CREDENTIALS_DIRECTORY: SERVICE_CREDENTIALS, ...process.env },
  });
  const processes = createProcesses({ stateDir: peeked.stateDir, clock, log });
  const reader = createMountReader({ clock, log });
  const scheduler = createScheduler({ clock, log });
  const configBy = (entries: () => readonly ContributionEntry[]) =>
    createConfigService({
      file: configFile,
      log,
      isOffline: !isDaemon,
      entries,
      protocols: () => host.protocols(),
      services: { processes, secrets, clock },
    });
  const config = configBy(() => host.entries());
  const services: Partial<Services> = {
    clock,
    processes,
    mountReader: reader,
    mountTable: createMountTable(),
    config,
    secrets,
    certificates: createCertificates({ clock, log, stateDir: peeked.stateDir }),
    shares: { list: () => [], get: () => undefined },
    plugins: { list: () => host.list(), enable: () => false, readme: async () => undefined },
    paths: { stateDir: peeked.stateDir, packageDir: PACKAGE_DIR },
    logFile: readableLog('', () => undefined),
  };
  const host = createPluginHost({
    dirs: { inTree: IN_TREE_PLUGINS },
    services,
    projectors: [],
    clock,
    log,
    scheduler,
    send: () => Promise.reject(new Error('no daemon runs in this process')),
  });
  await host.discover({ thirdPartyDirs: [], stateDir: peeked.stateDir, enabled: new Set() });
  return {
    clock,
    secrets,
    host,
    config,
    checkFile: (change) => configBy(() => change(host.entries())).loadFile({ isStarting: false }),
    isOn: (plugin) =>
      peeked.switched.get(plugin) ??
      host.entries().find((entry) => entry.owner === plugin)?.enabledByDefault ??
      false,
    discoverAll: async () => {
      const { pluginDirs, stateDir, isolation } = peeked;
      const thirdPartyDirs = await searchedFolders(pluginDirs, stateDir);
      if (thirdPartyDirs.length > 0)
        await host.discover({ thirdPartyDirs, stateDir, enabled: enabledIn(peeked), isolation });
    },
    async close() {
      await host.stop('shutdown');
      await scheduler.close();
      processes.releaseAll();
      reader.close();
    },
  };
}
