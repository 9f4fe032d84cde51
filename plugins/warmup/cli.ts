/** `mountkeeper warmup SHARE [PATH]`. */
import { parseArgs } from 'node:util';
import type { CliCommand, CliContext } from 'mountkeeper';
import { closingLine, createRateMeter, progressLine, totalsOf } from './progress.ts';
import type { RateMeter } from './progress.ts';
import type { TaskView, WarmupAnswer } from './routes.ts';

const USAGE = 'SHARE [PATH] [--newer-than AGE] [--dry-run] [--cancel] [--no-wait]';
const LOOK_EVERY_MS = 500;

interface Options {
  readonly share: string;
  readonly path: string | undefined;
  readonly newerThan: string | undefined;
  readonly isDryRun: boolean;
  readonly isCancel: boolean;
  readonly isWaiting: boolean;
}

/** Throws a sentence. */
function optionsOf(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args], allowPositionals: true,
    options: { 'newer-than': { type: 'string' }, 'dry-run': { type: 'boolean' }, cancel: { type: 'boolean' }, 'no-wait': { type: 'boolean' } },
  });
  const [share, path, ...more] = positionals;
  if (share === undefined || more.length > 0) throw new Error('a share is needed, and at most one path');
  const newerThan = values['newer-than'];
  return {
    // An age alone means the whole share: the rules have their own.
    share, path: path ?? (newerThan === undefined ? undefined : ''), newerThan,
    isDryRun: values['dry-run'] === true, isCancel: values.cancel === true, isWaiting: values['no-wait'] !== true,
  };
}

async function ask(cli: CliContext, method: 'GET' | 'POST', path: string, body?: unknown): Promise<WarmupAnswer> {
  const answer = await cli.request(method, path, body);
  try {
    const { ok = false, message = 'the daemon gave no answer that makes sense', tasks = [] } = JSON.parse(answer.body) as Partial<WarmupAnswer>;
    return { ok, message, tasks };
  } catch {
    return { ok: false, message: `the daemon answered with status ${answer.status}; is the plugin warmup switched on?`, tasks: [] };
  }
}

function isSame(one: TaskView, other: TaskView): boolean {
  return one.path === other.path && one.newer_than === other.newer_than && one.dry_run === other.dry_run;
}

/** The state of all together: what the first that is not through is at. */
function stateOf(tasks: readonly TaskView[]): string {
  const state = tasks.find((task) => task.active)?.state ?? 'complete';
  return state === 'pending' ? 'waiting for the share or its turn' : state;
}

/** Until all are through. Undefined when the wait was broken off. */
async function follow(cli: CliContext, at: string, asked: readonly TaskView[]): Promise<readonly TaskView[] | undefined> {
  const meter = createRateMeter();
  while (!cli.signal.aborted) {
    const { tasks } = await ask(cli, 'GET', at);
    const mine = tasks.filter((task) => asked.some((one) => isSame(one, task)));
    if (mine.every((task) => !task.active)) return mine;
    show(cli, mine, meter);
    await cli.clock.sleep(LOOK_EVERY_MS, cli.signal).catch(() => undefined);
  }
  return undefined;
}

function show(cli: CliContext, tasks: readonly TaskView[], meter: RateMeter): void {
  const totals = totalsOf(tasks);
  const rate = meter.rate(totals.fetchedBytes, cli.clock.monotonic());
  if (cli.json) cli.print(JSON.stringify({ tasks, bytes_per_second: Math.round(rate) }));
  else cli.progress(progressLine(stateOf(tasks), totals, rate));
}

function close(cli: CliContext, tasks: readonly TaskView[]): number {
  const isGood = tasks.length > 0 && tasks.every((task) => task.state === 'complete' && task.errors === 0);
  if (cli.json) cli.print(JSON.stringify({ tasks }));
  else if (tasks.length === 0) cli.printError('the warmup was cancelled');
  else for (const task of tasks) cli.print(closingLine(task));
  return isGood ? 0 : 1;
}

function say(cli: CliContext, answer: WarmupAnswer): number {
  if (cli.json) cli.print(JSON.stringify(answer));
  else if (answer.ok) cli.print(answer.message);
  else cli.printError(answer.message);
  return answer.ok ? 0 : 1;
}

async function run(cli: CliContext): Promise<number> {
  let options: Options;
  try {
    options = optionsOf(cli.args);
  } catch (error) {
    cli.printError(`${(error as Error).message}; usage: mountkeeper warmup ${USAGE}`);
    return 64;
  }
  const { share, path, newerThan, isDryRun, isCancel } = options;
  const at = `/api/warmup/${encodeURIComponent(share)}`;
  if (isCancel) return say(cli, await ask(cli, 'POST', `${at}/cancel`));
  // JSON leaves out what is undefined.
  const answer = await ask(cli, 'POST', at, { path, newer_than: newerThan, dry_run: isDryRun });
  if (!answer.ok || !options.isWaiting) return say(cli, answer);
  const ended = await follow(cli, at, answer.tasks);
  if (ended !== undefined) return close(cli, ended);
  cli.printError(`The warmup goes on in the daemon; mountkeeper warmup ${share} --cancel ends it.`);
  return 1;
}

export const warmupCommand: CliCommand = {
  name: 'warmup', usage: USAGE, run,
  summary: 'Fetch what the rules of a share name, or one folder of it, into the cache, and show how far it is; --dry-run only counts.',
};
