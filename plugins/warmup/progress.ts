/** The text that the command line shows about a warmup. */
import { formatBytes, formatDuration, formatRate } from 'mountkeeper';
import type { TaskView } from './routes.ts';

const BAR_PLACES = 24;
/** The rate covers the last seconds: an average since the start would hide that nothing arrives any more. */
const RATE_OVER_MS = 10_000;

export interface Totals {
  readonly total: number;
  readonly done: number;
  readonly errors: number;
  readonly totalBytes: number;
  readonly doneBytes: number;
  /** Bytes that were fetched, without those that were already cached. */
  readonly fetchedBytes: number;
}

export function totalsOf(tasks: readonly TaskView[]): Totals {
  const sum = (pick: (task: TaskView) => number): number => tasks.reduce((all, task) => all + pick(task), 0);
  return {
    total: sum((task) => task.total_files),
    done: sum((task) => task.skipped + task.cached + task.errors),
    errors: sum((task) => task.errors),
    totalBytes: sum((task) => task.total_bytes),
    doneBytes: sum((task) => task.skipped_bytes + task.cached_bytes),
    fetchedBytes: sum((task) => task.cached_bytes),
  };
}

export interface RateMeter {
  /** Bytes per second over the last seconds. */
  rate(fetchedBytes: number, atMs: number): number;
}

export function createRateMeter(): RateMeter {
  const marks: { readonly bytes: number; readonly atMs: number }[] = [];
  return {
    rate: (bytes, atMs) => {
      // A restarted run counts from zero.
      if (bytes < (marks.at(-1)?.bytes ?? 0)) marks.length = 0;
      marks.push({ bytes, atMs });
      while (marks.length > 2 && atMs - (marks[1]?.atMs ?? atMs) >= RATE_OVER_MS) marks.shift();
      const [first] = marks;
      return first === undefined || atMs <= first.atMs
        ? 0
        : ((bytes - first.bytes) * 1000) / (atMs - first.atMs);
    },
  };
}

/** `caching  [########········]  412/2010 files  61.2 MiB of 597.7 MiB  24.1 MiB/s  22s left` */
export function progressLine(state: string, totals: Totals, rate: number): string {
  const { total, done, totalBytes, doneBytes, errors } = totals;
  if (state !== 'caching') return `${state}  ${total} files, ${formatBytes(totalBytes)}`;
  const part = totalBytes > 0 ? doneBytes / totalBytes : total > 0 ? done / total : 1;
  const filled = Math.min(BAR_PLACES, Math.floor(part * BAR_PLACES));
  const left =
    rate > 0 ? `${formatDuration(((totalBytes - doneBytes) / rate) * 1000)} left` : 'time left unknown';
  const failed = errors > 0 ? `  ${errors} failed` : '';
  return (
    `${state}  [${'#'.repeat(filled)}${'.'.repeat(BAR_PLACES - filled)}]  ${done}/${total} ` +
    `files${failed}  ${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}  ` +
    `${formatRate(rate)}  ${left}`
  );
}

/** One sentence for a task that is finished or interrupted. */
export function closingLine(task: TaskView): string {
  const where = task.path === '' ? 'the whole share' : task.path;
  const found = `${task.total_files} files (${formatBytes(task.total_bytes)})`;
  const already = `${task.skipped} already cached (${formatBytes(task.skipped_bytes)})`;
  if (task.dry_run && task.state === 'complete') {
    return (
      `${where}: ${found}, ${already}, ${task.total_files - task.skipped} to fetch ` +
      `(${formatBytes(task.total_bytes - task.skipped_bytes)})${unread(task)}`
    );
  }
  const counts = `${found}, ${already}, ${task.cached} fetched (${formatBytes(task.cached_bytes)})`;
  if (task.cache_full)
    return (
      `${where}: ${counts}; the rest does not fit into the cache: ` +
      'raise cache.max_size, make room on its disk, or narrow the rule'
    );
  if (task.state === 'pending') return `${where}: cancelled; ${counts}`;
  if (task.state === 'failed') return `${where}: failed; the log says why`;
  return `${where}: ${counts}${unread(task)}`;
}

function unread({ errors }: TaskView): string {
  return errors > 0 ? `, ${errors} could not be read; the log names them` : '';
}
