/**
 * Watches one active mount: collects its figures, distinguishes a hanging mount from a busy one, and knows
 * whether the remote answers. Every call has its own deadline; a pulse never waits for the one before it.
 */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';
import type { Mount, MountStats, RemoteEvidence, RemoteFailure } from '../contract/mount.ts';
import type { TakenFigures } from '../contract/shares.ts';
import { limited, timeBox } from '../platform/deadline.ts';
import { StrandedFiles } from './orphans.ts';
import { reasonOf } from '../sdk/reason-of.ts';

const STATS_DEADLINE_MS = 2_000;
const REMOTE_CHECK_EVERY_MS = 2_900;
/** Short enough to detect an outage within 15 s, whenever in the interval it begins. */
const REMOTE_DEADLINE_MS = 4_000;
const KICK_DEADLINE_MS = 5_000;
/** After this much silence of the remote control, the mount itself is checked. */
const SILENCE_MS = 7_000;
const ALIVE_DEADLINE_MS = 4_000;
/** A check may ask several processes, one after the other, each with that deadline: this one ends none of them. */
const ALIVE_LIMIT_MS = 4 * ALIVE_DEADLINE_MS;
/** After this much silence a frozen mount is killed without a check: it is to be unmounted anyway. */
const FROZEN_SILENCE_MS = 20_000;
/** Older figures are not presented as fresh. */
const FRESH_MS = 6_000;
/**
 * Only figures of the last round prove that nothing waits: a file may have been written since. They are as old as the
 * question, since nobody says when in between they were counted.
 */
const SYNCED_FRESH_MS = 4_000;
const UNSEEN = 'it was mounted by a former daemon; its first figures are not there yet';
/** How much longer than its deadline a call may take before it is abandoned. */
const GRACE_MS = 500;

export interface ShareMonitorOptions {
  readonly mount: Mount;
  readonly clock: Clock;
  readonly log: Logger;
  /** Dirty files on the disk, from all mounts of the share. */
  readonly pending: () => Promise<number>;
  /** The remote did not answer when it was mounted: so until the first check says otherwise. */
  readonly probeFailure?: RemoteFailure | undefined;
  /** New writes are refused: the mount serves nobody any more. */
  readonly isFrozen: () => boolean;
  /** Called when neither the remote control nor the mount answers. */
  readonly onHung: () => void;
  readonly onChange: () => void;
}

export class ShareMonitor {
  readonly #options: ShareMonitorOptions;
  readonly #end = new AbortController();
  readonly #stranded: StrandedFiles;
  #stats: MountStats | undefined;
  #answeredAt: number;
  #statsTookMs = 0;
  /** Why the last figures failed. */
  #why: string | undefined;
  #remoteTookMs: number | undefined;
  #collecting = false;
  #checkingAlive = false;
  #remoteCheckedAt = -Infinity;
  #checkingRemote = false;
  #remoteAnswers: boolean | undefined;
  #remoteFailure: RemoteFailure | undefined;
  #isKickDue = false;

