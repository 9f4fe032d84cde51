/**
 * The supervisor: keeps one runner per share and publishes the status. One cycle = collect from all, divide the bandwidth,
 * publish. A cycle never waits for its slowest share.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { durationMs, rateBytes } from './api.ts';
import type { Bandwidth, Clock, Config, Exporter, LoadedConfig, Mount, Mounter, PendingFiles, Prober, ShareSpec, ShareStatus, StatusRecord } from './api.ts';
import { divideBandwidth } from './bandwidth.ts';
import type { HookRunner } from './hooks.ts';
import { OrphanScan } from './orphans.ts';
import { ShareRunner } from './share-runner.ts';
import type { RunnerSurroundings } from './share-runner.ts';
import { emptyRecord } from './status.ts';
import type { StatusStore } from './status.ts';

/** How long a cycle waits for figures before it publishes what it has. */
const COLLECT_WAIT_MS = 400;
/** Changes of state are published at once, but a burst of them only so often. */
const PUBLISH_BURST_MS = 25;
const BANDWIDTH_DEADLINE_MS = 2_000;

/** What the supervisor needs from the plugin host. */
export interface SupervisorPlugins {
  readonly hooks: HookRunner;
  mounter(): Mounter | undefined;
  prober(): Prober | undefined;
  exporters(): readonly Exporter[];
  statusFields(): Partial<StatusRecord>;
  shareStatus(share: string): Partial<ShareStatus>;
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

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #around: RunnerSurroundings;
  readonly #runners = new Map<string, ShareRunner>();
  readonly #leaving = new Map<string, ShareRunner>();
  readonly #orphans: OrphanScan;
  readonly #end = new AbortController();
  readonly #givenBandwidth = new WeakMap<Mount, string>();
  #config: Config;
  #budget: Bandwidth;
  #mounter: Mounter | undefined;
  #isStopping = false;
  #publishTimer: (() => void) | undefined;
  #looping: Promise<void> | undefined;

