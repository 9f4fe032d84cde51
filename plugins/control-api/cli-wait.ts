/** `mountkeeper wait --synced`: returns when nothing is left to upload. */
import { parseArgs } from 'node:util';
import { durationMs, formatDuration } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import { fetchStatus } from './api-client.ts';
import type { StatusView } from './status-view.ts';

const POLL_MS = 500;
/** What a cycle may take beyond its interval, including its deadlines: 2.5 s for the figures. */
const CYCLE_MS = 3_000;
const USAGE = '--synced [--timeout 10m]';

/** Milliseconds to wait; undefined for ever. Throws a sentence. */
function timeoutOf(args: readonly string[]): number | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: { synced: { type: 'boolean' }, timeout: { type: 'string' } },
  });
  if (values.synced !== true) throw new Error('say what to wait for: --synced');
  return values.timeout === undefined ? undefined : durationMs(values.timeout);
}

function progressOf(view: StatusView): string {
  const files = view.shares.reduce((sum, share) => sum + share.dirty_count, 0);
  const busy = view.shares
    .filter((share) => share.dirty_count > 0)
    .map((share) => `${share.name} ${share.dirty_count}`);
  const down = view.shares.filter((share) => share.health !== 'healthy').map((share) => share.name);
  const parts = [`${files} ${files === 1 ? 'file' : 'files'} left`];
  if (busy.length > 0) parts.push(`(${busy.join(', ')})`);
  if (down.length > 0) parts.push(`not reachable: ${down.join(', ')}`);
  return parts.join(' ');
}

/** Maximum age of a status: the daemon publishes one in every cycle. */
async function oldestStatusMs(cli: CliContext): Promise<number> {
  const { status, body } = await cli.request('GET', '/api/config');
  const config =
    status === 200 ? (JSON.parse(body) as { supervisor?: { poll_interval?: string } } | null) : null;
  return durationMs(config?.supervisor?.poll_interval ?? '2s') + CYCLE_MS;
}

/**
 * A status from before the wait does not include a file that was written just before it. So "synced" counts
 * only when files were seen waiting since the wait began, or when it has lasted longer than a status can be
 * old. That time begins at the first answer, because a daemon that did not answer has not checked either. A
 * share that was not up yet says nothing about its files.
 */
function createJudge(cli: CliContext): (view: StatusView) => Promise<boolean> {
  let isNews = false;
  let firstAnswerAt: number | undefined;
  let oldestMs: number | undefined;
  return async ({ all_synced: isSynced, shares }) => {
    firstAnswerAt ??= cli.clock.monotonic();
    isNews ||= !isSynced && shares.some((share) => share.dirty_count > 0);
    if (!isSynced || isNews) return isSynced;
    oldestMs ??= await oldestStatusMs(cli);
    return cli.clock.monotonic() - firstAnswerAt >= oldestMs;
  };
}

function report(cli: CliContext, synced: boolean, text: string): void {
  if (cli.json) cli.print(JSON.stringify({ synced }));
  if (!synced) cli.printError(text);
  else if (!cli.json) cli.print(text);
}

async function waitForSync(cli: CliContext, timeoutMs: number | undefined): Promise<number> {
  const startedAt = cli.clock.monotonic();
  const judge = createJudge(cli);
  for (;;) {
    const { view } = await fetchStatus(cli);
    if (await judge(view)) {
      report(cli, true, 'All synced.');
      return 0;
    }
    const leftMs = timeoutMs === undefined ? Infinity : startedAt + timeoutMs - cli.clock.monotonic();
    if (leftMs <= 0) {
      const left = view.all_synced
        ? 'nothing is known to be left, but the figures may be older than what was written last; wait longer'
        : progressOf(view);
      report(cli, false, `Not synced after ${formatDuration(timeoutMs ?? 0)}: ${left}.`);
      return 75;
    }
    cli.progress(view.all_synced ? 'nothing is left; making sure' : progressOf(view));
    await cli.clock.sleep(Math.min(POLL_MS, leftMs), cli.signal);
  }
}

async function run(cli: CliContext): Promise<number> {
  let timeoutMs: number | undefined;
  try {
    timeoutMs = timeoutOf(cli.args);
  } catch (error) {
    cli.printError(`${(error as Error).message}; usage: mountkeeper wait ${USAGE}`);
    return 64;
  }
  return waitForSync(cli, timeoutMs);
}

export const waitCommand: CliCommand = {
  name: 'wait',
  usage: USAGE,
  summary: 'Wait until every file is on its remote.',
  run,
};
