/**
 * One runner per share: brings it up, watches it, heals it and takes it down, on its own and without ever
 * waiting for another share. The supervisor only tells it what is wanted; what it is told waits in its inbox
 * and is dealt with one at a time.
 */
import type { Health, ShareStatus } from '../contract/status.ts';
import type { LiveShare } from '../contract/shares.ts';
import type { Mount, MountStats, PendingFiles, ShareSpec } from '../contract/mount.ts';
import { probeBackoffMs, remountBackoffMs } from './state-machine.ts';
import { NOTES, describeShare } from './description.ts';
import { expose, withdraw } from './exposure.ts';
import type { ActiveMount } from './active-mount.ts';
import { ShareHealth } from './health.ts';
import { ShareHolding } from './share-state.ts';
import { EVERYTHING, Inbox } from './inbox.ts';
import { discard, drainForChange, drainToTheEnd, leftIn, lower } from './unmounting.ts';
import { mountShare } from './mounting.ts';
import type { MountedShare } from './mounting.ts';
import { ShareSettings } from './settings.ts';
import type { RunnerEnvironment } from './environment.ts';

/** A mount that lived at least this long did not die early. */
const SETTLED_MS = 2_000;
/** Rest after an unexpected error, so that it cannot make a busy loop. */
const STUMBLE_MS = 1_000;

type Goal = 'up' | 'gone' | 'released';

export class ShareRunner {
  readonly #around: RunnerEnvironment;
  readonly #inbox: Inbox;
  readonly #health: ShareHealth;
  readonly #settings: ShareSettings;
  readonly #holding: ShareHolding;
  #goal: Goal = 'up';
  #limit = new AbortController();
  #earlyDeaths = 0;
  #failures = 0;
  #running: Promise<void> | undefined;

  constructor(spec: ShareSpec, around: RunnerEnvironment, adopted?: Mount) {
    this.#around = around;
    this.#inbox = new Inbox(around.clock);
    this.#health = new ShareHealth(spec.share.name, around);
    this.#settings = new ShareSettings(spec, around);
    this.#holding = new ShareHolding({ around, inbox: this.#inbox, pending: () => this.#settings.pending() });
    if (!adopted) return;
    this.#settings.mounted(this.#holding.hold(adopted, this.#settings.ofAdopted(adopted.plan)));
    this.#inbox.put('changed');
  }

  get name(): string {
    return this.#settings.wanted.share.name;
  }

  get mount(): Mount | undefined {
    return this.#holding.held?.mount;
  }

  get stats(): MountStats | undefined {
    return this.#holding.held?.watch.stats;
  }

  get health(): Health {
    return this.#health.state.health;
  }

  /** The share as plugins see it. */
  get live(): LiveShare {
    return this.#holding.live(this.#settings.wanted, this.health);
  }

  /** True from the wish to take the share down for good. */
  get isLeaving(): boolean {
    return this.#goal === 'gone';
  }

  /** True only when it is known that nothing of this share waits anywhere. */
  get isSynced(): boolean {
    return this.#health.state.health === 'healthy' && this.#holding.held?.watch.isSynced === true;
  }

  /** What its cache held after it was last taken down; undefined when that is not known. */
  get left(): PendingFiles | undefined {
    return this.#holding.left;
  }

  start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** One round of figures. Resolves when they are in or overdue; never rejects. */
  async pulse(): Promise<void> {
    await this.#holding.held?.watch.pulse();
  }

  /**
   * Resets the share for a fresh probe, also out of a back-off; a change that waits for dirty files is then
   * carried out at once.
   */
  reconnect(): void {
    this.#settings.force();
    this.#inbox.put('reset');
  }

  /** Wants other settings; a mount that they do not touch stays as it is. */
  change(spec: ShareSpec): void {
    this.#inbox.put(this.#settings.want(spec) ? 'refreshed' : 'changed');
  }