  constructor(options: SupervisorOptions, loaded: LoadedConfig) {
    this.#options = options;
    this.#config = loaded.config;
    this.#budget = budgetOf(loaded.config);
    const { clock, log, plugins } = options;
    this.#around = {
      clock, log,
      hooks: () => plugins.hooks,
      mounter: () => plugins.mounter(),
      prober: () => plugins.prober(),
      exporters: () => plugins.exporters(),
      onChange: () => this.#publishSoon(),
    };
    this.#orphans = new OrphanScan({ clock, log, mounter: () => plugins.mounter(), isMounted: (share) => this.#isMounted(share) });
  }

  /** Adopts what a former daemon left, starts a runner per share and the poll loop. */
  async start(): Promise<void> {
    const { plugins, log } = this.#options;
    this.#mounter = plugins.mounter();
    const adopted = new Map((await this.#adoptAll()).map((mount) => [mount.shareName, mount]));
    for (const spec of specsOf(this.#config)) {
      this.#addRunner(spec, adopted.get(spec.share.name));
      adopted.delete(spec.share.name);
    }
    for (const mount of adopted.values()) {
      log.info({ share: mount.shareName }, 'adopted a share that is no longer configured, it is drained and taken down');
      this.#leave(new ShareRunner(orphanSpec(mount), this.#around, mount));
    }
    this.#looping = this.#loop();
  }

  /** Brings the runners in line with an accepted document; the plugins have it already. */
  applyConfig(next: LoadedConfig, isMountAffected: boolean): void {
    const former = this.#config;
    this.#config = next.config;
    if (!isDeepStrictEqual(former.bandwidth, next.config.bandwidth)) this.#budget = budgetOf(next.config);
    const mounter = this.#options.plugins.mounter();
    const everything = isMountAffected || mounter !== this.#mounter;
    this.#mounter = mounter;
    const wanted = new Map(specsOf(next.config).map((spec) => [spec.share.name, spec]));
    for (const [name, runner] of this.#runners) {
      if (wanted.has(name)) continue;
      this.#runners.delete(name);
      this.#leave(runner);
    }
    const before = new Map(specsOf(former).map((spec) => [spec.share.name, spec]));
    for (const [name, spec] of wanted) {
      const runner = this.#runners.get(name);
      if (!runner) this.#addRunner(spec);
      else if (everything || !isDeepStrictEqual(before.get(name), spec)) runner.change(spec);
    }
    this.#publishSoon();
  }

  /** Replaces the budget until the next change of `[bandwidth]` or restart. A value that cannot be read changes nothing. */
  setBandwidth(limit: { readonly up: string; readonly down: string }): void {
    try {
      this.#budget = { up: rateBytes(limit.up), down: rateBytes(limit.down) };
      this.#options.log.info(this.#budget, 'bandwidth limit set');
    } catch (error) {
      this.#options.log.warn({ ...limit, reason: (error as Error).message }, 'bandwidth limit not understood, nothing changed');
    }
    void this.#divideBandwidth();
  }

  reconnect(share: string): void {
    this.#runners.get(share)?.reconnect();
  }

  /** Drains every share and takes it down. `signal` bounds the drain. Resolves with what is left in the caches. */
  async stop(signal: AbortSignal): Promise<readonly LeftFiles[]> {
    this.#isStopping = true;
    const all = [...this.#runners.values(), ...this.#leaving.values()];
    await Promise.all(all.map((runner) => runner.remove(signal)));
    await this.#endLoop();
    const left = (await this.#orphans.scan()) ?? new Map<string, PendingFiles>();
    return [...left].map(([share, pending]) => ({ share, ...pending }));
  }

  /** Lets go of every mount for the next daemon. */
  async release(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#runners.values(), ...this.#leaving.values()].map((runner) => runner.release()));
    await this.#endLoop();
  }

  // ------------------------------------------------------------ runners

  async #adoptAll(): Promise<readonly Mount[]> {
    try {
      return (await this.#options.plugins.mounter()?.adopt()) ?? [];
    } catch (error) {
      this.#options.log.error({ err: error }, 'living mounts not adopted');
      return [];
    }
  }

  #addRunner(spec: ShareSpec, adopted?: Mount): void {
    const runner = new ShareRunner(spec, this.#around, adopted);
    this.#runners.set(spec.share.name, runner);
    const leaving = this.#leaving.get(spec.share.name);
    if (leaving) return;
    runner.start();
  }

  /** Drains a share that left the configuration; it stays in the status until it is down. */
  #leave(runner: ShareRunner): void {
    this.#leaving.set(runner.name, runner);
    void runner.remove(this.#end.signal).finally(() => {
      this.#leaving.delete(runner.name);
      if (!this.#isStopping) this.#runners.get(runner.name)?.start();
      this.#orphans.invalidate();
      this.#publishSoon();
    });
  }

  #isMounted(share: string): boolean {
    return this.#runners.get(share)?.mount !== undefined || this.#leaving.get(share)?.mount !== undefined;
  }

  // ------------------------------------------------------------ the cycle

  async #loop(): Promise<void> {
    const { clock, log } = this.#options;
    while (!this.#end.signal.aborted) {
      const began = clock.monotonic();
      await this.#cycle().catch((error: unknown) => log.error({ err: error }, 'cycle failed'));
      const rest = durationMs(this.#config.supervisor.poll_interval) - (clock.monotonic() - began);
      await clock.sleep(Math.max(50, rest), this.#end.signal).catch(() => undefined);
    }
  }

  async #endLoop(): Promise<void> {
    this.#end.abort(new Error('the supervisor has stopped'));
    this.#publishTimer?.();
    await this.#looping;
  }

  async #cycle(): Promise<void> {
    const { clock, plugins, status } = this.#options;
    const enough = new AbortController();
    const pulses = [...this.#runners.values(), ...this.#leaving.values()].map((runner) => runner.watch?.pulse());
    await Promise.race([Promise.all(pulses), clock.sleep(COLLECT_WAIT_MS, enough.signal).catch(() => undefined)]);
    enough.abort();
    void this.#orphans.scanWhenDue();
    void this.#divideBandwidth();
    status.setNotices(await plugins.hooks.collect('collectNotices'));
    await plugins.hooks.observe('afterCycle', this.#publish());
  }

  #publishSoon(): void {
    if (this.#publishTimer || this.#end.signal.aborted) return;
    this.#publishTimer = this.#options.clock.after(PUBLISH_BURST_MS, () => {
      this.#publishTimer = undefined;
      this.#publish();
    });
  }

  #publish(): ReturnType<StatusStore['publish']> {
    const { plugins, status } = this.#options;
    const leaving = [...this.#leaving.values()].filter((runner) => !this.#runners.has(runner.name));
    const shares = [...this.#runners.values(), ...leaving].map((runner) => {
      runner.setOrphans(this.#orphans.count(runner.name));
      return { ...runner.status(), ...plugins.shareStatus(runner.name) };
    });
    const { startedAt: _, ...defaults } = emptyRecord(0);
    return status.publish({ ...defaults, ...plugins.statusFields(), shares, allSynced: this.#isAllSynced() });
  }

  #isAllSynced(): boolean {
    return this.#leaving.size === 0 && this.#orphans.total === 0 && [...this.#runners.values()].every((runner) => runner.isSynced);
  }

  async #divideBandwidth(): Promise<void> {
    const { clock, log, plugins } = this.#options;
    const budget = plugins.hooks.resolve('resolveBandwidth', this.#budget);
    const mounted = [...this.#runners.values(), ...this.#leaving.values()].flatMap((runner) => (runner.mount ? [{ mount: runner.mount, stats: runner.watch?.stats }] : []));
    const parts = divideBandwidth(budget, mounted.map(({ mount, stats }) => ({ share: mount.shareName, up: stats?.uploading === true, down: (stats?.transfers ?? 0) > 0 })));
    await Promise.all(mounted.map(async ({ mount }) => {
      const part = parts.get(mount.shareName) ?? budget;
      const given = `${part.up}:${part.down}`;
      if ((this.#givenBandwidth.get(mount) ?? (mount.adopted ? undefined : '0:0')) === given) return;
      this.#givenBandwidth.set(mount, given);
      await mount.setBandwidth(part, clock.deadline(BANDWIDTH_DEADLINE_MS, this.#end.signal)).catch((error: unknown) => {
        this.#givenBandwidth.delete(mount);
        log.debug({ share: mount.shareName, err: error }, 'bandwidth not set');
      });
    }));
  }
}

function budgetOf(config: Config): Bandwidth {
  return { up: rateBytes(config.bandwidth.up), down: rateBytes(config.bandwidth.down) };
}

/** Every share with its connection; a share whose connection is missing cannot pass validation. */
export function specsOf(config: Config): readonly ShareSpec[] {
  const connections = new Map(config.connections.map((connection) => [connection.name, connection]));
  return config.shares.flatMap((share) => {
    const connection = connections.get(share.connection);
    return connection ? [{ share, connection }] : [];
  });
}

/** Enough of a spec for a runner that only drains and unmounts. */
function orphanSpec(mount: Mount): ShareSpec {
  return {
    share: { name: mount.shareName, connection: '', remote_path: '', mount_point: mount.plan.mountPoint, read_only: false, protocols: [] },
    connection: { name: '', type: '', options: {} },
  };
}
