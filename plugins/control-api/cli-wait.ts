/** `mountkeeper wait --synced`: returns when nothing is left to upload. */
import { parseArgs } from 'node:util';
import { durationMs, formatDuration } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import { fetchStatus } from './api-client.ts';
import type { StatusView } from './status-view.ts';

const POLL_MS = 500;
/** An answer says that all is synced only by questions to the shares of the last 4.5 s. */
const OLDEST_SYNCED_MS = 5_000;
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

/**
 * A status from before the wait does not include a file that was written just before it, also when it shows others
 * that wait. So "synced" counts only when it was asked for (`sentAtMs`) later than a status can be old: the answer
 * may be long on its way. That time begins at the first answer, because a daemon that did not answer has not checked
 * either.
 */
function createJudge({ clock }: CliContext): (view: StatusView, sentAtMs: number) => boolean {
  let firstAnswerAt: number | undefined;
  return ({ all_synced: isSynced }, sentAtMs) => {
    firstAnswerAt ??= clock.monotonic();
    return isSynced && sentAtMs - firstAnswerAt >= OLDEST_SYNCED_MS;
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
    const sentAtMs = cli.clock.monotonic();
    const { view } = await fetchStatus(cli);
    if (judge(view, sentAtMs)) {
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
