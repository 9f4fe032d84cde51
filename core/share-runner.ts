/**
 * One runner per share: brings it up, watches it, heals it and takes it down, on its own and without ever waiting for another
 * share. The supervisor only tells it what is wanted.
 */
import type { Logger } from 'pino';
import type { Clock, Exporter, Health, Mount, Mounter, Prober, ShareSpec, ShareStatus } from './api.ts';
import type { HookRunner } from './hooks.ts';
import { PENDING, nextState, probeBackoffMs, remountBackoffMs } from './share.ts';
import type { ShareEvent, ShareState } from './share.ts';
import { drain } from './share-drain.ts';
import { expose, withdraw } from './share-exposure.ts';
import { emptyShareStatus } from './status.ts';
import { ShareWatch } from './share-watch.ts';

/** A mount that lived at least this long did not die early. */
const SETTLED_MS = 2_000;
/** While a change of settings waits for dirty files, how long writers may go on before new writes are refused. */
const GENTLE_DRAIN_MS = 10_000;

/** What the runner needs from the supervisor; getters, since plugins come and go. */
export interface RunnerSurroundings {
  readonly clock: Clock;
  readonly log: Logger;
  readonly hooks: () => HookRunner;
  readonly mounter: () => Mounter | undefined;
  readonly prober: () => Prober | undefined;
  readonly exporters: () => readonly Exporter[];
  readonly onChange: () => void;
}

type Poke = 'exited' | 'hung' | 'reset' | 'changed' | 'goal';
type Goal = 'up' | 'gone' | 'released';

export class ShareRunner {
  readonly #around: RunnerSurroundings;
  #spec: ShareSpec;
  #former: { readonly mount: Mount; readonly spec: ShareSpec; readonly plan: Mount['plan'] } | undefined;
  #isForced = false;
  #goal: Goal = 'up';
  #state: ShareState = PENDING;
  #mount: Mount | undefined;
  #watch: ShareWatch | undefined;
  #mountedAt = 0;
  #earlyDeaths = 0;
  #failures = 0;
  #exitReason = '';
  #orphans = 0;
  #pokes = new Set<Poke>();
  #wake = new AbortController();
  #isWaitingForChange = false;
  #running: Promise<void> | undefined;

  constructor(spec: ShareSpec, around: RunnerSurroundings, adopted?: Mount) {
    this.#spec = spec;
    this.#around = around;
    if (!adopted) return;
    this.#state = nextState(this.#state, { kind: 'mounted' });
    this.#take(adopted, spec);
    this.#pokes.add('changed');
  }

  get name(): string {
    return this.#spec.share.name;
  }

  get mount(): Mount | undefined {
    return this.#mount;
  }

  get watch(): ShareWatch | undefined {
    return this.#watch;
  }

  get health(): Health {
    return this.#state.health;
  }

  /** True only when it is known that nothing of this share waits anywhere. */
  get isSynced(): boolean {
    return this.#state.health === 'healthy' && this.#watch?.isSynced === true;
  }

