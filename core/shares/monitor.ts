/**
 * Watches one active mount: collects its figures, tells a hanging mount from a busy one, and knows whether
 * the remote answers. Every call has a deadline of its own; a pulse never waits for the one before it.
 */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';
import type { Mount, MountStats, RemoteEvidence, RemoteFailure } from '../contract/mount.ts';
import type { TakenFigures } from '../contract/shares.ts';
import { limited } from '../sdk/grace.ts';
import { timeBox } from '../sdk/time-box.ts';
import { StrandedFiles } from './stranded-files.ts';

const STATS_DEADLINE_MS = 2_000;
const REMOTE_CHECK_EVERY_MS = 2_900;
/** Short enough for an outage to be known within 15 s, whenever in the round it begins. */
const REMOTE_DEADLINE_MS = 4_000;
const KICK_DEADLINE_MS = 5_000;
/** Silence of the remote control after which the mount itself is asked. */
const SILENCE_MS = 7_000;
const ALIVE_DEADLINE_MS = 4_000;
/** Silence after which a frozen mount is given up: what answers in its place may be the seal. */
const SEALED_SILENCE_MS = 20_000;
/** Figures older than this are not passed off as fresh. */
const FRESH_MS = 6_000;
/** Only figures of the last round say that nothing waits: a file may have been written since. */
const SYNCED_FRESH_MS = 4_000;
/** How much longer than its deadline a call may take before it is given up. */
const GRACE_MS = 500;

export interface ShareWatchOptions {
  readonly mount: Mount;
  readonly clock: Clock;
  readonly log: Logger;
  /** Dirty files on the disk, whichever mount of the share they belong to. */
  readonly pending: () => Promise<number>;
  /** New writes are refused: nobody is served any more. */
  readonly isSealed: () => boolean;
  /** Called when neither the remote control nor the mount answers. */
  readonly onHung: () => void;
  readonly onChange: () => void;
}

export class ShareWatch {
  readonly #options: ShareWatchOptions;
  readonly #end = new AbortController();
  readonly #stranded: StrandedFiles;
  #stats: MountStats | undefined;
  #answeredAt: number;
  #statsTookMs = 0;
  #remoteTookMs: number | undefined;
  #collecting = false;
  #checkingAlive = false;
  #remoteCheckedAt = -Infinity;
  #checkingRemote = false;
  #remoteAnswers: boolean | undefined;
  #remoteFailure: RemoteFailure | undefined;
  #isKickDue = false;

