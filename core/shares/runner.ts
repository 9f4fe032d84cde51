/**
 * One runner per share: mounts it, watches it, remounts it after failures and unmounts it, independently of
 * all other shares. The supervisor only tells it what is wanted; these messages wait in its inbox and are
 * handled one at a time.
 */
import type { Health, ShareStatus } from '../contract/status.ts';
import type { LiveShare } from '../contract/shares.ts';
import type { Mount, MountStats, PendingFiles, ShareSpec } from '../contract/mount.ts';
import { probeBackoffMs, remountBackoffMs } from './state-machine.ts';
import { NOTES, describeShare } from './share-status.ts';
import { expose, withdraw } from './exposure.ts';
import type { ActiveMount } from './active-mount.ts';
import { ShareHealth } from './state-machine.ts';
import { MountedShare } from './active-mount.ts';
import { EVERYTHING, Inbox } from './inbox.ts';
import { discard, drainForChange, drainToTheEnd, leftIn, unmountShare } from './unmounting.ts';
import { mountShare } from './mounting.ts';
import type { MountResult } from './mounting.ts';
import { ShareSettings } from './settings.ts';
import type { RunnerEnvironment } from './environment.ts';
import { reasonOf } from '../sdk/reason-of.ts';

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
  readonly #share: MountedShare;
  #goal: Goal = 'up';
  #limit = new AbortController();
  #earlyDeaths = 0;
  #failures = 0;
  /** Somebody asked for a fresh probe. */
  #isAsked = false;
  #running: Promise<void> | undefined;

  constructor(spec: ShareSpec, around: RunnerEnvironment, adopted?: Mount) {
    this.#around = around;
    this.#inbox = new Inbox(around.clock);
    this.#health = new ShareHealth(spec.share.name, around);
    this.#settings = new ShareSettings(spec, around);
    this.#share = new MountedShare({
      around,
      inbox: this.#inbox,
      pending: () => this.#settings.pending(),
      onChange: () => {
        this.#judge();
        around.onChange();
      },
    });
    if (!adopted) return;
    this.#settings.mounted(this.#share.hold(adopted, this.#settings.ofAdopted(adopted.plan)));
    this.#inbox.put('changed');
  }

  get name(): string {
    return this.#settings.wanted.share.name;
  }

  get mount(): Mount | undefined {
    return this.#share.active?.mount;
  }

  get stats(): MountStats | undefined {
    return this.#share.active?.watch.stats;
  }

  get health(): Health {
    return this.#health.state.health;
  }

  /** The share as plugins see it. */
  get live(): LiveShare {
    const { wanted, isWaiting } = this.#settings;
    return { ...this.#share.live(wanted, this.health), hasFormerSettings: isWaiting };
  }

  /** True from the request to unmount the share for good. */
  get isLeaving(): boolean {
    return this.#goal === 'gone';
  }

  /** True only when it is known that nothing of this share waits anywhere. */
  get isSynced(): boolean {
    return this.#health.state.health === 'healthy' && this.#share.active?.watch.isSynced === true;
  }

  /** When it was last asked whether something waits, on the monotonic clock; undefined while it is not mounted. */
  get askedAtMs(): number | undefined {
    return this.#share.active?.watch.askedAtMs;
  }

  /** What its cache held after the last unmount; undefined when that is unknown. */
  get left(): PendingFiles | undefined {
    return this.#share.left;
  }

  start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** One round of figures. Resolves when they are there or overdue; never rejects. */
  async pulse(): Promise<void> {
    await this.#share.active?.watch.pulse();
    this.#judge();
  }

  /**
   * Resets the share for a new probe, even during a back-off; a change that waits for dirty files is then
   * applied at once, and what the remote shows now is taken as it is.
   */
  reconnect(): void {
    this.#share.active?.mount.acceptRemote?.();
    this.#settings.force();
    this.#isAsked = true;
    this.#inbox.put('reset');
  }

  /** Requests other settings; a mount that they do not affect stays. */
  change(spec: ShareSpec): void {
    this.#inbox.put(this.#settings.want(spec) ? 'refreshed' : 'changed');
  }

  /** Keeps a share that is being unmounted. */
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
   * Unmounts the share for good. `signal` limits the drain; resolves when it is unmounted, also when it was
   * kept in between and unmounted later.
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

  /** Forgets an active mount, for the next daemon to adopt. */
  async release(): Promise<void> {
    this.#setGoal('released');
    await this.#running;
    this.#share.release();
  }

  /** Dirty files found on disk while the share is not mounted; undefined while the disk has not been read. */
  setFilesOnDisk(count: number | undefined): void {
    this.#share.foundOnDisk(count);
  }

  status(): ShareStatus {
    const note = this.isLeaving ? NOTES.leaving : this.#settings.note;
    return describeShare({
      name: this.name,
      state: this.#health.state,
      active: this.#share.active,
      filesOnDisk: this.#share.filesOnDisk,
      isCounted: this.#share.isCounted,
      isLeaving: this.isLeaving,
      note,
    });
  }

  // ------------------------------------------------------------ the loop

  async #run(): Promise<void> {
    if (this.#share.active && this.#health.state.health === 'pending') this.#announce(this.#share.active);
    while (this.#goal === 'up' || (this.#goal === 'gone' && this.#share.active)) {
      try {
        await this.#step();
      } catch (error) {
        await this.#stumble(error);
      }
    }
  }

  async #step(): Promise<void> {
    this.#inbox.take('goal');
    const active = this.#share.active;
    if (this.#goal === 'gone') return active ? this.#leave(active) : undefined;
    await (active ? this.#attend(active) : this.#mount());
  }

  async #stumble(error: unknown): Promise<void> {
    this.#around.log.error({ share: this.name, err: error }, 'share runner failed and goes on');
    if (!this.#share.active)
      this.#health.enter({
        kind: 'fail',
        reason: `unexpected error: ${reasonOf(error)}`,
      });
    await this.#around.clock.sleep(STUMBLE_MS);
  }

  async #mount(): Promise<void> {
    this.#inbox.take('exited', 'hung', 'reset', 'changed', 'refreshed');
    const isAsked = this.#isAsked;
    this.#isAsked = false;
    const spec = await this.#settings.choose();
    if (this.#around.mounter()) this.#health.enter({ kind: 'probe' });
    const mounted = await this.#inbox.during(['reset', 'changed', 'goal'], (signal) =>
      mountShare({
        around: this.#around,
        spec,
        signal,
        isAsked,
        isAgain: this.#failures > 0,
        onLate: (mount) => (this.#goal === 'released' ? mount.release() : discard(this.#around, mount)),
      }),
    );
    if ('mount' in mounted) return this.#settle(mounted, spec);
    await this.#fail(mounted);
  }

  async #fail({ reason, remote }: Extract<MountResult, { reason: string }>): Promise<void> {
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

  async #settle(
    { mount, probeFailure }: Extract<MountResult, { mount: Mount }>,
    spec: ShareSpec,
  ): Promise<void> {
    this.#failures = 0;
    const active = this.#share.hold(mount, spec, probeFailure);
    if (!this.#settings.mounted(active)) this.#inbox.put('changed');
    this.#announce(active);
    await expose(this.#around, spec, mount);
  }

  /** Waits for the next message that concerns an active mount, and handles it. */
  async #attend(active: ActiveMount): Promise<void> {
    await this.#inbox.wait(EVERYTHING);
    if (this.#goal !== 'up') return;
    if (this.#inbox.take('exited')) return this.#bury(active, 'dead', this.#share.exitReason);
    if (this.#inbox.take('hung')) return this.#bury(active, 'hung', NOTES.hung);
    if (this.#inbox.take('reset')) return this.#reset(active);
    if (this.#inbox.take('changed', 'refreshed')) return this.#applyChange(active);
  }

  async #bury(active: ActiveMount, state: 'dead' | 'hung', reason: string): Promise<void> {
    const { clock, log } = this.#around;
    const livedMs = clock.monotonic() - active.mountedAtMs;
    this.#earlyDeaths = livedMs < SETTLED_MS ? this.#earlyDeaths + 1 : 1;
    log.warn({ share: this.name, reason, livedMs: Math.round(livedMs) }, 'mount lost');
    this.#share.letGo(active);
    // What the disk was found to hold before knows nothing of this mount's files.
    this.#around.onUnmount();
    this.#health.enter({ kind: 'fail', reason });
    await unmountShare(this.#around, active, state);
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
    if (difference === 'none' && active.isFrozen) return this.#reset(active);
    if (difference === 'none') return expose(this.#around, this.#settings.wanted, active.mount);
    this.#around.log.info(
      { share: this.name },
      'share waits for its dirty files before it is mounted with the new settings',
    );
    await this.#inbox.during(EVERYTHING, (signal) =>
      drainForChange(this.#around, active, {
        placeChanges: difference === 'elsewhere',
        signal,
      }),
    );
    // Settings that have changed again are compared again; a mount that was lost meanwhile is cleaned up
    // first.
    if (!this.#inbox.has('exited', 'hung', 'changed', 'goal')) await this.#reset(active);
  }

  /** Drains and unmounts the share, unless it is kept or handed over meanwhile. */
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

  // ------------------------------------------------------------ helpers

  async #takeDown(active: ActiveMount): Promise<void> {
    const isHung = this.#inbox.has('hung') || active.watch.isSilent;
    const isDead = this.#inbox.has('exited');
    this.#share.letGo(active);
    this.#around.onUnmount();
    this.#health.enter({ kind: 'reset' });
    await unmountShare(this.#around, active, isDead ? 'dead' : isHung ? 'hung' : 'alive');
    const left = await leftIn(this.#around, active.mount);
    // Written after it was seen clean, by who was in it before it was frozen.
    if (left && left.count > 0) active.isDrained = false;
    this.#share.tookDown(left);
    this.#health.tell((hooks) => hooks.observe('afterUnmount', this.name));
    this.#around.onUnmount();
    this.#around.onChange();
  }

  #announce(active: ActiveMount): void {
    this.#health.up(active.watch);
    this.#health.tell((hooks) => hooks.observe('afterMount', this.name));
    void this.pulse().then(this.#around.onChange);
  }

  /** Whether its mount can be listed may have changed. */
  #judge(): void {
    const { active } = this.#share;
    // An adopted one is pending until the loop has announced it.
    if (active && this.health !== 'pending') this.#health.up(active.watch);
  }

  #setGoal(goal: Goal): void {
    this.#goal = goal;
    this.#inbox.put('goal');
    this.#around.onChange();
  }
}
