/** `mountkeeper warmup [SHARE [PATH]]`. */
import { parseArgs } from 'node:util';
import { pause } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import { closingLine, createRateMeter, progressLine, totalsOf } from './progress.ts';
import type { RateMeter } from './progress.ts';
import type { TaskView, WarmupAnswer } from './routes.ts';

const USAGE = '[SHARE [PATH]] [--newer-than AGE] [--dry-run] [--cancel] [--no-wait]';
const LOOK_EVERY_MS = 500;

interface Options {
  /** Undefined: every share that a rule names. */
  readonly share: string | undefined;
  readonly path: string | undefined;
  readonly newerThan: string | undefined;
  readonly isDryRun: boolean;
  readonly isCancel: boolean;
  readonly isWaiting: boolean;
}

/** Throws a sentence. */
function optionsOf(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      'newer-than': { type: 'string' },
      'dry-run': { type: 'boolean' },
      cancel: { type: 'boolean' },
      'no-wait': { type: 'boolean' },
    },
  });
  const [share, path, ...more] = positionals;
  const newerThan = values['newer-than'];
  if (more.length > 0) throw new Error('one share at the most, and one path');
  if (share === undefined && newerThan !== undefined)
    throw new Error('the rules have an age of their own; --newer-than needs a share');
  return {
    // An age without a path means the whole share, because the rules have their own ages.
    share,
    path: path ?? (newerThan === undefined ? undefined : ''),
    newerThan,
    isDryRun: values['dry-run'] === true,
    isCancel: values.cancel === true,
    isWaiting: values['no-wait'] !== true,
  };
}

async function ask(
  cli: CliContext,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<WarmupAnswer> {
  const answer = await cli.request(method, path, body);
  try {
    const {
      ok = false,
      message = 'the answer of the daemon cannot be understood',
      tasks = [],
    } = JSON.parse(answer.body) as Partial<WarmupAnswer>;
    return { ok, message, tasks };
  } catch {
    // Not JSON: some other server's, or the daemon's own refusal.
    return {
      ok: false,
      message: `the daemon answered with status ${answer.status}; is the plugin warmup switched on?`,
      tasks: [],
    };
  }
}

function isSame(one: TaskView, other: TaskView): boolean {
  return (
    one.share === other.share &&
    one.path === other.path &&
    one.newer_than === other.newer_than &&
    one.dry_run === other.dry_run
  );
}

/** The state of all tasks together: that of the first unfinished one. */
function stateOf(tasks: readonly TaskView[]): string {
  const state = tasks.find((task) => task.active)?.state ?? 'complete';
  return state === 'pending' ? 'waiting for the share or its turn' : state;
}

/** Waits until all are finished. Undefined when the wait was interrupted. */
async function follow(
  cli: CliContext,
  shares: readonly string[],
  asked: readonly TaskView[],
): Promise<readonly TaskView[] | undefined> {
  const meter = createRateMeter();
  while (!cli.signal.aborted) {
    const answers = await Promise.all(shares.map((share) => ask(cli, 'GET', routeOf(share))));
    const mine = answers
      .flatMap(({ tasks }) => tasks)
      .filter((task) => asked.some((one) => isSame(one, task)));
    if (mine.every((task) => !task.active)) return mine;
    show(cli, mine, meter);
    await pause(cli.clock, LOOK_EVERY_MS, cli.signal);
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
  else
    for (const task of tasks)
      cli.print(isOneShare(tasks) ? closingLine(task) : `${task.share}: ${closingLine(task)}`);
  return isGood ? 0 : 1;
}

function isOneShare(tasks: readonly TaskView[]): boolean {
  return new Set(tasks.map((task) => task.share)).size < 2;
}

function routeOf(share: string): string {
  return `/api/warmup/${encodeURIComponent(share)}`;
}

/** In the order of the configuration. */
async function sharesWithRules(cli: CliContext): Promise<readonly string[]> {
  const { status, body } = await cli.request('GET', '/api/config');
  if (status !== 200) throw new Error(`the daemon answered with status ${status}`);
  const config = JSON.parse(body) as { warmup?: { rules?: readonly { share: string }[] } } | null;
  return [...new Set((config?.warmup?.rules ?? []).map((rule) => rule.share))];
}

/** Joins several answers: the first failed one, else all of their tasks. */
function joined(answers: readonly WarmupAnswer[]): WarmupAnswer {
  const refused = answers.find(({ ok }) => !ok);
  return (
    refused ?? {
      ok: true,
      message: answers.map(({ message }) => message).join('\n'),
      tasks: answers.flatMap(({ tasks }) => tasks),
    }
  );
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
  const shares = options.share === undefined ? await sharesWithRules(cli) : [options.share];
  if (shares.length === 0)
    return say(cli, {
      ok: false,
      message: 'No warmup rule is configured; name a share and a path',
      tasks: [],
    });
  return runFor(cli, shares, options);
}

async function runFor(
  cli: CliContext,
  shares: readonly string[],
  { share, path, newerThan, isDryRun, isCancel, isWaiting }: Options,
): Promise<number> {
  if (isCancel)
    return say(
      cli,
      joined(await Promise.all(shares.map((one) => ask(cli, 'POST', `${routeOf(one)}/cancel`)))),
    );
  // JSON leaves out undefined values.
  const body = { path, newer_than: newerThan, dry_run: isDryRun };
  const answer = joined(await Promise.all(shares.map((one) => ask(cli, 'POST', routeOf(one), body))));
  if (!answer.ok || !isWaiting) return say(cli, answer);
  const ended = await follow(cli, shares, answer.tasks);
  if (ended !== undefined) return close(cli, ended);
  cli.printError(
    `The warmup goes on in the daemon; mountkeeper warmup ${share === undefined ? '' : `${share} `}--cancel ends it.`,
  );
  return 1;
}

export const warmupCommand: CliCommand = {
  name: 'warmup',
  usage: USAGE,
  run,
  summary:
    'Fetch what the rules name, all of them or those of a share, or one folder of it, into the ' +
    'cache, and show how far it is; --dry-run only counts.',
};
