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
import type { RcClient } from './remote-control.ts';

const LOOK_EVERY_MS = 1_000;
const LOOK_TIMEOUT_MS = 5_000;
/** Two looks and a slow answer fit in. */
const SHORTEST_WRITE_BACK_MS = 3_000;
/** Times that differ by less are the same. */
const CLOSE_S = 1;
/** rclone's own longest wait between two tries. */
const LONGEST_RETRY_S = 300;
const ASK_AGAIN_MS = 5_000;

interface QueueItem {
  readonly id: number;
  /** Seconds from now. */
  readonly expiry?: number;
  readonly uploading?: boolean;
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
  #isLooking = false;

  constructor(options: QueuePauseOptions) {
    this.#options = options;
    if (this.until !== undefined) void this.#look();
    else if (options.isAdopted) void this.#endFormer();
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
    const former = pauses.get(shareName);
    pauses.set(shareName, until);
    try {
      await this.#putOff(signal);
    } catch (error) {
      if (former === undefined) pauses.delete(shareName);
      else pauses.set(shareName, former);
      throw error;
    }
    void this.#look();
  }

  /** What was put off waits on, until somebody asks rclone to send it. */
  forget(): void {
    this.#options.pauses.delete(this.#options.shareName);
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

  #putOff(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    return this.#reschedule((expiry) => {
      // Read for each: the pause may have ended meanwhile.
      const { until } = this;
      const left = until && (until - clock.now()) / 1_000;
      return left === undefined || Math.abs(expiry - left) < CLOSE_S ? undefined : left;
    }, signal);
  }

  /** A pause ends with the daemon that made it: what waits longer than rclone itself would, goes now. */
  async #endFormer(): Promise<void> {
    const { clock, config, end } = this.#options;
    const longest = Math.max(LONGEST_RETRY_S, durationMs(config().mount.write_back) / 1_000);
    let isDone = false;
    while (!isDone && !end.aborted && this.until === undefined) {
      isDone = await this.#reschedule(
        (expiry) => (expiry > longest ? -1 : undefined),
        clock.deadline(LOOK_TIMEOUT_MS, end),
      ).then(
        () => true,
        () => false,
      );
      if (!isDone) await pause(clock, ASK_AGAIN_MS, end);
    }
  }

  /** `wanted`: seconds from now for what waits so many seconds; undefined leaves it. */
  async #reschedule(wanted: (expiry: number) => number | undefined, signal: AbortSignal): Promise<void> {
    const { fs, rc } = this.#options;
    const { queue } = await rc.call<{ queue?: readonly QueueItem[] | null }>('vfs/queue', { fs }, signal);
    for (const { id, expiry: now = 0, uploading } of queue ?? []) {
      const expiry = uploading === true ? undefined : wanted(now);
      if (expiry === undefined) continue;
      // It left the queue meanwhile.
      await rc.call('vfs/queue-set-expiry', { fs, id, expiry }, signal).catch(() => signal.throwIfAborted());
    }
  }
}
