/**
 * The supervisor: keeps one runner per share and publishes the status. One cycle collects the figures of
 * all shares, divides the bandwidth and publishes. A cycle never waits for its slowest share, nor for a
 * plugin.
 */
import { setMaxListeners } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { durationMs } from '../sdk/units.ts';
import type { BandwidthState, LiveShare } from '../contract/shares.ts';
import type { Clock } from '../contract/platform.ts';
import type { Config, LoadedConfig } from '../contract/config.ts';
import type { Exporter } from '../contract/exporter.ts';
import type { Mount, Mounter, PendingFiles, Prober, ShareSpec } from '../contract/mount.ts';
import type { Notice } from '../contract/notifications.ts';
import type { ShareStatus, Snapshot, StatusRecord } from '../contract/status.ts';
import { BandwidthControl } from '../bandwidth/control.ts';
import type { HookRunner } from '../plugins/hooks.ts';
import { OrphanScan } from './orphans.ts';
import { endsWithin, pause, timeBox } from '../platform/deadline.ts';
import { ShareRunner } from './runner.ts';
import { specsOf, unconfiguredSpec } from './specs.ts';
import type { RunnerEnvironment } from './environment.ts';
import { troublesByShare, withTroubles } from './troubles.ts';
import type { Troubles } from './troubles.ts';
import { emptyRecord } from '../status.ts';
import type { StatusStore } from '../status.ts';

/** How long a cycle waits for figures before it publishes what it has. */
const COLLECT_WAIT_MS = 400;
/** State changes are published at once, but in a burst at most this often. */
const PUBLISH_BURST_MS = 25;
/** Interval of checks of the mounts, whatever the poll interval: a mount that hangs must be noticed soon. */
const HEARTBEAT_MS = 3_000;
const ADOPT_DEADLINE_MS = 30_000;
const LAST_SCAN_DEADLINE_MS = 60_000;

/** What the supervisor needs from the plugin host. */
export interface SupervisorPlugins {
  readonly hooks: HookRunner;
  mounter(): Mounter | undefined;
  prober(): Prober | undefined;
  exporters(): readonly Exporter[];
  statusFields(): Partial<StatusRecord>;
  /** Reads one share after another, within one turn. */
  shareReader(): (share: string) => Partial<ShareStatus>;
}

export interface SupervisorOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly status: StatusStore;
  readonly plugins: SupervisorPlugins;
}

/** Files that a stop had to leave in a share's cache. */
export interface LeftFiles extends PendingFiles {
  readonly share: string;
}

/** What a stop has left in the caches. */
export interface Leftovers {
  /** Files that were not uploaded yet; the next start uploads them. */
  readonly left: readonly LeftFiles[];
  /** False when the caches could not be read in full: more files may wait in them. */
  readonly isKnown: boolean;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #around: RunnerEnvironment;
  /** Shares that left the configuration stay here until they are unmounted. */
  readonly #runners = new Map<string, ShareRunner>();
  readonly #orphans: OrphanScan;
  readonly #bandwidth: BandwidthControl;
  readonly #end = new AbortController();
  /** Stopping or handing over: no share is mounted or kept any more. */
  #isLeaving = false;
  #config: Config;
  #mounter: Mounter | undefined;
  #publishTimer: (() => void) | undefined;
  #isTellingPlugins = false;
  /** As plugins last said. */
  #troubles: Troubles = new Map();
  #looping: Promise<void> | undefined;
  #lookIfSettled: () => void = () => undefined;

