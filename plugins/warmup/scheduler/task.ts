import type { WarmupState } from 'mountkeeper';
import { NO_COUNTS } from '../job-description.ts';
import type { Counts, Ending, Report } from '../job-description.ts';

export type TaskState = Exclude<WarmupState, 'none'>;

/** What is to be warmed up: a rule of the configuration, or a request. */
export interface Target {
  readonly share: string;
  readonly path: string;
  readonly newerThan: string | null;
  /** Only counts. */
  readonly isDryRun: boolean;
}

export function keyOf({ share, path, newerThan, isDryRun }: Target): string {
  return JSON.stringify([share, path, newerThan, isDryRun]);
}

/** What a former daemon knew about a task. */
export interface Former {
  readonly state: TaskState;
  readonly counts: Counts;
  readonly isWanted: boolean;
  readonly isFull: boolean;
  /** It was a rule of the configuration; absent in files of versions that did not save this. */
  readonly isRule?: boolean;
}

const NEW: Former = { state: 'pending', counts: NO_COUNTS, isWanted: false, isFull: false };

/** One target and its state. Changes only through its own methods. */
export class Task {
  readonly target: Target;
  readonly key: string;
  state: TaskState;
  counts: Counts;
  /** Waiting, running, or interrupted: it runs as soon as its share is ready. */
  isWanted: boolean;
  /** The last run ended because the rest does not fit into the cache. */
  isFull: boolean;
  isRule: boolean;

  constructor(target: Target, former: Former = NEW) {
    this.target = target;
    this.key = keyOf(target);
    // A task that was interrupted by the end of a daemon is neither finished nor running.
    const isCutOff = former.state === 'listing' || former.state === 'caching';
    this.state = isCutOff ? 'pending' : former.state;
    this.counts = former.counts;
    this.isWanted = isCutOff || former.isWanted;
    this.isFull = former.isFull;
    this.isRule = former.isRule ?? false;
  }

  get isRunning(): boolean {
    return this.state === 'listing' || this.state === 'caching';
  }

  want(): void {
    this.isWanted = true;
    if (!this.isRunning) this.state = 'pending';
  }

  begin(): void {
    this.state = 'listing';
    this.counts = NO_COUNTS;
    this.isFull = false;
  }

  heard(report: Extract<Report, { kind: 'counts' }>): void {
    this.state = report.phase;
    this.counts = report.counts;
  }

  /** An interrupted task continues later; its counts stay. */
  ended({ outcome }: Ending): void {
    this.isFull = outcome === 'full';
    this.isWanted = outcome === 'away' || outcome === 'stopped';
    if (this.isWanted) this.state = 'pending';
    else this.state = outcome === 'complete' ? 'complete' : 'failed';
  }

  cancel(): void {
    this.isWanted = false;
    if (this.isRunning) this.state = 'pending';
  }
}

/** The least finished state first, but a failure before all. */
export const STATES: readonly TaskState[] = ['failed', 'pending', 'listing', 'caching', 'complete'];

export interface Summary {
  readonly warmupState: WarmupState;
  readonly warmupDone: number;
  readonly warmupTotal: number;
}

export function summaryOf(tasks: readonly Pick<Task, 'state' | 'counts'>[]): Summary {
  return {
    warmupState: STATES.find((state) => tasks.some((task) => task.state === state)) ?? 'none',
    warmupDone: tasks.reduce((sum, { counts }) => sum + counts.skipped + counts.cached, 0),
    warmupTotal: tasks.reduce((sum, { counts }) => sum + counts.total, 0),
  };
}
