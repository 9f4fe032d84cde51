/**
 * One runner per share: brings it up, watches it, heals it and takes it down, on its own and without ever waiting for another
 * share. The supervisor only tells it what is wanted; what it is told waits in its inbox and is dealt with one at a time.
 */
import type { Health, LiveShare, Mount, MountStats, PendingFiles, ShareSpec, ShareStatus } from './api.ts';
import { probeBackoffMs, remountBackoffMs } from './share.ts';
import { NOTES, describeShare } from './share-describe.ts';
import { expose, withdraw } from './share-exposure.ts';
import type { Held } from './share-held.ts';
import { ShareHealth } from './share-health.ts';
import { ShareHolding } from './share-holding.ts';
import { EVERYTHING, Inbox } from './share-inbox.ts';
import { discard, drainForChange, drainToTheEnd, leftIn, lower } from './share-lower.ts';
import { raise } from './share-raise.ts';
import type { Raised } from './share-raise.ts';
import { ShareSettings } from './share-settings.ts';
import type { RunnerSurroundings } from './share-surroundings.ts';

/** A mount that lived at least this long did not die early. */
const SETTLED_MS = 2_000;
/** Rest after an unexpected error, so that it cannot make a busy loop. */
const STUMBLE_MS = 1_000;

type Goal = 'up' | 'gone' | 'released';

export class ShareRunner {
  readonly #around: RunnerSurroundings;
  readonly #inbox: Inbox;
  readonly #health: ShareHealth;
  readonly #settings: ShareSettings;
  readonly #holding: ShareHolding;
  #goal: Goal = 'up';
  #limit = new AbortController();
  #earlyDeaths = 0;
  #failures = 0;
  #running: Promise<void> | undefined;