  constructor(options: SupervisorOptions, loaded: LoadedConfig) {
    this.#options = options;
    this.#config = loaded.config;
    const { clock, log, plugins } = options;
    const onChange = (): void => {
      this.#publishSoon();
      this.#lookIfSettled();
    };
    this.#around = {
      clock,
      log,
      onChange,
      hooks: () => plugins.hooks,
      mounter: () => plugins.mounter(),
      prober: () => plugins.prober(),
      exporters: () => plugins.exporters(),
      onUnmount: () => {
        this.#orphans.invalidate();
        void this.#orphans.scanWhenDue();
      },
    };
    this.#orphans = new OrphanScan({
      clock,
      log,
      mounter: () => plugins.mounter(),
      isMounted: (share) => this.#runners.get(share)?.mount !== undefined,
      onScanned: onChange,
    });
    this.#bandwidth = new BandwidthControl(loaded.config.bandwidth, {
      clock,
      log,
      resolve: (budget) => plugins.hooks.resolve('resolveBandwidth', budget),
      users: () =>
        [...this.#runners.values()].flatMap(({ mount, stats }) => (mount ? [{ mount, stats }] : [])),
    });
  }

  /** Every configured share as it is now; shares that are leaving are not included. */
  live(): readonly LiveShare[] {
    return [...this.#runners.values()].filter((runner) => !runner.isLeaving).map((runner) => runner.live);
  }

  /** One of them. */
  find(share: string): LiveShare | undefined {
    const runner = this.#runners.get(share);
    return runner?.isLeaving === false ? runner.live : undefined;
  }

  get bandwidth(): BandwidthState {
    return this.#bandwidth.state;
  }

  /** Adopts what a former daemon left, and starts a runner per share and the poll loop. */
  async start(): Promise<void> {
    const { plugins, log } = this.#options;
    this.#mounter = plugins.mounter();
    const adopted = new Map((await this.#adoptAll()).map((mount) => [mount.shareName, mount]));
    for (const spec of specsOf(this.#config)) {
      this.#addRunner(spec, adopted.get(spec.share.name));
      adopted.delete(spec.share.name);
    }
    for (const mount of adopted.values()) {
      log.info(
        { share: mount.shareName },
        'adopted a share that is no longer configured, it is drained and taken down',
      );
      this.#leave(this.#addRunner(unconfiguredSpec(mount), mount));
    }
    void this.#orphans.scanWhenDue();
    this.#publish();
    this.#looping = this.#loop();
  }

  /** Resolves when each share is up or has failed, after `ms` at the latest: for what would hold up their mounts. */
  async settled(ms: number): Promise<void> {
    const isSettled = (): boolean =>
      [...this.#runners.values()].every(({ health, mount }) => mount !== undefined || health === 'failed');
    const settling = new Promise<void>((resolve) => {
      this.#lookIfSettled = () => void (isSettled() && resolve());
    });
    this.#lookIfSettled();
    await endsWithin(this.#options.clock, ms, settling);
    this.#lookIfSettled = () => undefined;
  }

  /**
   * Applies an accepted document to the runners; the plugins have it already. Nothing once the end has begun: a
   * reload that is late would keep the shares that are being drained.
   */
  applyConfig(next: LoadedConfig, isMountAffected: boolean): void {
    if (this.#isLeaving) return;
    const former = this.#config;
    this.#config = next.config;
    const { up, down } = next.config.bandwidth;
    if (former.bandwidth.up !== up || former.bandwidth.down !== down) this.setBandwidth({ up, down });
    const mounter = this.#options.plugins.mounter();
    const everything = isMountAffected || mounter !== this.#mounter;
    if (everything) this.#orphans.invalidate();
    this.#mounter = mounter;
    const before = new Map(everything ? [] : specsOf(former).map((spec) => [spec.share.name, spec]));
    this.#align(specsOf(next.config), (spec) => !isDeepStrictEqual(before.get(spec.share.name), spec));
    this.#publishSoon();
  }

  /**
   * Replaces the budget until the next change of `[bandwidth]` or restart. A value that cannot be parsed
   * changes nothing.
   */
  setBandwidth(limit: { readonly up: string; readonly down: string }): void {
    this.#bandwidth.set(limit);
    void this.#bandwidth.divide();
  }

  reconnect(share: string): void {
    const runner = this.#runners.get(share);
    if (runner && !runner.isLeaving) runner.reconnect();
  }

  /** Drains and unmounts every share. `signal` limits the drain. Resolves with what is left in the caches. */
  async stop(signal: AbortSignal): Promise<Leftovers> {
    this.#isLeaving = true;
    // One listener per share on this signal is not a leak.
    setMaxListeners(0, signal);
    const runners = [...this.#runners.values()];
    await Promise.all(runners.map((runner) => runner.remove(signal)));
    await this.#endLoop();
    const seen = runners.flatMap(({ name, left }) => (left && left.count > 0 ? [[name, left] as const] : []));
    const isKnown = await this.#lastScan();
    const left = [...new Map([...seen, ...this.#orphans.list()])].map(([share, pending]) => ({
      share,
      ...pending,
    }));
    return { left, isKnown };
  }

  /** False when the caches could not be read in full. */
  async #lastScan(): Promise<boolean> {
    const { clock, log, plugins } = this.#options;
    // Without a mounter and without a share there is nothing that it could have left.
    if (this.#runners.size === 0 && !plugins.mounter()) return true;
    const scanning = timeBox(clock, LAST_SCAN_DEADLINE_MS, this.#orphans.scanNow());
    // The disk does not answer in time.
    const isRead = await scanning.catch(() => false);
    if (!isRead) log.error('the cache could not be read in full, more files than listed may wait in it');
    return isRead;
  }

  /** Leaves every mount for the next daemon. */
  async release(): Promise<void> {
    this.#isLeaving = true;
    await Promise.all([...this.#runners.values()].map((runner) => runner.release()));
    await this.#endLoop();
  }

  // ------------------------------------------------------------ runners

  async #adoptAll(): Promise<readonly Mount[]> {
    const { clock, log, plugins } = this.#options;
    const adopting = plugins.mounter()?.adopt();
    try {
      return adopting ? await timeBox(clock, ADOPT_DEADLINE_MS, adopting) : [];
    } catch (error) {
      log.error({ err: error }, 'living mounts not adopted');
      // They are mounted anew: whoever comes too late must not keep up what they replace.
      void adopting?.then(
        (late) => late.forEach((mount) => mount.release()),
        () => undefined,
      );
      return [];
    }
  }

  #addRunner(spec: ShareSpec, adopted?: Mount): ShareRunner {
    const runner = new ShareRunner(spec, this.#around, adopted);
    this.#runners.set(spec.share.name, runner);
    runner.start();
    return runner;
  }

  #align(specs: readonly ShareSpec[], isChanged: (spec: ShareSpec) => boolean): void {
    const wanted = new Set(specs.map((spec) => spec.share.name));
    for (const [name, runner] of this.#runners)
      if (!wanted.has(name) && !runner.isLeaving) this.#leave(runner);
    for (const spec of specs) {
      const runner = this.#runners.get(spec.share.name);
      if (!runner) this.#addRunner(spec);
      else if (runner.isLeaving) runner.keep(spec);
      else if (isChanged(spec)) runner.change(spec);
    }
  }

  /** Drains a share that left the configuration; it stays in the status until it is unmounted. */
  #leave(runner: ShareRunner): void {
    void runner.remove(this.#end.signal).then(() => {
      if (runner.isLeaving && !this.#end.signal.aborted) this.#runners.delete(runner.name);
      this.#publishSoon();
    });
  }

  // ------------------------------------------------------------ the cycle

  async #loop(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#end;
    while (!signal.aborted) {
      const began = clock.monotonic();
      await this.#cycle().catch((error: unknown) => log.error({ err: error }, 'cycle failed'));
      await pause(clock, Math.max(50, this.#restMs(began)), signal);
      while (!signal.aborted && this.#restMs(began) > 50) {
        void this.#pulseAll();
        await pause(clock, this.#restMs(began), signal);
      }
    }
  }

  #restMs(began: number): number {
    return Math.min(
      HEARTBEAT_MS,
      durationMs(this.#config.supervisor.poll_interval) - (this.#options.clock.monotonic() - began),
    );
  }

  async #endLoop(): Promise<void> {
    this.#end.abort(new Error('the supervisor has stopped'));
    this.#publishTimer?.();
    await this.#looping;
  }

  async #pulseAll(): Promise<void> {
    await Promise.all([...this.#runners.values()].map((runner) => runner.pulse()));
    // Checked independently of the poll interval, because people switch machines off when this is true.
    const { status } = this.#options;
    if (this.#isAllSynced() === status.snapshot.record.allSynced) status.confirm(this.#askedAtMs());
    else this.#publishSoon();
  }

  async #cycle(): Promise<void> {
    const began = this.#options.clock.monotonic();
    await endsWithin(this.#options.clock, COLLECT_WAIT_MS, this.#pulseAll());
    void this.#orphans.scanWhenDue();
    void this.#bandwidth.divide();
    const snapshot = this.#publish();
    void this.#tellPlugins(snapshot, this.#options.clock.monotonic() - began);
  }

  /** A slow plugin misses cycles; it delays none. */
  async #tellPlugins(snapshot: Snapshot, tookMs: number): Promise<void> {
    if (this.#isTellingPlugins) return;
    const { log, plugins, status } = this.#options;
    this.#isTellingPlugins = true;
    try {
      const [notices] = await Promise.all([
        plugins.hooks.collect('collectNotices'),
        this.#limitShares(),
        this.#hearTroubles(),
      ]);
      status.setNotices([...notices, ...this.#orphanNotices()]);
      await plugins.hooks.observe('afterCycle', snapshot, tookMs);
    } catch (error) {
      log.error({ err: error }, 'plugins not told of the cycle');
    } finally {
      this.#isTellingPlugins = false;
    }
  }

  async #limitShares(): Promise<void> {
    this.#bandwidth.limitShares(await this.#options.plugins.hooks.collect('collectShareLimits'));
    await this.#bandwidth.divide();
  }

  async #hearTroubles(): Promise<void> {
    const troubles = troublesByShare(await this.#options.plugins.hooks.collect('collectShareTroubles'));
    const isOther = !isDeepStrictEqual(troubles, this.#troubles);
    this.#troubles = troubles;
    if (isOther) this.#publishSoon();
  }

  #orphanNotices(): readonly Notice[] {
    return this.#orphans
      .list()
      .filter(([share]) => !this.#runners.has(share))
      .map(([share, { count }]) => ({
        level: 'warning',
        message:
          `${count} files of the share '${share}', which is not configured, wait in the cache; ` +
          'they go up once the share is configured again',
      }));
  }

  #publishSoon(): void {
    if (this.#publishTimer || this.#end.signal.aborted) return;
    this.#publishTimer = this.#options.clock.after(PUBLISH_BURST_MS, () => {
      this.#publishTimer = undefined;
      this.#publish();
      void this.#bandwidth.divide();
    });
  }

  #publish(): Snapshot {
    const { plugins, status } = this.#options;
    const read = plugins.shareReader();
    const shares = this.#inOrder().map((runner) => {
      runner.setFilesOnDisk(this.#orphans.count(runner.name));
      return { ...withTroubles(runner.status(), this.#troubles), ...read(runner.name) };
    });
    const { startedAt: _, ...defaults } = emptyRecord(0);
    const record = { ...defaults, ...plugins.statusFields(), shares, allSynced: this.#isAllSynced() };
    return status.publish(record, this.#askedAtMs());
  }

  /** In the order of the configuration; shares that are leaving come last. */
  #inOrder(): readonly ShareRunner[] {
    const configured = this.#config.shares.flatMap((share) => this.#runners.get(share.name) ?? []);
    return [...new Set([...configured, ...this.#runners.values()])];
  }

  /** When that share was asked whose figures are the oldest; now, when there is none. */
  #askedAtMs(): number {
    const asked = [...this.#runners.values()].map(({ askedAtMs }) => askedAtMs ?? Infinity);
    return Math.min(this.#options.clock.monotonic(), ...asked);
  }

  #isAllSynced(): boolean {
    return (
      this.#orphans.total === 0 &&
      [...this.#runners.values()].every((runner) => !runner.isLeaving && runner.isSynced)
    );
  }
}
