/**
 * Watches one living mount: collects its figures, tells a hanging mount from a busy one, and knows whether the remote answers.
 * Every call has a deadline of its own; a pulse never waits for the one before it.
 */
import type { Logger } from 'pino';
import type { Clock, Mount, MountStats } from './api.ts';

const STATS_DEADLINE_MS = 2_000;
const REMOTE_CHECK_EVERY_MS = 4_000;
const REMOTE_DEADLINE_MS = 5_000;
/** Silence of the remote control after which the mount itself is asked. */
const SILENCE_MS = 7_000;
const ALIVE_DEADLINE_MS = 4_000;
/** Figures older than this are not passed off as fresh. */
const FRESH_MS = 6_000;

export interface ShareWatchOptions {
  readonly mount: Mount;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called once, when neither the remote control nor the mount answers. */
  readonly onHung: () => void;
  readonly onChange: () => void;
}

export class ShareWatch {
  readonly #options: ShareWatchOptions;
  readonly #end = new AbortController();
  #stats: MountStats | undefined;
  #answeredAt: number;
  #collecting = false;
  #checkingAlive = false;
  #remoteCheckedAt = -Infinity;
  #checkingRemote = false;
  #remoteAnswers: boolean | undefined;
  #remoteReason: string | undefined;

  constructor(options: ShareWatchOptions) {
    this.#options = options;
    this.#answeredAt = options.clock.monotonic();
  }

  get stats(): MountStats | undefined {
    return this.#stats;
  }

  get isFresh(): boolean {
    return this.#stats !== undefined && this.#silenceMs() < FRESH_MS;
  }

  /** Undefined until the first check has ended. */
  get remoteAnswers(): boolean | undefined {
    return this.#remoteAnswers;
  }

  /** What is wrong though the mount is up; undefined when nothing is. */
  get trouble(): string | undefined {
    if (this.#silenceMs() >= FRESH_MS) return `the mount's remote control has not answered for ${Math.round(this.#silenceMs() / 1000)} s; figures are older than that`;
    if (this.#remoteAnswers === false) return `the remote does not answer (${this.#remoteReason ?? 'unknown'}); cached files stay readable, writes wait in the cache`;
    return undefined;
  }

  /** True when nothing at all waits and the remote is known to answer. */
  get isSynced(): boolean {
    const stats = this.#stats;
    return stats !== undefined && this.isFresh && this.#remoteAnswers === true && stats.dirtyFiles === 0 && stats.erroredFiles === 0;
  }

  /** One round: figures now, the remote when due. Resolves when the figures are in or overdue; never rejects. */
  async pulse(): Promise<void> {
    if (this.#end.signal.aborted) return;
    void this.#checkRemoteWhenDue();
    await this.#collect();
    if (this.#silenceMs() >= SILENCE_MS) void this.#checkAlive();
  }

  /** Figures taken now; rejects when they cannot be had in time. */
  async freshStats(): Promise<MountStats> {
    const stats = await this.#options.mount.stats(this.#options.clock.deadline(STATS_DEADLINE_MS, this.#end.signal));
    this.#stats = stats;
    this.#answeredAt = this.#options.clock.monotonic();
    return stats;
  }

  stop(): void {
    this.#end.abort(new Error('the watch has ended'));
  }

  #silenceMs(): number {
    return this.#options.clock.monotonic() - this.#answeredAt;
  }

  async #collect(): Promise<void> {
    if (this.#collecting) return;
    this.#collecting = true;
    try {
      await this.freshStats();
    } catch (error) {
      if (!this.#end.signal.aborted) this.#options.log.debug({ share: this.#options.mount.shareName, err: error }, 'mount figures not collected');
    } finally {
      this.#collecting = false;
    }
  }

  async #checkAlive(): Promise<void> {
    if (this.#checkingAlive) return;
    this.#checkingAlive = true;
    try {
      await this.#options.mount.checkAlive(ALIVE_DEADLINE_MS);
    } catch {
      if (!this.#end.signal.aborted && this.#silenceMs() >= SILENCE_MS) this.#options.onHung();
    } finally {
      this.#checkingAlive = false;
    }
  }

  async #checkRemoteWhenDue(): Promise<void> {
    const { clock, mount } = this.#options;
    if (this.#checkingRemote || clock.monotonic() - this.#remoteCheckedAt < REMOTE_CHECK_EVERY_MS) return;
    this.#checkingRemote = true;
    this.#remoteCheckedAt = clock.monotonic();
    try {
      await mount.checkRemote(clock.deadline(REMOTE_DEADLINE_MS, this.#end.signal));
      this.#setRemote(true);
    } catch (error) {
      if (!this.#end.signal.aborted) this.#setRemote(false, (error as Error).message);
    } finally {
      this.#checkingRemote = false;
    }
  }

  #setRemote(answers: boolean, reason?: string): void {
    const { mount, log, onChange } = this.#options;
    const was = this.#remoteAnswers;
    this.#remoteAnswers = answers;
    this.#remoteReason = reason;
    if (was === answers) return;
    if (!answers) log.warn({ share: mount.shareName, reason }, 'remote does not answer, writes wait in the cache');
    if (answers && was === false) {
      log.info({ share: mount.shareName }, 'remote answers again');
      void this.#kickQueue();
    }
    onChange();
  }

  /** Failed uploads back off for minutes; after an outage they may go at once. */
  async #kickQueue(): Promise<void> {
    try {
      await this.#options.mount.flush(this.#options.clock.deadline(REMOTE_DEADLINE_MS, this.#end.signal));
    } catch (error) {
      this.#options.log.debug({ share: this.#options.mount.shareName, err: error }, 'queue not kicked');
    }
  }
}
