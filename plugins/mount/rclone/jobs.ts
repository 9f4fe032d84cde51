/**
 * Calls of rclone's remote control that change the remote, each as an rclone job. rclone goes on with a
 * call even when its client has gone, and a deletion that runs late would delete what was written since. So
 * a job is over only when rclone says so, and no new one begins before abandoned ones have ended.
 *
 * A short one is one call, which rclone answers when the job has ended; it is a job in rclone's list all the same, and
 * rclone ends it when its connection breaks. One that may take long is begun, and asked about: rclone cuts a
 * connection after an hour.
 */
import { randomBytes } from 'node:crypto';
import { pause } from 'mountkeeper';
import type { Clock } from 'mountkeeper';
import { RcRefusal } from './control/remote-control.ts';
import type { RcClient } from './control/remote-control.ts';
import { withoutDetour } from './error-messages.ts';

/** Prefix of our jobs' groups; a daemon that was killed may leave some behind. */
const GROUP = 'mountkeeper-write';
const CALL_MS = 5_000;
/** Most jobs take a few milliseconds, some take hours. */
const FIRST_LOOK_MS = 4;
const LONGEST_LOOK_MS = 250;
/** How long a stopped job may take to end: rclone's calls end with their connection. */
const STOP_MS = 15_000;
const STOP_LOOK_MS = 50;
/** How often an rclone that has not answered a short job yet is asked whether it is there. */
const ALIVE_LOOK_MS = 1_000;

interface JobStatus {
  readonly finished: boolean;
  readonly success: boolean;
  readonly error: string;
  readonly group: string;
}

export interface JobOptions {
  readonly signal: AbortSignal;
  /** Called with the bytes transferred so far, as far as it takes longer than a moment. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
  /** It is over long before an hour: a small file, one deletion. */
  readonly isShort?: boolean;
}

/** How it ended; the error is empty when it was successful. */
type JobEnd = Pick<JobStatus, 'success' | 'error'>;

export class Jobs {
  readonly #rc: RcClient;
  readonly #clock: Clock;
  readonly #prefix = `${GROUP}/${randomBytes(4).toString('hex')}`;
  /** Groups of jobs that this daemon is following. */
  readonly #followed = new Set<string>();
  #clearing: Promise<void> | undefined;
  #isClear = false;
  #count = 0;

  constructor(rc: RcClient, clock: Clock) {
    this.#rc = rc;
    this.#clock = clock;
  }

