/**
 * Holds uploads back. rclone has no pause, but a time for each waiting file (`vfs/queue-set-expiry`): what waits is
 * put off to the end of the pause, and what is closed meanwhile is put off before its quiet time
 * (`mount.write_back`) is over. So a daemon that is killed leaves nothing paused for longer than was asked. What is
 * being uploaded when a pause begins goes on: rclone could only break it off.
 *
 * A limit of bandwidth would be no pause: rclone's smallest one still sends, and slows what users read.
 */
import { durationMs, pause } from 'mountkeeper';
import type { Clock, Config, Logger, UploadPause } from 'mountkeeper';
import type { RcClient } from './control/remote-control.ts';

const LOOK_EVERY_MS = 1_000;
const LOOK_TIMEOUT_MS = 5_000;
/** Two looks and a slow answer fit in. */
const SHORTEST_WRITE_BACK_MS = 3_000;
/** What goes this much before the end of a pause is left: each look would put it off again. */
const CLOSE_S = 1;
/** rclone's own longest wait between two tries. */
const LONGEST_RETRY_S = 300;
const ASK_AGAIN_MS = 5_000;

interface QueueItem {
  readonly id: number;
  /** Seconds from now. */
  readonly expiry?: number;
  readonly uploading?: boolean;
  /** The path in the share. */
  readonly name?: string;
  /** Counts the one that is going on. */
  readonly tries?: number;
}

export interface QueuePauseOptions {
  readonly shareName: string;
  readonly rc: Pick<RcClient, 'call'>;
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly config: () => Config;
  /** Ends of pauses by share; outlives a mount, so that a new rclone of the share goes on waiting. */
  readonly pauses: Map<string, number>;
  /** A former daemon started this rclone, and may have paused its uploads. */
  readonly isAdopted: boolean;
  /** The mount's end. */
  readonly end: AbortSignal;
}

export class QueuePause implements UploadPause {
  readonly #options: QueuePauseOptions;
  /**
   * What somebody sends despite a pause, by rclone's id, with the tries before that: it gets one more. For that
   * pause only: rclone uses a file's id again for its next upload, and counts its tries from 0.
   */
  readonly #named = new Map<number, number>();
  #isLooking = false;
  #isReleasing = false;

  constructor(options: QueuePauseOptions) {
    this.#options = options;
    if (this.until !== undefined) void this.#look();
    else if (options.isAdopted) this.release();
  }

  get until(): number | undefined {
    const { clock, pauses, shareName } = this.#options;
    const until = pauses.get(shareName) ?? 0;
    return until > clock.now() ? until : undefined;
  }

  get obstacle(): string | undefined {
    const { write_back: writeBack } = this.#options.config().mount;
    return durationMs(writeBack) >= SHORTEST_WRITE_BACK_MS
      ? undefined
      : `mount.write_back is ${writeBack}, and rclone can only be held back where it waits for at least 3s`;
  }

  async set(until: number, signal: AbortSignal): Promise<void> {
    const { pauses, shareName } = this.#options;
    if (this.obstacle !== undefined) throw new Error(this.obstacle);
    if (this.until === undefined) this.#named.clear();
    const former = pauses.get(shareName);
    pauses.set(shareName, until);
    try {
      await this.#putOff(signal, former);
    } catch (error) {
      // Somebody may have ended it meanwhile, or asked for another.
      if (pauses.get(shareName) !== until) throw error;
      if (former === undefined) pauses.delete(shareName);
      else pauses.set(shareName, former);
      // What was put off already is not paused, so it must not wait.
      this.release();
      throw error;
    }
    void this.#look();
  }

