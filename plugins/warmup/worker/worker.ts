/**
 * The helper process of one warmup: lists the remote directly, reads through the mount, reports the
 * results. It may hang in the mount, so the daemon never waits for its end; it ends by itself when its
 * input closes, that is, when the daemon has ended.
 */
import { constants } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { pause } from 'mountkeeper/sdk';
import { createClock } from 'mountkeeper';
import type { CacheView } from 'mountkeeper';
import { AwayError } from './unreachable.ts';
import { Fetching } from './fetching.ts';
import { linesOf } from '../lines.ts';
import { listAll } from './listing.ts';
import { loadViews, OtherReaders } from './other-readers.ts';
import { Refreshing } from './refreshing.ts';
import type { Ending, Order, Refreshed, Report } from '../job-description.ts';
import { Counters } from '../scheduler/counters.ts';

const REPORT_EVERY_MS = 200;
const ANSWER_WITHIN_MS = 10_000;
/** Lower priority than users and the daemon. */
const NICENESS = 10;
/** Bypasses the page cache, which others need more. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_DIRECT;

const clock = createClock();
const tell = (report: Report): void => void process.stdout.write(`${JSON.stringify(report)}\n`);

/** Ends the process by a signal, because `process.exit` waits for threads that hang in the mount. */
function end(): never {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('ended');
}

/** What the daemon may change at any time. */
interface Present {
  concurrency: number;
  readonly otherReaders: OtherReaders;
  readonly refreshing: Refreshing;
}

async function begin(order: Order, present: Present): Promise<Ending> {
  const views = await loadViews(order.module);
  let view: CacheView;
  try {
    view = views.openCacheView(order.parameters);
  } catch (error) {
    // Its mount has ended since the order was sent.
    return { outcome: 'away', reason: (error as Error).message };
  }
  return work(order, view, present);
}

async function work(order: Order, view: CacheView, present: Present): Promise<Ending> {
  const counters = new Counters(tell);
  const patience = { clock, timeoutMs: ANSWER_WITHIN_MS };
  const done = new AbortController();
  void reportOften(counters, done.signal);
  try {
    await listAll(order, { view, counters: counters, patience });
    if (order.isDryRun) return { outcome: 'complete', reason: '' };
    // The mount may have listed folders before these files changed.
    if (counters.counts.total > counters.counts.skipped) await present.refreshing.refresh(order.path, true);
    counters.phase = 'caching';
    counters.report();
    const parts = {
      concurrency: () => present.concurrency,
      otherReaders: () => present.otherReaders.list(),
      refresh: (folder: string) => present.refreshing.refresh(folder, false),
    };
    return await new Fetching({
      order,
      view,
      clock,
      counters: counters,
      patience,
      ...parts,
      openFlags: OPEN_FLAGS,
    }).run();
  } catch (error) {
    return { outcome: error instanceof AwayError ? 'away' : 'failed', reason: (error as Error).message };
  } finally {
    done.abort();
    counters.report();
  }
}

async function reportOften(counters: Counters, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    counters.report();
    await pause(clock, REPORT_EVERY_MS, signal);
  }
}

async function main(): Promise<void> {
  // Where the daemon runs with more, its worker may not go back.
  setPriority(Math.max(getPriority(), NICENESS));
  process.stdout.on('error', end);
  let present: Present | undefined;
  for await (const line of linesOf(process.stdin)) {
    const said = JSON.parse(line) as Order | Refreshed;
    if ('refreshed' in said) {
      present?.refreshing.done(said.refreshed);
      continue;
    }
    const isFirst = present === undefined;
    present ??= {
      concurrency: said.concurrency,
      otherReaders: new OtherReaders(),
      refreshing: new Refreshing(tell),
    };
    present.concurrency = said.concurrency;
    void present.otherReaders.set(said.otherMounts);
    if (isFirst) void begin(said, present).then((ending) => tellEnd(ending));
  }
}

function tellEnd(ending: Ending): void {
  const report: Report = { kind: 'end', ending };
  process.stdout.write(`${JSON.stringify(report)}\n`, end);
}

// An end without a report is what the daemon takes for a failure.
void main()
  .catch(() => undefined)
  .finally(end);
