/**
 * Runs jobs on cron expressions. croner computes the times; bree runs a job's worker file in its own
 * thread, a plain `run` runs in the daemon. A job never overlaps itself, and a failed run ends nothing
 * else.
 */
import type { Job } from '../contract/plugin.ts';
import type { Clock, Logger, Release } from '../contract/platform.ts';
import { cronProblem, nextCronTime } from './cron.ts';
import { endsWithin } from './deadline.ts';
import { createWorkerJobs } from './worker-jobs.ts';
import type { WorkerJobs } from './worker-jobs.ts';

/**
 * Timers stop while the machine sleeps and do not follow a clock that is set, so the wall clock is polled
 * this often.
 */
const LOOK_MS = 30_000;
/** How long a release waits for a job that ignores its signal, unless it is said. */
const STOP_MS = 5_000;

export type ScheduledJob = Job & { readonly key: string };

export interface Scheduler {
  /**
   * Rejects with a sentence when the expression is wrong or the key is taken. The release stops the job and
   * waits for its end, for a limited time.
   */
  add(job: ScheduledJob): Promise<Release>;
  close(): Promise<void>;
}

export interface SchedulerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a release waits for a job that ignores its signal, in milliseconds; 5 s unless said. */
  readonly stopMs?: number;
}

interface Context extends SchedulerOptions {
  readonly workers: WorkerJobs;
}

export function createScheduler(options: SchedulerOptions): Scheduler {
  const context: Context = { ...options, workers: createWorkerJobs(options) };
  const releases = new Map<string, () => Promise<void>>();
  let closed = false;
  return {
    add: async (job) => {
      if (closed) throw new Error('the scheduler is closed');
      if (releases.has(job.key)) throw new Error(`a job ${job.key} is already scheduled`);
      const [expression, timezone] = [job.cron().trim(), job.timezone?.()];
      const problem = expression === '' ? undefined : cronProblem(expression, timezone);
      if (problem !== undefined) throw new Error(`job ${job.key}: ${problem}`);
      const stop =
        expression === '' ? async () => undefined : schedule(job, { expression, timezone }, context);
      const release = async (): Promise<void> => {
        if (releases.get(job.key) === release) releases.delete(job.key);
        await stop();
      };
      releases.set(job.key, release);
      return release;
    },
    close: async () => {
      closed = true;
      await Promise.all([...releases.values()].map((release) => release()));
      await context.workers.close();
    },
  };
}

interface Rule {
  readonly expression: string;
  readonly timezone: string | undefined;
}

function schedule(job: ScheduledJob, rule: Rule, context: Context): () => Promise<void> {
  const { clock, log, stopMs = STOP_MS } = context;
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  const trigger = (): void => {
    if (running !== undefined) {
      log.warn({ job: job.key }, 'job still runs from its last time; this time is left out');
      return;
    }
    running = runJob(job, stopping.signal, context).finally(() => {
      running = undefined;
    });
  };
  const cancel = repeat(rule, clock, trigger);
  return async () => {
    cancel();
    stopping.abort(new Error('the job is stopped'));
    if (running === undefined) return;
    if (!(await endsWithin(clock, stopMs, running)))
      log.warn({ job: job.key }, 'job does not stop and is abandoned');
  };
}

/** Calls `fn` at every time of the rule. Times that passed while the machine slept lead to one late call. */
function repeat({ expression, timezone }: Rule, clock: Clock, fn: () => void): () => void {
  let cancel: () => void = () => undefined;
  const wait = (fromMs: number): void => {
    const dueMs = nextCronTime(expression, timezone, fromMs);
    if (dueMs === undefined) return;
    cancel = clock.after(Math.min(LOOK_MS, Math.max(0, dueMs - clock.now())), () => look(fromMs, dueMs));
  };
  const look = (fromMs: number, dueMs: number): void => {
    const nowMs = clock.now();
    if (nowMs >= dueMs) fn();
    // The clock was set back to before this wait began, so the computed time is no longer the next one.
    wait(nowMs >= dueMs || nowMs < fromMs ? nowMs : fromMs);
  };
  wait(clock.now());
  return () => cancel();
}

async function runJob(
  job: ScheduledJob,
  signal: AbortSignal,
  { clock, log, workers }: Context,
): Promise<void> {
  const startedMs = clock.monotonic();
  try {
    if (job.worker !== undefined) await workers.run(job.key, job.worker, signal);
    else await job.run?.(signal);
    log.debug({ job: job.key, ms: Math.round(clock.monotonic() - startedMs) }, 'job done');
  } catch (err) {
    if (!signal.aborted) log.error({ err, job: job.key }, 'job failed');
  }
}