  constructor(options: ShareWatchOptions) {
    const { clock, log, mount, onChange, pending } = options;
    this.#options = options;
    this.#answeredAt = clock.monotonic();
    this.#stranded = new StrandedFiles({
      share: mount.shareName,
      pending,
      clock,
      log,
      onChange,
      isClean: () => !this.#end.signal.aborted && this.#stats?.dirtyFiles === 0,
    });
  }

  get stats(): MountStats | undefined {
    return this.#stats;
  }

  get figures(): TakenFigures | undefined {
    return this.#stats && { stats: this.#stats, takenAtMs: this.#answeredAt, tookMs: this.#statsTookMs };
  }

  get isFresh(): boolean {
    return this.#stats !== undefined && !this.isSilent;
  }

  /** The remote control has not answered for a while, perhaps never. */
  get isSilent(): boolean {
    return this.#silenceMs() >= FRESH_MS;
  }

  /** Files in the cache that this mount does not upload; 0 while that is not known. */
  get strandedFiles(): number {
    return this.#stranded.count ?? 0;
  }

  /** Whether the remote answered the last light check; undefined before the first. */
  get remoteAnswers(): boolean | undefined {
    return this.#remoteAnswers;
  }

  /** How long the remote took for the last light check; undefined unless it answered. */
  get remoteTookMs(): number | undefined {
    return this.#remoteAnswers === true ? this.#remoteTookMs : undefined;
  }

  /** What the last light check showed when it failed. */
  get remoteEvidence(): RemoteEvidence | undefined {
    return this.#remoteFailure?.remote;
  }

  /** What is wrong though the mount is up; undefined when nothing is. */
  get trouble(): string | undefined {
    const troubles: string[] = [];
    if (this.isSilent)
      troubles.push(
        `the mount's remote control has not answered for ${Math.round(this.#silenceMs() / 1000)} s; figures are older than that`,
      );
    const how = this.remoteEvidence === 'answers' ? 'turns this share away' : 'does not answer';
    if (this.#remoteAnswers === false)
      troubles.push(
        `the remote ${how} (${this.#remoteFailure?.message ?? 'unknown'}); cached files stay readable, writes wait in the cache`,
      );
    if (this.#stats?.trouble !== undefined) troubles.push(this.#stats.trouble);
    if (this.strandedFiles > 0)
      troubles.push(
        `${this.strandedFiles} files that were written with former settings of this share wait in its cache; they go up once the former settings are put back`,
      );
    return troubles.length > 0 ? troubles.join('; ') : undefined;
  }

  /** True when nothing at all waits and the remote is known to answer. */
  get isSynced(): boolean {
    const stats = this.#stats;
    return (
      stats !== undefined &&
      this.#silenceMs() < SYNCED_FRESH_MS &&
      this.#remoteAnswers === true &&
      stats.dirtyFiles === 0 &&
      stats.erroredFiles === 0 &&
      !stats.uploading &&
      this.#stranded.count === 0
    );
  }

  /**
   * One round: figures now, the remote when due. Resolves when the figures are in or overdue; never rejects.
   */
  async pulse(): Promise<void> {
    if (this.#end.signal.aborted) return;
    void this.#checkRemoteWhenDue();
    await this.#collect();
    if (this.#silenceMs() >= SEALED_SILENCE_MS && this.#options.isSealed()) this.#options.onHung();
    else if (this.#silenceMs() >= SILENCE_MS) void this.#checkAlive();
    else void this.#stranded.lookWhenDue();
  }

  /** Figures taken now; rejects when they cannot be had in time. */
  async freshStats(): Promise<MountStats> {
    const { clock, mount } = this.#options;
    const began = clock.monotonic();
    const stats = await limited((signal) => mount.stats(signal), {
      clock,
      limitMs: STATS_DEADLINE_MS,
      graceMs: GRACE_MS,
      end: this.#end.signal,
    });
    this.#stats = stats;
    this.#answeredAt = clock.monotonic();
    this.#statsTookMs = this.#answeredAt - began;
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
      if (!this.#end.signal.aborted)
        this.#options.log.debug(
          { share: this.#options.mount.shareName, err: error },
          'mount figures not collected',
        );
    } finally {
      this.#collecting = false;
    }
  }

  async #checkAlive(): Promise<void> {
    if (this.#checkingAlive || this.#end.signal.aborted) return;
    const { clock, mount, onHung } = this.#options;
    this.#checkingAlive = true;
    try {
      await timeBox(clock, ALIVE_DEADLINE_MS + GRACE_MS, mount.checkAlive(ALIVE_DEADLINE_MS));
    } catch {
      if (!this.#end.signal.aborted && this.#silenceMs() >= SILENCE_MS) onHung();
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
      await limited((signal) => mount.checkRemote(signal), {
        clock,
        limitMs: REMOTE_DEADLINE_MS,
        graceMs: GRACE_MS,
        end: this.#end.signal,
      });
      if (!this.#end.signal.aborted) this.#setRemote(true);
      this.#remoteTookMs = clock.monotonic() - this.#remoteCheckedAt;
    } catch (error) {
      if (!this.#end.signal.aborted) this.#setRemote(false, error as RemoteFailure);
    } finally {
      this.#checkingRemote = false;
    }
  }

  #setRemote(answers: boolean, failure?: RemoteFailure): void {
    const { mount, log, onChange } = this.#options;
    const was = this.#remoteAnswers;
    this.#remoteAnswers = answers;
    this.#remoteFailure = failure;
    if (!answers) this.#isKickDue = true;
    if (answers && this.#isKickDue) void this.#kickQueue();
    if (was === answers) return;
    if (!answers)
      log.warn(
        { share: mount.shareName, reason: failure?.message },
        'remote does not answer, writes wait in the cache',
      );
    if (answers && was === false) log.info({ share: mount.shareName }, 'remote answers again');
    onChange();
  }

  /**
   * Failed uploads back off for minutes; after an outage they may go at once. Tried at every check until it
   * is taken.
   */
  async #kickQueue(): Promise<void> {
    this.#isKickDue = false;
    try {
      await this.#options.mount.flush(this.#options.clock.deadline(KICK_DEADLINE_MS, this.#end.signal));
    } catch (error) {
      this.#isKickDue = true;
      this.#options.log.debug({ share: this.#options.mount.shareName, err: error }, 'queue not kicked');
    }
  }
}