  /**
   * Resolves with the group of rclone's statistics that the job counts in. Rejects with rclone's own message, or with
   * the signal's reason once the job has ended.
   */
  async run(
    path: string,
    parameters: Readonly<Record<string, unknown>>,
    options: JobOptions,
  ): Promise<string> {
    await this.endAbandoned();
    options.signal.throwIfAborted();
    this.#count += 1;
    const group = `${this.#prefix}/${this.#count}`;
    this.#followed.add(group);
    const status = await (
      options.isShort === true
        ? this.#call(path, { ...parameters, _group: group }, options)
        : this.#begin(path, { ...parameters, _async: true, _group: group }, options)
    )
      // It may still be running: it is searched for before anything else begins.
      .catch((error: unknown) => {
        this.#isClear = false;
        throw error;
      })
      .finally(() => this.#followed.delete(group));
    if (!status) throw options.signal.reason as Error;
    if (!status.success)
      throw new Error(status.error === '' ? 'the job failed without a reason' : withoutDetour(status.error));
    return group;
  }

  /** As one call. Undefined when it was stopped; rejects when it may still be running. */
  async #call(
    path: string,
    parameters: Readonly<Record<string, unknown>> & { _group: string },
    options: JobOptions,
  ): Promise<JobEnd | undefined> {
    const { signal } = options;
    const [lost, over] = [new AbortController(), new AbortController()];
    const watch = this.#watch(parameters._group, options, over.signal).catch((error: unknown) =>
      lost.abort(error),
    );
    try {
      await this.#rc.call(path, parameters, lost.signal);
      return { success: true, error: '' };
    } catch (error) {
      if (!(error instanceof RcRefusal)) throw error;
      return signal.aborted ? undefined : { success: false, error: error.message };
    } finally {
      over.abort();
      await watch;
    }
  }

  /**
   * Until it is over: tells its progress, and stops it when its caller gives it up. Rejects when rclone does not answer
   * any more.
   */
  async #watch(group: string, { signal, onProgress }: JobOptions, over: AbortSignal): Promise<void> {
    const either = AbortSignal.any([signal, over]);
    while (!either.aborted) {
      await pause(this.#clock, ALIVE_LOOK_MS, either);
      if (either.aborted) break;
      if (onProgress) onProgress(await this.#bytesOf(group));
      else await this.#rc.call('rc/noop', {}, this.#clock.deadline(CALL_MS));
    }
    const deadline = this.#clock.deadline(STOP_MS);
    // Again and again: rclone may not have begun it when it is told to stop it.
    while (!over.aborted) {
      await this.#rc.call('job/stopgroup', { group }, deadline);
      await pause(this.#clock, STOP_LOOK_MS, AbortSignal.any([over, deadline]));
    }
  }

  /** Undefined when it was stopped. */
  async #begin(
    path: string,
    parameters: Readonly<Record<string, unknown>> & { _group: string },
    options: JobOptions,
  ): Promise<JobEnd | undefined> {
    // Without the signal: once a job has begun, its number must be known.
    const { jobid } = await this.#rc.call<{ jobid: number }>(path, parameters, this.#clock.deadline(CALL_MS));
    let pauseMs = FIRST_LOOK_MS;
    for (;;) {
      const status = await this.#status(jobid);
      if (status === undefined) throw new Error('rclone does not know any more what became of it');
      if (status.finished) return status;
      if (options.signal.aborted) return this.#stop(jobid);
      if (pauseMs === LONGEST_LOOK_MS) await this.#tell(parameters._group, options);
      await pause(this.#clock, pauseMs, options.signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_LOOK_MS);
    }
  }

  async #tell(group: string, { onProgress }: JobOptions): Promise<void> {
    if (!onProgress) return;
    // Progress figures only: the job goes on without them.
    await this.#bytesOf(group).then(onProgress, () => undefined);
  }

  async #bytesOf(group: string): Promise<number> {
    const deadline = this.#clock.deadline(CALL_MS);
    const { bytes } = await this.#rc.call<{ bytes?: number }>('core/stats', { group, short: true }, deadline);
    return bytes ?? 0;
  }

  async #status(id: number): Promise<JobStatus | undefined> {
    try {
      return await this.#rc.call<JobStatus>('job/status', { jobid: id }, this.#clock.deadline(CALL_MS));
    } catch (error) {
      if (/job not found/.test((error as Error).message)) return undefined;
      throw error;
    }
  }

  /** Resolves once it has ended, whatever its result. */
  async #stop(id: number): Promise<undefined> {
    const deadline = this.#clock.deadline(STOP_MS);
    await this.#rc.call('job/stop', { jobid: id }, deadline).catch((error: unknown) => {
      if (!/job not found/.test((error as Error).message)) throw error;
    });
    while ((await this.#status(id))?.finished === false) await this.#clock.sleep(STOP_LOOK_MS, deadline);
  }

  /**
   * Resolves when no job runs that nobody follows: until then the remote may change, whatever it is asked. Rejects
   * where one does not end.
   */
  async endAbandoned(): Promise<void> {
    // It is set before they have ended.
    if (this.#isClear && this.#clearing === undefined) return;
    this.#clearing ??= this.#endOthers().finally(() => (this.#clearing = undefined));
    await this.#clearing;
  }

  /** Ends jobs that nobody follows any more: abandoned here, or left by a former daemon. */
  async #endOthers(): Promise<void> {
    this.#isClear = true;
    try {
      const { jobids } = await this.#rc.call<{ jobids: number[] | null }>(
        'job/list',
        {},
        this.#clock.deadline(CALL_MS),
      );
      for (const id of jobids ?? []) {
        const status = await this.#status(id);
        if (status?.finished === false && status.group.startsWith(GROUP) && !this.#followed.has(status.group))
          await this.#stop(id);
      }
    } catch (error) {
      this.#isClear = false;
      throw error;
    }
  }
}