  constructor(options: ShareMonitorOptions) {
    const { clock, log, mount, onChange, pending } = options;
    this.#options = options;
    this.#answeredAt = clock.monotonic();
    if (options.probeFailure) {
      this.#remoteAnswers = false;
      this.#remoteFailure = options.probeFailure;
      this.#isKickDue = true;
    }
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
    if (!this.#stats) return undefined;
    // The mount knows neither size nor age of what it does not upload.
    const unknown = { dirtyBytes: undefined, oldestDirtyAt: undefined };
    const stats = this.strandedFiles === 0 ? this.#stats : { ...this.#stats, ...unknown };
    return { stats, takenAtMs: this.#answeredAt, tookMs: this.#statsTookMs };
  }

  get isFresh(): boolean {
    return this.#stats !== undefined && !this.isSilent;
  }

  /** True when the remote control has not answered for a while, or never. */
  get isSilent(): boolean {
    return this.#silenceMs() >= FRESH_MS;
  }

  /** Files in the cache that this mount does not upload; 0 while that is unknown. */
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

  /**
   * True while it is up without its remote and without anything that was read from there: it cannot be listed. A reader
   * that is replaced below it, while the remote answers, is no such case. The remote of a new mount answered its probe;
   * that of an adopted one nobody has asked yet.
   */
  get isUnreadable(): boolean {
    const { mount } = this.#options;
    return !(this.#remoteAnswers ?? !mount.adopted) && mount.isUnreadable === true;
  }

  /** What is wrong although the mount is up; undefined when nothing is. */
  get trouble(): string | undefined {
    const troubles = [
      this.#figuresProblem(),
      this.#remoteProblem(),
      this.#stats?.trouble,
      this.strandedFiles > 0
        ? `${this.strandedFiles} files that were written with former settings of this share wait in its ` +
          'cache; they go up once the former settings are put back'
        : undefined,
    ].filter((trouble) => trouble !== undefined);
    return troubles.length > 0 ? troubles.join('; ') : undefined;
  }

  #figuresProblem(): string | undefined {
    if (this.isSilent) return this.#silence();
    // What has happened to it while no daemon ran, only its figures tell.
    return this.#stats === undefined && this.#options.mount.adopted ? UNSEEN : undefined;
  }

  #remoteProblem(): string | undefined {
    if (this.#remoteAnswers !== false) return undefined;
    const how = this.remoteEvidence === 'answers' ? 'turns this share away' : 'does not answer';
    const why = this.#remoteFailure?.message ?? 'unknown';
    // What can be used all the same, the mount says itself.
    if (this.isUnreadable) return `the remote ${how} (${why}), and nothing that was cached can be read`;
    const cached =
      this.#options.mount.hasUnreadFolders === true
        ? 'cached files stay readable in folders whose listings are at hand'
        : 'cached files stay readable';
    return `the remote ${how} (${why}); ${cached}, writes wait in the cache`;
  }

  #silence(): string {
    const seconds = Math.round(this.#silenceMs() / 1000);
    return this.#why === undefined
      ? `the mount's remote control has not answered for ${seconds} s; figures are older than that`
      : `the mount's remote control has not answered for ${seconds} s; figures are older than that (${this.#why})`;
  }

  /** When the last figures were asked for, on the monotonic clock. */
  get askedAtMs(): number {
    return this.#answeredAt - this.#statsTookMs;
  }

  /** True when nothing at all waits and the remote is known to answer. */
  get isSynced(): boolean {
    const stats = this.#stats;
    return (
      stats !== undefined &&
      this.#silenceMs() + this.#statsTookMs < SYNCED_FRESH_MS &&
      this.#remoteAnswers === true &&
      stats.dirtyFiles === 0 &&
      stats.erroredFiles === 0 &&
      !stats.uploading &&
      stats.isHidden !== true &&
      this.#stranded.count === 0
    );
  }

  /**
   * One round: reads the figures now, and checks the remote when that is due. Resolves when the figures are
   * there or overdue; never rejects.
   */
  async pulse(): Promise<void> {
    if (this.#end.signal.aborted) return;
    void this.#checkRemoteWhenDue();
    await this.#collect();
    if (this.#silenceMs() >= FROZEN_SILENCE_MS && this.#options.isFrozen()) this.#options.onHung();
    else if (this.#silenceMs() >= SILENCE_MS) void this.#checkAlive();
    else void this.#stranded.lookWhenDue();
  }

  /** Fresh figures; rejects when they do not arrive in time. */
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
    this.#why = undefined;
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
      if (this.#end.signal.aborted) return;
      this.#why = reasonOf(error);
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
      await timeBox(clock, ALIVE_LIMIT_MS, mount.checkAlive(ALIVE_DEADLINE_MS));
    } catch {
      // The mount hangs or has died; only longer silence justifies a restart.
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
   * Failed uploads back off for minutes; after an outage they may be repeated at once. Sent at every check
   * until it succeeds; a pause of the uploads is waited for.
   */
  async #kickQueue(): Promise<void> {
    if (this.#options.mount.uploadPause?.until !== undefined) return;
    this.#isKickDue = false;
    try {
      await this.#options.mount.flush(this.#options.clock.deadline(KICK_DEADLINE_MS, this.#end.signal));
    } catch (error) {
      this.#isKickDue = true;
      this.#options.log.debug(
        { share: this.#options.mount.shareName, err: error },
        'waiting uploads could not be restarted',
      );
    }
  }
}