  /** Wants a share back that is being taken down. */
  keep(spec: ShareSpec): void {
    if (this.#goal !== 'gone') return;
    this.#limit = new AbortController();
    this.#setGoal('up');
    this.change(spec);
    const again = (): void => void (this.#goal === 'up' && this.start());
    if (this.#running) void this.#running.then(again);
    else again();
  }

  /**
   * Takes the share down for good. `signal` bounds the drain; resolves when it is down, or is wanted back and
   * down later.
   */
  async remove(signal: AbortSignal): Promise<void> {
    const limit = this.#limit;
    if (signal.aborted) limit.abort();
    else signal.addEventListener('abort', () => limit.abort(), { once: true });
    if (this.#goal === 'up') this.#setGoal('gone');
    this.start();
    await this.#running;
    await this.#health.farewell();
  }

  /** Lets go of a active mount for the next daemon to adopt. */
  async release(): Promise<void> {
    this.#setGoal('released');
    await this.#running;
    this.#holding.release();
  }

  /** Dirty files found on disk while the share is not mounted; undefined while the disk has not been read. */
  setFilesOnDisk(count: number | undefined): void {
    this.#holding.foundOnDisk(count);
  }

  status(): ShareStatus {
    const note = this.isLeaving ? NOTES.leaving : this.#settings.note;
    return describeShare({
      name: this.name,
      state: this.#health.state,
      active: this.#holding.held,
      filesOnDisk: this.#holding.filesOnDisk,
      note,
    });
  }

  // ------------------------------------------------------------ the loop

  async #run(): Promise<void> {
    if (this.#holding.held && this.#health.state.health === 'pending') this.#announce(this.#holding.held);
    while (this.#goal === 'up' || (this.#goal === 'gone' && this.#holding.held)) {
      try {
        await this.#step();
      } catch (error) {
        await this.#stumble(error);
      }
    }
  }

  async #step(): Promise<void> {
    this.#inbox.take('goal');
    const active = this.#holding.held;
    if (this.#goal === 'gone') return active ? this.#leave(active) : undefined;
    await (active ? this.#attend(active) : this.#mount());
  }

  async #stumble(error: unknown): Promise<void> {
    this.#around.log.error({ share: this.name, err: error }, 'share runner failed and goes on');
    if (!this.#holding.held)
      this.#health.enter({ kind: 'fail', reason: `unexpected error: ${(error as Error).message}` });
    await this.#around.clock.sleep(STUMBLE_MS);
  }

  async #mount(): Promise<void> {
    this.#inbox.take('exited', 'hung', 'reset', 'changed', 'refreshed');
    const spec = await this.#settings.choose();
    if (this.#around.mounter()) this.#health.enter({ kind: 'probe' });
    const mounted = await this.#inbox.during(['reset', 'changed', 'goal'], (signal) =>
      mountShare({
        around: this.#around,
        spec,
        signal,
        onLate: (mount) => (this.#goal === 'released' ? mount.release() : discard(this.#around, mount)),
      }),
    );
    if ('mount' in mounted) return this.#settle(mounted.mount, spec);
    await this.#fail(mounted);
  }

  async #fail({ reason, remote }: Extract<MountedShare, { reason: string }>): Promise<void> {
    this.#settings.failed();
    if (!this.#inbox.has('reset', 'changed', 'goal')) {
      this.#failures += 1;
      this.#health.enter({ kind: 'fail', reason, remote });
      await this.#inbox.wait(['reset', 'changed', 'refreshed', 'goal'], probeBackoffMs(this.#failures));
    }
    if (!this.#inbox.has('reset', 'changed', 'goal')) return;
    this.#failures = 0;
    this.#health.enter({ kind: 'reset' });
  }

  async #settle(mount: Mount, spec: ShareSpec): Promise<void> {
    this.#failures = 0;
    const active = this.#holding.hold(mount, spec);
    if (!this.#settings.mounted(active)) this.#inbox.put('changed');
    this.#announce(active);
    await expose(this.#around, spec, mount);
  }

  /** Waits for the next thing that concerns a active mount and deals with it. */
  async #attend(active: ActiveMount): Promise<void> {
    await this.#inbox.wait(EVERYTHING);
    if (this.#goal !== 'up') return;
    if (this.#inbox.take('exited')) return this.#bury(active, 'dead', this.#holding.exitReason);
    if (this.#inbox.take('hung')) return this.#bury(active, 'hung', NOTES.hung);
    if (this.#inbox.take('reset')) return this.#reset(active);
    if (this.#inbox.take('changed', 'refreshed')) return this.#applyChange(active);
  }

  async #bury(active: ActiveMount, state: 'dead' | 'hung', reason: string): Promise<void> {
    const { clock, log } = this.#around;
    const livedMs = clock.monotonic() - active.mountedAtMs;
    this.#earlyDeaths = livedMs < SETTLED_MS ? this.#earlyDeaths + 1 : 1;
    log.warn({ share: this.name, reason, livedMs: Math.round(livedMs) }, 'mount lost');
    this.#holding.letGo(active);
    this.#health.enter({ kind: 'fail', reason });
    await lower(this.#around, active, state);
    this.#around.onUnmount();
    this.#health.tell((hooks) => hooks.observe('afterUnmount', this.name));
    await this.#inbox.wait(['reset', 'goal'], remountBackoffMs(this.#earlyDeaths));
  }

  async #reset(active: ActiveMount): Promise<void> {
    this.#failures = 0;
    this.#earlyDeaths = 0;
    await this.#takeDown(active);
  }

  async #applyChange(active: ActiveMount): Promise<void> {
    const difference = this.#settings.compare(active);
    this.#around.onChange();
    if (difference === 'none' && active.isSealed) return this.#reset(active);
    if (difference === 'none') return expose(this.#around, this.#settings.wanted, active.mount);
    this.#around.log.info(
      { share: this.name },
      'share waits for its dirty files before it is mounted with the new settings',
    );
    await this.#inbox.during(EVERYTHING, (signal) =>
      drainForChange(this.#around, active, { placeChanges: difference === 'elsewhere', signal }),
    );
    // Settings that changed again are looked at afresh; a mount that was lost meanwhile is buried first.
    if (!this.#inbox.has('exited', 'hung', 'changed', 'goal')) await this.#reset(active);
  }

  /** Drains the share and takes it down, unless it is wanted back or handed over meanwhile. */
  async #leave(active: ActiveMount): Promise<void> {
    this.#inbox.take('reset', 'changed', 'refreshed');
    if (!this.#inbox.has('exited', 'hung')) await withdraw(this.#around, this.name);
    const isClean = await this.#inbox.during(
      ['exited', 'hung', 'goal'],
      (signal) => drainToTheEnd(this.#around, active, signal),
      this.#limit.signal,
    );
    const isOver = isClean || this.#limit.signal.aborted || this.#inbox.has('exited', 'hung');
    if (this.#goal === 'gone' && isOver) await this.#takeDown(active);
  }

  // ------------------------------------------------------------ small parts

  async #takeDown(active: ActiveMount): Promise<void> {
    const isHung = this.#inbox.has('hung') || active.watch.isSilent;
    const isDead = this.#inbox.has('exited');
    this.#holding.letGo(active);
    this.#health.enter({ kind: 'reset' });
    await lower(this.#around, active, isDead ? 'dead' : isHung ? 'hung' : 'alive');
    this.#holding.tookDown(await leftIn(this.#around, active.mount));
    this.#health.tell((hooks) => hooks.observe('afterUnmount', this.name));
    this.#around.onUnmount();
    this.#around.onChange();
  }

  #announce(active: ActiveMount): void {
    this.#health.enter({ kind: 'mounted' });
    this.#health.tell((hooks) => hooks.observe('afterMount', this.name));
    void active.watch.pulse().then(this.#around.onChange);
  }

  #setGoal(goal: Goal): void {
    this.#goal = goal;
    this.#inbox.put('goal');
    this.#around.onChange();
  }
}