  constructor(spec: ShareSpec, around: RunnerSurroundings, adopted?: Mount) {
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

  /** Resets the share for a fresh probe, also out of a back-off; a change that waits for dirty files is then carried out at once. */
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

  /** Takes the share down for good. `signal` bounds the drain; resolves when it is down, or is wanted back and down later. */
  async remove(signal: AbortSignal): Promise<void> {
    const limit = this.#limit;
    if (signal.aborted) limit.abort();
    else signal.addEventListener('abort', () => limit.abort(), { once: true });
    if (this.#goal === 'up') this.#setGoal('gone');
    this.start();
    await this.#running;
    await this.#health.farewell();
  }

  /** Lets go of a living mount for the next daemon to adopt. */
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
    return describeShare({ name: this.name, state: this.#health.state, held: this.#holding.held, filesOnDisk: this.#holding.filesOnDisk, note });
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
    const held = this.#holding.held;
    if (this.#goal === 'gone') return held ? this.#leave(held) : undefined;
    await (held ? this.#attend(held) : this.#raise());
  }

  async #stumble(error: unknown): Promise<void> {
    this.#around.log.error({ share: this.name, err: error }, 'share runner failed and goes on');
    if (!this.#holding.held) this.#health.enter({ kind: 'fail', reason: `unexpected error: ${(error as Error).message}` });
    await this.#around.clock.sleep(STUMBLE_MS);
  }

  async #raise(): Promise<void> {
    this.#inbox.take('exited', 'hung', 'reset', 'changed', 'refreshed');
    const spec = await this.#settings.choose();
    if (this.#around.mounter()) this.#health.enter({ kind: 'probe' });
    const raised = await this.#inbox.during(['reset', 'changed', 'goal'], (signal) => raise({ around: this.#around, spec, signal, onLate: (mount) => (this.#goal === 'released' ? mount.release() : discard(this.#around, mount)) }));
    if ('mount' in raised) return this.#settle(raised.mount, spec);
    await this.#fail(raised);
  }

  async #fail({ reason, remote }: Extract<Raised, { reason: string }>): Promise<void> {
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
    const held = this.#holding.hold(mount, spec);
    if (!this.#settings.mounted(held)) this.#inbox.put('changed');
    this.#announce(held);
    await expose(this.#around, spec, mount);
  }

  /** Waits for the next thing that concerns a living mount and deals with it. */
  async #attend(held: Held): Promise<void> {
    await this.#inbox.wait(EVERYTHING);
    if (this.#goal !== 'up') return;
    if (this.#inbox.take('exited')) return this.#bury(held, 'dead', this.#holding.exitReason);
    if (this.#inbox.take('hung')) return this.#bury(held, 'hung', NOTES.hung);
    if (this.#inbox.take('reset')) return this.#reset(held);
    if (this.#inbox.take('changed', 'refreshed')) return this.#applyChange(held);
  }

  async #bury(held: Held, state: 'dead' | 'hung', reason: string): Promise<void> {
    const { clock, log } = this.#around;
    const livedMs = clock.monotonic() - held.mountedAtMs;
    this.#earlyDeaths = livedMs < SETTLED_MS ? this.#earlyDeaths + 1 : 1;
    log.warn({ share: this.name, reason, livedMs: Math.round(livedMs) }, 'mount lost');
    this.#holding.letGo(held);
    this.#health.enter({ kind: 'fail', reason });
    await lower(this.#around, held, state);
    this.#around.onUnmount();
    this.#health.tell((hooks) => hooks.observe('afterUnmount', this.name));
    await this.#inbox.wait(['reset', 'goal'], remountBackoffMs(this.#earlyDeaths));
  }

  async #reset(held: Held): Promise<void> {
    this.#failures = 0;
    this.#earlyDeaths = 0;
    await this.#takeDown(held);
  }

  async #applyChange(held: Held): Promise<void> {
    const difference = this.#settings.compare(held);
    this.#around.onChange();
    if (difference === 'none' && held.isSealed) return this.#reset(held);
    if (difference === 'none') return expose(this.#around, this.#settings.wanted, held.mount);
    this.#around.log.info({ share: this.name }, 'share waits for its dirty files before it is mounted with the new settings');
    await this.#inbox.during(EVERYTHING, (signal) => drainForChange(this.#around, held, { placeChanges: difference === 'elsewhere', signal }));
    // Settings that changed again are looked at afresh; a mount that was lost meanwhile is buried first.
    if (!this.#inbox.has('exited', 'hung', 'changed', 'goal')) await this.#reset(held);
  }

  /** Drains the share and takes it down, unless it is wanted back or handed over meanwhile. */
  async #leave(held: Held): Promise<void> {
    this.#inbox.take('reset', 'changed', 'refreshed');
    if (!this.#inbox.has('exited', 'hung')) await withdraw(this.#around, this.name);
    const isClean = await this.#inbox.during(['exited', 'hung', 'goal'], (signal) => drainToTheEnd(this.#around, held, signal), this.#limit.signal);
    const isOver = isClean || this.#limit.signal.aborted || this.#inbox.has('exited', 'hung');
    if (this.#goal === 'gone' && isOver) await this.#takeDown(held);
  }

  // ------------------------------------------------------------ small parts

  async #takeDown(held: Held): Promise<void> {
    const isHung = this.#inbox.has('hung') || held.watch.isSilent;
    const isDead = this.#inbox.has('exited');
    this.#holding.letGo(held);
    this.#health.enter({ kind: 'reset' });
    await lower(this.#around, held, isDead ? 'dead' : isHung ? 'hung' : 'alive');
    this.#holding.tookDown(await leftIn(this.#around, held.mount));
    this.#health.tell((hooks) => hooks.observe('afterUnmount', this.name));
    this.#around.onUnmount();
    this.#around.onChange();
  }

  #announce(held: Held): void {
    this.#health.enter({ kind: 'mounted' });
    this.#health.tell((hooks) => hooks.observe('afterMount', this.name));
    void held.watch.pulse().then(this.#around.onChange);
  }

  #setGoal(goal: Goal): void {
    this.#goal = goal;
    this.#inbox.put('goal');
    this.#around.onChange();
  }
}
