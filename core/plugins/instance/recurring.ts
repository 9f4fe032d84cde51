/**
 * What a plugin runs repeatedly: intervals, and jobs on a cron expression. Each has a release that waits
 * for the current run, and a way to read its schedule again after a configuration change.
 */
import type { Interval, Job } from '../../contract/plugin.ts';
import type { Clock, Logger, Release } from '../../contract/platform.ts';
import { sentence } from '../../platform/log/thrown.ts';

/** The scheduler as the host uses it; keys are unique among all plugins. */
export interface JobScheduler {
  add(job: Job & { readonly key: string }): Promise<Release>;
}

export interface Recurring {
  /** Reads the schedule again; does nothing when it is unchanged. */
  refresh(): Promise<void>;
  release(): Promise<void>;
}

export interface RecurringOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** Waits `ms()` after the start or the last end, runs, and repeats. `ms()` of 0 or less pauses it. */
export function startInterval(interval: Interval, options: RecurringOptions): Recurring {
  const { clock, log, signal } = options;
  let lastEnd = clock.monotonic();
  let waitingMs: number | undefined;
  let cancel: () => void = () => undefined;
  let running: Promise<void> | undefined;
  let released = false;

  const run = async (): Promise<void> => {
    try {
      await interval.run(signal);
    } catch (error) {
      if (!signal.aborted)
        log.error(
          { interval: interval.name, err: error ?? sentence(error) },
          'interval failed; it will run again',
        );
    }
    lastEnd = clock.monotonic();
    running = undefined;
    if (!released) arm();
  };

  const arm = (): void => {
    cancel();
    waitingMs = interval.ms();
    if (!(waitingMs > 0)) return;
    const dueMs = Math.max(0, lastEnd + waitingMs - clock.monotonic());
    cancel = clock.after(Math.min(dueMs, LONGEST_WAIT_MS), () => {
      running = run();
    });
  };

  arm();
  return {
    refresh: async () => {
      if (!running && !released && interval.ms() !== waitingMs) arm();
    },
    release: async () => {
      released = true;
      cancel();
      await running;
    },
  };
}

/** Schedules a job under `<plugin>/<job>`; an empty expression switches it off. */
export async function startJob(
  job: Job,
  options: RecurringOptions & { readonly plugin: string; readonly scheduler: JobScheduler },
): Promise<Recurring> {
  const { plugin, scheduler, log, signal } = options;
  const rhythm = (): string => (job.cron() === '' ? '' : `${job.cron()} ${job.timezone?.() ?? ''}`);
  const run =
    job.run &&
    (async (jobSignal: AbortSignal): Promise<void> => {
      try {
        await job.run?.(AbortSignal.any([signal, jobSignal]));
      } catch (error) {
        if (!signal.aborted)
          log.error(
            { job: job.name, err: error ?? sentence(error) },
            'job failed; it will run again on its schedule',
          );
      }
    });
  const start = async (): Promise<Release | undefined> =>
    rhythm() === ''
      ? undefined
      : scheduler.add({ ...job, ...(run && { run }), key: `${plugin}/${job.name}` });

  let current = rhythm();
  let stop = await start();
  return {
    refresh: async () => {
      if (rhythm() === current) return;
      await stop?.();
      stop = undefined;
      current = rhythm();
      stop = await start();
    },
    release: async () => {
      await stop?.();
    },
  };
}
