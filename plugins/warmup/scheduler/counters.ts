import type { Counts, Report } from '../job-description.ts';
import { NO_COUNTS } from '../job-description.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
/** Problems that are reported individually; further ones are only counted. */
const MOST_PROBLEMS = 50;

/** The helper's counts, and those that the daemon does not know yet. */
export class Counters {
  phase: 'listing' | 'caching' = 'listing';
  readonly counts: Writable<Counts> = { ...NO_COUNTS };
  readonly #tell: (report: Report) => void;
  #told = '';
  #problems = 0;

  constructor(tell: (report: Report) => void) {
    this.#tell = tell;
  }

  found(bytes: number, isCached: boolean): void {
    this.counts.total += 1;
    this.counts.totalBytes += bytes;
    if (!isCached) return;
    this.counts.skipped += 1;
    this.counts.skippedBytes += bytes;
  }

  cached(bytes: number): void {
    this.counts.cached += 1;
    this.counts.cachedBytes += bytes;
  }

  failed(path: string, reason: string): void {
    this.counts.errors += 1;
    this.#problems += 1;
    if (this.#problems <= MOST_PROBLEMS) this.#tell({ kind: 'problem', path, reason });
  }

  /** Reports to the daemon if anything has changed. */
  report(): void {
    const report: Report = { kind: 'counts', phase: this.phase, counts: { ...this.counts } };
    const text = JSON.stringify(report);
    if (text === this.#told) return;
    this.#told = text;
    this.#tell(report);
  }
}
