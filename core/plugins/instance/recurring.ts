/**
 * What a plugin runs repeatedly: intervals, and jobs on a cron expression. Each has a release that waits
 * for the current run, and a way to read its schedule again after a configuration change.
 */
import type { Interval, Job } from '../../contract/plugin.ts';
import type { Clock, Logger, Release } from '../../contract/platform.ts';
import { endsWithin } from '../../platform/deadline.ts';
import { sentence } from '../../platform/log/thrown.ts';

/** The scheduler as the host uses it; keys are unique among all plugins. */
export interface JobScheduler {
  add(job: Job & { readonly key: string }): Promise<Release>;
}

export interface Recurring {
  /** A sentence about the run that goes on now, where it takes long. */
  late(): string | undefined;
  /** Reads the schedule again; does nothing when it is unchanged. */
  refresh(): Promise<void>;
  release(): Promise<void>;
}

export interface RecurringOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** How long a release waits for a run that does not end, in milliseconds. Default: until it ends. */
  readonly stopMs?: number | undefined;
  /** Calls it, and measures how long it holds up everything else. Default: calls it. */
  readonly watched?: Watched;
}

/** `at`: such as `interval water`. */
export type Watched = <T>(at: string, run: () => T) => T;

const unwatched: Watched = (_, run) => run();

/** A run that takes longer is told of. */
const LATE_MS = 60_000;

/** What becomes of other runs meanwhile. */
const WAIT = 'and the next run waits for that';
const LEFT_OUT = 'and the times that come before it ends are left out';

/** The run that goes on now. Says once of each that it takes long. */
class Run {
  readonly #what: string;
  readonly #meanwhile: string;
  readonly #options: Pick<RecurringOptions, 'clock' | 'log'>;
  #lateSince: string | undefined;
  #cancel: () => void = () => undefined;

  constructor(what: string, meanwhile: string, options: Pick<RecurringOptions, 'clock' | 'log'>) {
    this.#what = what;
    this.#meanwhile = meanwhile;
    this.#options = options;
  }

  begins(): void {
    const { clock, log } = this.#options;
    const since = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    this.#cancel = clock.after(LATE_MS, () => {
      this.#lateSince = since;
      log.warn({ run: this.#what, since }, 'a run takes long; no other begins before it ends');
    });
  }

  ends(): void {
    this.#cancel();
    this.#lateSince = undefined;
  }

  late(): string | undefined {
    return this.#lateSince === undefined
      ? undefined
      : `its ${this.#what} has been running since ${this.#lateSince}, ${this.#meanwhile}`;
  }
}

const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** Waits `ms()` after the start or the last end, runs, and repeats. `ms()` of 0 or less pauses it. */
export function startInterval(interval: Interval, options: RecurringOptions): Recurring {
  const { clock, log, signal, watched = unwatched } = options;
  let lastEnd = clock.monotonic();
  let waitingMs: number | undefined;
  let cancel: () => void = () => undefined;
  let running: Promise<void> | undefined;
  let released = false;
  const current = new Run(`interval "${interval.name}"`, WAIT, options);

  const run = async (): Promise<void> => {
    current.begins();
    try {
      await watched(`interval ${interval.name}`, () => interval.run(signal));
    } catch (error) {
      if (!signal.aborted)
        log.error(
          { interval: interval.name, err: error ?? sentence(error) },
          'interval failed; it will run again',
        );
    }
    current.ends();
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
    late: () => current.late(),
    refresh: async () => {
      if (!running && !released && interval.ms() !== waitingMs) arm();
    },
    release: async () => {
      released = true;
      cancel();
      if (running && !(await endsInTime(running, options)))
        log.warn({ interval: interval.name }, 'interval does not stop and is abandoned');
      current.ends();
    },
  };
}

/** False where it goes on after the time that a release has. */
async function endsInTime(running: Promise<void>, { clock, stopMs }: RecurringOptions): Promise<boolean> {
  if (stopMs !== undefined) return endsWithin(clock, stopMs, running);
  await running;
  return true;
}

/** Schedules a job under `<plugin>/<job>`; an empty expression switches it off. */
export async function startJob(
  job: Job,
  options: RecurringOptions & { readonly plugin: string; readonly scheduler: JobScheduler },
): Promise<Recurring> {
  const { plugin, scheduler, log, signal, watched = unwatched } = options;
  const rhythm = (): string => (job.cron() === '' ? '' : `${job.cron()} ${job.timezone?.() ?? ''}`);
  const now = new Run(`job "${job.name}"`, LEFT_OUT, options);
  const run =
    job.run &&
    (async (jobSignal: AbortSignal): Promise<void> => {
      now.begins();
      try {
        await watched(`job ${job.name}`, () => job.run?.(AbortSignal.any([signal, jobSignal])));
      } catch (error) {
        if (!signal.aborted)
          log.error(
            { job: job.name, err: error ?? sentence(error) },
            'job failed; it will run again on its schedule',
          );
      }
      now.ends();
    });
  const start = async (): Promise<Release | undefined> =>
    rhythm() === ''
      ? undefined
      : scheduler.add({ ...job, ...(run && { run }), key: `${plugin}/${job.name}` });

  let current = rhythm();
  let stop = await start();
  return {
    late: () => now.late(),
    refresh: async () => {
      if (rhythm() === current) return;
      await stop?.();
      stop = undefined;
      current = rhythm();
      stop = await start();
    },
    release: async () => {
      await stop?.();
      now.ends();
    },
  };
}
