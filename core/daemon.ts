/**
 * The composition root: builds every part, wires them and owns the order of start and stop.
 * Start: lock, plugins discovered, configuration, plugins active, shares, web. Stop is the reverse, with
 * the drain first.
 */
import { readFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import { durationMs, formatDuration } from './sdk/units.ts';
import type { ConfigCheck, LoadedConfig } from './contract/config.ts';
import type { NotificationEvent } from './contract/notifications.ts';
import type { Release } from './contract/platform.ts';
import type { Command } from './commands.ts';
import { installedFolder } from './plugins/discovery/installed.ts';
import { discoverBy, enabledPlugins, isolationsOf, Rediscovery } from './plugins/discovery/rediscovery.ts';
import { watchPlugins } from './plugins/discovery/watch.ts';
import { buildParts, closeParts, pluginsOf, sendCommand } from './parts.ts';
import type { DaemonOptions, Parts } from './parts.ts';
import { isLoopback } from './sdk/http/address.ts';
import { applyWhole, reloadFile } from './reload-file.ts';
import { protocolNotice } from './config/checks/protocols.ts';
import { unfitNotice } from './config/checks/unfit-table.ts';
import { restartNotice } from './config/restart-notice.ts';
import { Supervisor } from './shares/supervisor.ts';
import type { Leftovers } from './shares/supervisor.ts';
import { loopTimes } from './platform/loop-times.ts';
import { packageVersion } from './platform/package.ts';
import { SystemdNotifier } from './platform/systemd-notifier.ts';
import { watchFiles } from './platform/files/watcher.ts';
import { WebEndpoint } from './http/web-endpoint.ts';

/** How long a stop waits for the command that is running. */
const COMMAND_PATIENCE_MS = 30_000;
/** How long the web server waits for shares that are being mounted. */
const SHARES_FIRST_MS = 1_000;
/** Until a configuration that could not be read or applied is tried again. */
const AGAIN_MS = 10_000;
/** Keys that say where and how the web server listens. */
const WEB_PLACE = /^web\.(?:listen|port|hostnames|trusted_proxies|tls|plain_http)\b/;

/** The file is not a valid configuration; `problems` can be printed as they are. */
export class ConfigRefused extends Error {
  readonly check: Extract<ConfigCheck, { ok: false }>;

  constructor(check: Extract<ConfigCheck, { ok: false }>) {
    super(check.message);
    this.check = check;
  }
}

/** How a daemon ended. */
export interface DaemonEnd extends Leftovers {
  readonly reason: 'stopped' | 'handed over';
}

export class Daemon {
  readonly #parts: Parts;
  readonly #supervisor: Supervisor;
  readonly #hurry = new AbortController();
  readonly #entrance: WebEndpoint;
  readonly #startedWith: LoadedConfig;
  readonly #notifier: SystemdNotifier;
  /** The document that plugins and shares have already applied. */
  #applied: LoadedConfig;
  #releases: (() => void | Promise<void>)[] = [];
  readonly #rediscovery: Rediscovery;
  #pluginWatch: Release | undefined;
  /** What is tried again: ends the wait for it. */
  readonly #waiting = new Map<string, () => void>();
  #end: Promise<DaemonEnd> | undefined;

  private constructor(parts: Parts, supervisor: Supervisor, env: NodeJS.ProcessEnv) {
    this.#parts = parts;
    this.#supervisor = supervisor;
    this.#applied = parts.config.current;
    this.#startedWith = parts.config.current;
    this.#entrance = new WebEndpoint(parts);
    parts.active.web = this.#entrance;
    const { clock, host, log, processes, status } = parts;
    this.#rediscovery = new Rediscovery({ clock, log, run: () => this.#rediscover() });
    parts.active.passing = (isPassing) => this.#rediscovery.passing(isPassing);
    this.#rediscovery.passing(host.isPassing);
    this.#notifier = new SystemdNotifier({ clock, log, processes, env, lookedAtMs: () => status.lookedAtMs });
    status.onPublish((snapshot) => this.#notifier.saw(snapshot));
  }

  get log(): Logger {
    return this.#parts.log;
  }

  /** Rejects with ConfigRefused, or with a sentence about another obstacle; nothing is left running then. */
  static async start(options: DaemonOptions): Promise<Daemon> {
    const parts = await buildParts(options);
    options.onPlugins?.(parts);
    try {
      const check = await parts.config.loadFile();
      if (!check.ok) {
        await parts.attempt.end();
        throw new ConfigRefused(check);
      }
      for (const warning of check.loaded.warnings) parts.log.warn({ warning }, 'configuration');
      parts.config.commit(check.loaded);
      await parts.host.begin(check.loaded);
      const supervisor = new Supervisor(
        {
          clock: parts.clock,
          log: parts.log.child({ plugin: 'supervisor' }),
          status: parts.status,
          plugins: pluginsOf(parts),
        },
        check.loaded,
      );
      parts.active.shares = supervisor;
      parts.active.bandwidth = () => supervisor.bandwidth;
      const daemon = new Daemon(parts, supervisor, options.env);
      await daemon.#open();
      return daemon;
    } catch (error) {
      await parts.host.stop('shutdown');
      await closeParts(parts);
      throw error;
    }
  }

  /** Drains every share and stops. A second call ends the drain at once. */
  stop(): Promise<DaemonEnd> {
    if (this.#end) this.#hurry.abort(new Error('a second signal'));
    this.#end ??= this.#stop();
    return this.#end;
  }

  /** Ends only the daemon; mounts and servers keep running for the next one to adopt. */
  handOver(): Promise<DaemonEnd> {
    this.#end ??= this.#handOver();
    return this.#end;
  }

  /** Reads the configuration file again. A document that is not valid changes nothing. */
  reloadFile(): Promise<void> {
    return reloadFile(this.#parts);
  }

  /** What SIGHUP asks for: the log file is opened anew, configuration and plugin folders are read again. */
  readAgain(): Promise<void> {
    return this.#notifier.reloading(async () => {
      this.reopenLog();
      await this.reloadFile();
      await this.rediscover();
    });
  }

  /** Reads the plugin folders again; what changed takes effect at once. */
  rediscover(): Promise<void> {
    return this.#rediscovery.ask();
  }

  async #rediscover(): Promise<void> {
    const { config, host } = this.#parts;
    await this.#discover(() => config.current);
    await host.apply(config.current);
    // Shares that name no protocols are served by what is there now; all others stay as they are.
    this.#supervisor.applyConfig(config.current, false);
  }

  /**
   * Reads the plugin folders, and completes the document again with the plugins found now. The host puts
   * aside a plugin for which the document is invalid.
   */
  async #discover(current: () => LoadedConfig): Promise<void> {
    const { config, host, log } = this.#parts;
    const loaded = await discoverBy(current, (request) => host.discover(request));
    const check = await config.check(loaded.text, 'file');
    if (!check.ok)
      return log.warn(
        { problems: check.problems.map(({ message }) => message) },
        'the running configuration is not valid for the plugins found',
      );
    if (config.current === loaded) config.commit(check.loaded);
    if (this.#applied === loaded) this.#applied = check.loaded;
    this.#noticeLacks();
  }

  #noticeLacks(): void {
    const { host, status } = this.#parts;
    status.setStanding('protocols', protocolNotice(this.#applied.config, host.protocols()));
    status.setStanding('unfit', unfitNotice(this.#applied));
  }

  reopenLog(): void {
    const { log, logger } = this.#parts;
    try {
      logger.reopen();
    } catch (error) {
      log.error({ err: error }, 'the log file could not be reopened; lines still go to the old one');
    }
  }

  async #open(): Promise<void> {
    const { commands, config, clock, host, log } = this.#parts;
    await this.#supervisor.start();
    // The web server's routes take this process as long as a mount takes all others.
    await this.#supervisor.settled(SHARES_FIRST_MS);
    await host.apply(config.current);
    commands.consume((command) => this.#dispatch(command));
    await this.#entrance.listenForCommands(config.current.config.supervisor.state_dir);
    await this.#listen(config.current);
    const changed = (): void =>
      void this.reloadFile().catch((error: unknown) => {
        log.error({ err: error }, 'configuration file not reloaded; it is tried again');
        this.#again('read', changed);
      });
    this.#releases.push(
      await watchFiles({
        paths: [config.file],
        isKnown: (text) => config.isKnown(text),
        clock,
        log,
        onChange: changed,
      }),
    );
    // For changes saved during the start, before the watcher was running.
    if ((await readFile(config.file, 'utf8').catch(() => undefined)) !== config.current.text) changed();
    await this.#watchPluginDirs(config.current, this.#parts.pluginsReadAtMs);
    this.#warnIfUnguarded();
    this.#noticeLacks();
    await this.#endAttempt();
    await this.#noticeTakenBack();
    // Not before: whoever comes up meanwhile would be named for what the core reads and builds.
    this.#releases.push(this.#parts.stalls.watchLoop(clock, loopTimes));
    this.#notifier.ready();
    log.info(
      { version: await packageVersion(), shares: config.current.config.shares.length, pid: process.pid },
      'mountkeeper is up',
    );
  }

  async #endAttempt(): Promise<void> {
    const { attempt, log, status } = this.#parts;
    await attempt.end();
    if (!attempt.safeMode) return;
    const { message } = attempt.safeMode;
    log.warn(message);
    status.setStanding('safe-mode', { level: 'warning', message });
  }

  /** The Debian package starts the former version with this variable when the new one did not come up. */
  async #noticeTakenBack(): Promise<void> {
    const failed = process.env['MOUNTKEEPER_INSTEAD_OF'];
    if (failed === undefined || failed === '') return;
    const { log, status } = this.#parts;
    const message =
      `version ${failed} did not come up after its installation, so ${await packageVersion()} runs instead of ` +
      'it until another one is installed; the journal says why (journalctl -u mountkeeper)';
    log.warn(message);
    status.setStanding('taken-back', { level: 'warning', message });
  }

  #listen({ config: { web } }: LoadedConfig): Promise<void> {
    return this.#entrance.listen(web);
  }

  async #watchPluginDirs(loaded: LoadedConfig, readAtMs?: number): Promise<void> {
    const { clock, log } = this.#parts;
    const { plugins, supervisor } = loaded.config;
    const dirs = [...plugins.dirs, installedFolder(supervisor.state_dir)];
    await this.#pluginWatch?.();
    this.#pluginWatch = undefined;
    const onChange = (): void => this.#rediscovery.noticed();
    this.#pluginWatch = await watchPlugins({ dirs, readAtMs, clock, log, onChange });
  }

  /** Authentication plugins warn of their own gaps; without an active one nobody else would. */
  #warnIfUnguarded(): void {
    const { config, host, log, status } = this.#parts;
    const { listen } = config.current.config.web;
    const isGuarded = host.ledgers().some((ledger) => ledger.guard);
    const who = !isLoopback(listen)
      ? 'everyone who reaches it'
      : process.geteuid?.() === 0
        ? 'every local user of this machine'
        : undefined;
    const isOpen = !isGuarded && who !== undefined;
    const message =
      `the web interface listens on ${listen} and no plugin asks for a password; ` +
      `${who} can change everything`;
    status.setStanding('unguarded', isOpen ? { level: 'warning', message } : undefined);
    if (isOpen) log.warn({ listen, who }, 'web interface open without a password');
  }

  // ------------------------------------------------------------ commands

  async #dispatch(command: Command): Promise<void> {
    const [first] = command.args;
    if (command.name === 'reload') await this.#reloadOrAgain(first as LoadedConfig);
    if (command.name === 'bwlimit') this.#supervisor.setBandwidth(first as { up: string; down: string });
    if (command.name === 'reconnect') this.#supervisor.reconnect(first as string);
    // The command loop does not wait for slow delivery.
    if (command.name === 'notify')
      void this.#parts.host.hooks.observe(
        'notification',
        Object.freeze(structuredClone(first as NotificationEvent)),
      );
    await this.#parts.host.handle(command.name, command.args);
  }

  /** What fails half-way is done again from the beginning: as the running document, it would count as applied. */
  async #reloadOrAgain(next: LoadedConfig): Promise<void> {
    const { config, log, status } = this.#parts;
    const former = this.#applied;
    try {
      await applyWhole(status, () => this.#reload(next));
    } catch (error) {
      this.#applied = former;
      this.#again('apply', () => {
        // A later document takes this one's changes along.
        if (this.#applied === former)
          void sendCommand(this.#parts, 'reload', [config.current]).catch((err: unknown) =>
            log.error({ err }, 'configuration not applied'),
          );
      });
      throw error;
    }
  }

  /** Each once at a time, however often it fails meanwhile. */
  #again(what: 'read' | 'apply', act: () => void): void {
    this.#waiting.get(what)?.();
    const cancel = this.#parts.clock.after(AGAIN_MS, () => {
      if (!this.#end) act();
    });
    this.#waiting.set(what, cancel);
  }

  async #reload(next: LoadedConfig): Promise<void> {
    const { config, host, log } = this.#parts;
    const former = this.#applied;
    this.#applied = next;
    const diff = config.compare(former.config, next.config);
    if (diff.tier === undefined) return;
    log.info(
      { tier: diff.tier, changes: diff.changes.map((change) => change.path) },
      'configuration applied',
    );
    const isElsewhere = former.config.plugins.dirs.join() !== next.config.plugins.dirs.join();
    const isStale = host.isStale(enabledPlugins(next), isolationsOf(next));
    // Watched first: a change that comes while they are read is told of.
    if (isElsewhere) await this.#watchPluginDirs(next);
    if (isElsewhere || isStale) await this.#discover(() => next);
    await host.apply(this.#applied, diff);
    this.#supervisor.applyConfig(
      this.#applied,
      diff.changes.some((change) => change.tier === 'global' || change.tier === 'protocol'),
    );
    if (diff.changes.some(({ path }) => WEB_PLACE.test(path))) await this.#listen(next);
    this.#warnIfUnguarded();
    this.#noticeLacks();
    this.#parts.status.setStanding(
      'restart',
      restartNotice(config.compare(this.#startedWith.config, next.config)),
    );
    await host.hooks.observe('afterReload', next, diff);
  }

  // ------------------------------------------------------------ stopping

  async #stop(): Promise<DaemonEnd> {
    const { clock, config, host, log } = this.#parts;
    const stopTimeoutMs = durationMs(config.current.config.supervisor.stop_timeout);
    log.info(
      { stopTimeout: formatDuration(stopTimeoutMs) },
      'stopping: shares are drained, a second signal leaves at once',
    );
    this.#notifier.stopping(stopTimeoutMs);
    await this.#quiesce();
    const { left, isKnown } = await this.#supervisor.stop(clock.deadline(stopTimeoutMs, this.#hurry.signal));
    for (const share of left)
      log.warn(
        { share: share.share, files: share.count, bytes: share.bytes, paths: share.paths },
        'files are kept in the cache and go up at the next start',
      );
    await host.stop('shutdown');
    await this.#notifier.close();
    const filesLeft = left.reduce((sum, share) => sum + share.count, 0);
    log.info(isKnown ? { filesLeft } : { filesLeftAtLeast: filesLeft }, 'stopped');
    await closeParts(this.#parts);
    return { reason: 'stopped', left, isKnown };
  }

  async #handOver(): Promise<DaemonEnd> {
    this.#parts.log.info('handing over: mounts and servers go on for the next daemon');
    await this.#quiesce();
    await this.#supervisor.release();
    await this.#parts.host.stop('handover');
    await this.#notifier.close();
    await closeParts(this.#parts);
    return { reason: 'handed over', left: [], isKnown: true };
  }

  async #quiesce(): Promise<void> {
    // It ends while the shares are drained.
    void this.#parts.packages.close();
    await this.#parts.commands.close(this.#parts.clock.deadline(COMMAND_PATIENCE_MS, this.#hurry.signal));
    // After the commands: a reload that is running may still open it.
    await this.#entrance.close();
    await this.#pluginWatch?.();
    this.#rediscovery.close();
    for (const release of this.#releases.splice(0)) await release();
  }
}