  /**
   * Sends what waits longer than rclone itself would, as soon as rclone takes it, unless there is a pause by then.
   * For what a pause has left: of a former daemon, or one that could not be begun or ended as a whole.
   */
  release(): void {
    if (!this.#isReleasing) void this.#release();
  }

  /** What was put off waits on, until somebody asks rclone to send it. */
  forget(): void {
    this.#options.pauses.delete(this.#options.shareName);
  }

  /** Sends a file that waits, or what waits in a folder; see `Mount.sendNow`. */
  async sendNow(path: string, signal: AbortSignal): Promise<void> {
    const all = (await this.#queue(signal)).filter(
      ({ name = '' }) => name === path || name.startsWith(`${path}/`),
    );
    const waiting = all.filter(({ uploading }) => uploading !== true);
    if (all.length === 0) throw new Error(`${path} does not wait to be uploaded`);
    for (const { id, tries = 0 } of waiting) {
      // Before rclone is told: a look meanwhile would put it off again.
      if (this.until !== undefined) this.#named.set(id, tries);
      await this.#setExpiry(id, -1, signal).catch((error: unknown) => {
        this.#named.delete(id);
        throw error;
      });
    }
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const { clock, end, log, shareName } = this.#options;
    while (this.until !== undefined && !end.aborted) {
      await this.#putOff(clock.deadline(LOOK_TIMEOUT_MS, end)).catch((error: unknown) => {
        // Asked again in a moment; a share whose rclone stays silent fails by itself.
        if (!end.aborted) log.warn({ share: shareName, err: error }, 'uploads not held back');
      });
      await pause(clock, LOOK_EVERY_MS, end);
    }
    this.#isLooking = false;
  }

  /** `former`: the end of the pause that this one takes the place of; what waits for it goes with this one. */
  #putOff(signal: AbortSignal, former?: number): Promise<void> {
    const { clock } = this.#options;
    return this.#reschedule((expiry) => {
      // Read for each: the pause may have ended meanwhile.
      const { until } = this;
      if (until === undefined) return undefined;
      const [left, formerLeft] = [until, former ?? NaN].map((at) => (at - clock.now()) / 1_000) as [
        number,
        number,
      ];
      const isOfFormer = Math.abs(expiry - formerLeft) < CLOSE_S && Math.abs(formerLeft - left) >= CLOSE_S;
      // What goes later than that by itself is not hastened.
      return expiry < left - CLOSE_S || isOfFormer ? left : undefined;
    }, signal);
  }

  async #release(): Promise<void> {
    const { clock, config, end, log, shareName } = this.#options;
    const longest = Math.max(LONGEST_RETRY_S, durationMs(config().mount.write_back) / 1_000);
    this.#isReleasing = true;
    let isDone = false;
    while (!isDone && !end.aborted && this.until === undefined) {
      isDone = await this.#reschedule(
        (expiry) => (expiry > longest ? -1 : undefined),
        clock.deadline(LOOK_TIMEOUT_MS, end),
      ).then(
        () => true,
        (error: unknown) => {
          if (!end.aborted)
            log.warn({ share: shareName, err: error }, 'uploads of a former pause not sent yet');
          return false;
        },
      );
      if (!isDone) await pause(clock, ASK_AGAIN_MS, end);
    }
    this.#isReleasing = false;
  }

  /** `wanted`: seconds from now for what waits so many seconds; undefined leaves it. */
  async #reschedule(wanted: (expiry: number) => number | undefined, signal: AbortSignal): Promise<void> {
    const queue = await this.#queue(signal);
    this.#forgetTried(queue);
    for (const { id, expiry: now = 0, uploading } of queue) {
      const expiry = uploading === true || this.#named.has(id) ? undefined : wanted(now);
      if (expiry !== undefined) await this.#setExpiry(id, expiry, signal);
    }
  }

  #forgetTried(queue: readonly QueueItem[]): void {
    const tries = new Map(queue.map((item) => [item.id, item.tries ?? 0]));
    for (const [id, before] of this.#named) {
      if ((tries.get(id) ?? Infinity) > before) this.#named.delete(id);
    }
  }

  async #queue(signal: AbortSignal): Promise<readonly QueueItem[]> {
    const { fs, rc } = this.#options;
    const { queue } = await rc.call<{ queue?: readonly QueueItem[] | null }>('vfs/queue', { fs }, signal);
    return queue ?? [];
  }

  async #setExpiry(id: number, expiry: number, signal: AbortSignal): Promise<void> {
    const { fs, rc } = this.#options;
    await rc.call('vfs/queue-set-expiry', { fs, id, expiry }, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      // It left the queue meanwhile.
      if (!/not found/i.test(String(error))) throw error;
    });
  }
}