  start(): void {
    this.#running ??= this.#run().catch((error: unknown) => {
      this.#around.log.fatal({ share: this.name, err: error }, 'share runner failed');
    });
  }

  /** Resets the share for a fresh probe, also out of a back-off; a change that waits for dirty files is then carried out at once. */
  reconnect(): void {
    this.#isForced = this.#isWaitingForChange;
    this.#poke('reset');
  }

  /** Wants other settings; a mount that they do not touch stays as it is. */
  change(spec: ShareSpec): void {
    this.#spec = spec;
    this.#poke('changed');
  }

  /** Takes the share down for good. `signal` bounds the drain; resolves when it is down. */
  async remove(signal: AbortSignal): Promise<void> {
    this.#goal = 'gone';
    this.#poke('goal');
    await this.#running;
    if (this.#mount) await this.#takeDown({ seal: true, signal });
  }

  /** Lets go of a living mount for the next daemon to adopt. */
  async release(): Promise<void> {
    this.#goal = 'released';
    this.#poke('goal');
    await this.#running;
    this.#watch?.stop();
    this.#mount?.release();
  }

  /** Dirty files found on disk while the share is not mounted. */
  setOrphans(count: number): void {
    this.#orphans = count;
  }

  status(): ShareStatus {
    const mount = this.#mount;
    const stats = this.#watch?.stats;
    const isFresh = this.#watch?.isFresh === true;
    return {
      ...emptyShareStatus(this.name),
      mounted: mount !== undefined,
      rcPort: mount?.rcPort ?? 0,
      cacheBytes: stats?.cacheBytes ?? 0,
      dirtyCount: mount ? (stats?.dirtyFiles ?? 0) : this.#orphans,
      erroredFiles: stats?.erroredFiles ?? 0,
      speed: isFresh ? (stats?.speed ?? 0) : 0,
      transfers: isFresh ? (stats?.transfers ?? 0) : 0,
      errors: stats?.errors ?? 0,
      health: this.#state.health,
      healthMessage: this.#state.health === 'failed' ? this.#state.reason : (this.#watch?.trouble ?? null),
    };
  }

  // ------------------------------------------------------------ the loop

  async #run(): Promise<void> {
    while (this.#goal === 'up') {
      if (this.#mount === undefined) await this.#bringUp();
      else await this.#attend(this.#mount);
    }
  }

  async #bringUp(): Promise<void> {
    this.#renewWake('changed', 'reset');
    const { signal } = this.#wake;
    const spec = await this.#specToMount();
    const reason = await this.#probeAndMount(spec, signal);
    if (spec !== this.#spec) this.#pokes.add('changed');
    if (reason === undefined || this.#goal !== 'up') return;
    if (!signal.aborted) {
      this.#failures += 1;
      this.#enter({ kind: 'fail', reason });
      await this.#pause(probeBackoffMs(this.#failures));
    }
    if (this.#pokes.has('reset') || this.#pokes.has('changed')) this.#enter({ kind: 'reset' });
  }

  /** The former settings, as long as dirty files wait for them in a place that the new ones do not lead to. */
  async #specToMount(): Promise<ShareSpec> {
    const former = this.#former;
    if (!former || this.#isForced || former.plan.identity === this.#around.mounter()?.plan(this.#spec).identity) return this.#spec;
    const left = await former.mount.pending().catch(() => undefined);
    if (left?.count === 0) return this.#spec;
    this.#around.log.warn({ share: this.name, files: left?.count }, 'mounted with its former settings until its dirty files are on the remote');
    return former.spec;
  }

  /** Undefined when the share is mounted; else why not. */
  async #probeAndMount(spec: ShareSpec, signal: AbortSignal): Promise<string | undefined> {
    const mounter = this.#around.mounter();
    if (!mounter) return 'no mounter is active; see `mountkeeper plugin list`';
    this.#enter({ kind: 'probe' });
    const probed = await this.#around.prober()?.probe(spec, signal);
    if (probed && !probed.ok) return probed.reason;
    if (signal.aborted) return 'interrupted';
    const veto = await this.#around.hooks().veto('beforeMount', spec.share.name);
    if (veto !== undefined) return veto;
    try {
      const mount = await mounter.mount(spec, signal);
      this.#take(mount, spec);
    } catch (error) {
      return (error as Error).message;
    }
    this.#failures = 0;
    this.#enter({ kind: 'mounted' });
    if (this.#mount) await expose(this.#around, spec, this.#mount);
    await this.#around.hooks().observe('afterMount', spec.share.name);
    return undefined;
  }

  /** Waits for the next thing that concerns a living mount and deals with it. */
  async #attend(mount: Mount): Promise<void> {
    if (this.#pokes.size === 0) await this.#pause();
    if (this.#goal !== 'up') return;
    this.#wake = new AbortController();
    if (this.#pokes.delete('exited')) return this.#bury(mount, this.#exitReason);
    if (this.#pokes.delete('hung')) return this.#bury(mount, 'the mount hangs: neither it nor its remote control answers; it is killed and mounted again');
    if (this.#pokes.delete('reset')) return this.#reset();
    if (this.#pokes.delete('changed')) return this.#applyChange(mount);
  }

  async #bury(mount: Mount, reason: string): Promise<void> {
    const livedMs = this.#around.clock.monotonic() - this.#mountedAt;
    this.#earlyDeaths = livedMs < SETTLED_MS ? this.#earlyDeaths + 1 : 1;
    this.#around.log.warn({ share: this.name, reason, livedMs: Math.round(livedMs) }, 'mount lost');
    this.#enter({ kind: 'fail', reason });
    this.#letGo();
    await mount.kill().catch((error: unknown) => this.#around.log.error({ share: this.name, err: error }, 'dead mount not cleared'));
    await withdraw(this.#around, this.name);
    await this.#pause(remountBackoffMs(this.#earlyDeaths));
  }

  async #reset(): Promise<void> {
    this.#enter({ kind: 'reset' });
    this.#failures = 0;
    await this.#takeDown({ seal: false, signal: AbortSignal.abort() });
  }

  async #applyChange(mount: Mount): Promise<void> {
    const plan = this.#around.mounter()?.plan(this.#spec);
    if (plan?.fingerprint === mount.plan.fingerprint) {
      await expose(this.#around, this.#spec, mount);
      return;
    }
    this.#around.log.info({ share: this.name }, 'share waits for its dirty files before it is mounted with the new settings');
    this.#isWaitingForChange = true;
    await this.#drainForChange(mount, plan?.identity !== mount.plan.identity);
    this.#isWaitingForChange = false;
    if (this.#goal !== 'up' || this.#pokes.has('exited') || this.#pokes.has('hung')) {
      this.#pokes.add('changed');
      return;
    }
    await this.#reset();
  }

  /** Where dirty files would go elsewhere, the wait ends only by a clean share or a reconnect; else the cache keeps them. */
  async #drainForChange(mount: Mount, placeChanges: boolean): Promise<void> {
    const { clock } = this.#around;
    const { signal } = this.#wake;
    const common = { mount, clock, freshStats: () => this.#freshStats() };
    const isClean = await drain({ ...common, seal: false, signal: clock.deadline(GENTLE_DRAIN_MS, signal) });
    if (isClean && !placeChanges) return;
    await drain({ ...common, seal: true, signal: placeChanges ? signal : clock.deadline(GENTLE_DRAIN_MS, signal) });
  }

  // ------------------------------------------------------------ up and down

  #take(mount: Mount, spec: ShareSpec): void {
    this.#mount = mount;
    this.#former = { mount, spec, plan: mount.plan };
    this.#isForced = false;
    this.#mountedAt = this.#around.clock.monotonic();
    this.#orphans = 0;
    this.#watch = new ShareWatch({
      mount,
      clock: this.#around.clock,
      log: this.#around.log,
      onHung: () => this.#poke('hung'),
      onChange: this.#around.onChange,
    });
    void mount.exited.then((reason) => {
      if (this.#mount !== mount) return;
      this.#exitReason = reason;
      this.#poke('exited');
    });
  }

  #letGo(): void {
    this.#watch?.stop();
    this.#watch = undefined;
    this.#mount = undefined;
    for (const poke of ['exited', 'hung'] as const) this.#pokes.delete(poke);
  }

  async #takeDown(options: { readonly seal: boolean; readonly signal: AbortSignal }): Promise<void> {
    const mount = this.#mount;
    if (!mount) return;
    await withdraw(this.#around, this.name);
    const wasHung = this.#watch !== undefined && !this.#watch.isFresh && this.#watch.stats !== undefined;
    if (!options.signal.aborted) await this.#drainToTheEnd(mount, options);
    this.#letGo();
    await (wasHung ? mount.kill() : mount.unmount()).catch((error: unknown) => {
      this.#around.log.error({ share: this.name, err: error }, 'share not unmounted cleanly');
    });
    await this.#reportLeft(mount);
    await this.#around.hooks().observe('afterUnmount', this.name);
    this.#around.onChange();
  }

  async #drainToTheEnd(mount: Mount, options: { readonly seal: boolean; readonly signal: AbortSignal }): Promise<void> {
    let last = -1;
    await drain({
      mount, clock: this.#around.clock, freshStats: () => this.#freshStats(), ...options,
      onProgress: (dirtyFiles) => {
        if (dirtyFiles !== last) this.#around.log.info({ share: this.name, dirtyFiles }, 'draining');
        last = dirtyFiles;
      },
    });
  }

  async #reportLeft(mount: Mount): Promise<void> {
    const left = await mount.pending().catch(() => undefined);
    this.#orphans = left?.count ?? 0;
    if (left && left.count > 0) this.#around.log.warn({ share: this.name, files: left.count, bytes: left.bytes, first: left.paths.slice(0, 5) }, 'files wait in the cache for the next mount');
  }

  // ------------------------------------------------------------ small parts

  async #freshStats(): Promise<Awaited<ReturnType<ShareWatch['freshStats']>>> {
    if (!this.#watch) throw new Error('not mounted');
    return this.#watch.freshStats();
  }

  #enter(event: ShareEvent): void {
    const from = this.#state.health;
    this.#state = nextState(this.#state, event);
    const reason = this.#state.health === 'failed' ? this.#state.reason : null;
    if (reason !== null) this.#around.log.warn({ share: this.name, reason }, 'share failed');
    this.#around.onChange();
    if (from === this.#state.health) return;
    void this.#around.hooks().observe('shareHealthChanged', { share: this.name, from, to: this.#state.health, reason });
  }

  #poke(what: Poke): void {
    this.#pokes.add(what);
    this.#wake.abort(new Error(what));
  }

  /** Until the next poke, or for `ms`. A poke that came before counts. */
  async #pause(ms?: number): Promise<void> {
    if (this.#pokes.size > 0) return;
    this.#wake = new AbortController();
    const { signal } = this.#wake;
    if (ms !== undefined) return void (await this.#around.clock.sleep(ms, signal).catch(() => undefined));
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  }

  /** Forgets the pokes that are dealt with, so that the wake signal stands for new ones only. */
  #renewWake(...dealtWith: readonly Poke[]): void {
    for (const poke of dealtWith) this.#pokes.delete(poke);
    this.#wake = new AbortController();
  }
}
