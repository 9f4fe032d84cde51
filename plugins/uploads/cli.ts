/** `mountkeeper queue`, `conflicts` and `verify`. */
import { parseArgs } from 'node:util';
import { durationMs, formatBytes } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import { ended, shownName } from './proof-command.ts';
import type { VerifyBody } from './proof/verify-jobs.ts';
import { MOST_ENTRIES } from './queue-body.ts';
import type { QueueBody } from './queue-body.ts';

const QUEUE_USAGE = '[SHARE [PATH]] [--send | --discard | --pause DURATION | --resume]';
const CONFLICTS_USAGE = '[SHARE [PATH COPY mine|theirs|both]]';
const VERIFY_USAGE = 'SHARE [PATH]';

interface Answer {
  readonly ok: boolean;
  readonly message: string;
}

interface Queueing {
  readonly share: string | undefined;
  readonly path: string | undefined;
  readonly verb?: 'send' | 'pause' | 'discard';
  /** Length of a pause; 0 ends it. */
  readonly seconds?: number;
}

/** Undefined for arguments that make no sense. */
function queueingOf(args: readonly string[]): Queueing | undefined {
  const {
    values,
    positionals: [share, given, ...more],
  } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      send: { type: 'boolean' },
      discard: { type: 'boolean' },
      pause: { type: 'string' },
      resume: { type: 'boolean' },
    },
  });
  const path = namesOf(given ?? '') || undefined;
  const [asked, ...others] = Object.keys(values);
  if (more.length > 0 || others.length > 0 || (asked !== undefined && share === undefined)) return undefined;
  return verbOf({ share, path }, asked, values.pause);
}

function verbOf(
  { share, path }: Pick<Queueing, 'share' | 'path'>,
  asked: string | undefined,
  pause: string | undefined,
): Queueing | undefined {
  if (asked === undefined) return { share, path };
  if (asked === 'send') return { share, path, verb: 'send' };
  if (asked === 'discard') return path === undefined ? undefined : { share, path, verb: 'discard' };
  if (path !== undefined) return undefined;
  if (pause === undefined) return { share, path, verb: 'pause', seconds: 0 };
  // None is no pause, and does not end one.
  const seconds = Math.ceil(durationMs(pause) / 1_000);
  return seconds === 0 ? undefined : { share, path, verb: 'pause', seconds };
}

async function queue(cli: CliContext): Promise<number> {
  const asked = queueingOf(cli.args);
  if (asked === undefined) return usage(cli, `queue ${QUEUE_USAGE}`);
  const { share, path, verb, seconds } = asked;
  if (verb === undefined || share === undefined) return showQueues(cli, share, path);
  if (verb === 'discard') return discard(cli, share, path ?? '');
  return ask(cli, share, verb, verb === 'pause' ? { seconds } : path === undefined ? {} : { path });
}

/** Gives up the version that the queue shows now: one that is written meanwhile is refused. */
async function discard(cli: CliContext, share: string, path: string): Promise<number> {
  const [body] = (await read(cli, share, path)) ?? [];
  if (body === undefined) return 1;
  const version = body.entries.find((one) => one.path === path && one.version !== null)?.version;
  // What does not wait, or cannot be discarded: the daemon says why.
  return ask(cli, share, 'discard', { path, version: version ?? 'none' });
}

async function conflicts(cli: CliContext): Promise<number> {
  const [share, path, copy, keep, ...more] = cli.args;
  if (more.length > 0 || (path !== undefined && keep === undefined))
    return usage(cli, `conflicts ${CONFLICTS_USAGE}`);
  if (share !== undefined && path !== undefined) return ask(cli, share, 'conflicts', { path, copy, keep });
  const queues = await read(cli, share);
  if (queues === undefined) return 1;
  const rows = queues.flatMap((one) =>
    one.conflicts.map((conflict) => [
      one.share,
      conflict.at,
      conflict.what,
      conflict.path,
      conflict.copy === conflict.path ? '' : conflict.copy,
    ]),
  );
  if (cli.json)
    cli.print(
      JSON.stringify(
        queues.flatMap((one) => one.conflicts.map((conflict) => ({ share: one.share, ...conflict }))),
      ),
    );
  else if (rows.length === 0) cli.print('No conflicts.');
  else cli.table([['share', 'at', 'what', 'path', 'other version'], ...rows]);
  return 0;
}

async function verify(cli: CliContext): Promise<number> {
  const [share, path, ...more] = cli.args;
  if (share === undefined || more.length > 0) return usage(cli, `verify ${VERIFY_USAGE}`);
  const body = await ended<VerifyBody>({ share, verb: 'verify', path: namesOf(path ?? '') }, cli);
  if (body === undefined) return 1;
  const rows = body.results.map((file) => [shownName(file.path), formatBytes(file.bytes), file.result]);
  if (cli.json) cli.print(JSON.stringify(body));
  else if (rows.length > 0) cli.table([['path', 'size', 'result'], ...rows]);
  if (!cli.json) (body.is_equal ? cli.print : cli.printError).call(cli, body.message);
  return body.is_equal ? 0 : 1;
}

/** In the share; `''` for the whole of it. */
function namesOf(path: string): string {
  return path
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .join('/');
}

function usage(cli: CliContext, text: string): number {
  cli.printError(`usage: mountkeeper ${text}`);
  return 64;
}

async function ask(cli: CliContext, share: string, verb: string, request: unknown): Promise<number> {
  const { body } = await cli.request('POST', `/api/queue/${encodeURIComponent(share)}/${verb}`, request);
  const answer = parsed(body) as Answer | undefined;
  if (answer === undefined) {
    cli.printError('the answer of the daemon cannot be understood');
    return 1;
  }
  if (cli.json) cli.print(body);
  else {
    (answer.ok ? cli.print : cli.printError).call(cli, answer.message);
  }
  return answer.ok ? 0 : 1;
}

/** Undefined when the reason was printed. */
async function read(
  cli: CliContext,
  share: string | undefined,
  path?: string,
): Promise<readonly QueueBody[] | undefined> {
  const only = path === undefined || path === '' ? '' : `?path=${encodeURIComponent(path)}`;
  const { status, body } = await cli.request(
    'GET',
    share === undefined ? '/api/queue' : `/api/queue/${encodeURIComponent(share)}${only}`,
  );
  if (status !== 200) {
    const why: Readonly<Record<number, string>> = {
      400: `'${path ?? ''}' is no path in a share`,
      503: `the queue of '${share ?? ''}' cannot be seen now`,
    };
    cli.printError(
      share === undefined
        ? 'the answer of the daemon cannot be understood'
        : (why[status] ?? `no share '${share}' is mounted`),
    );
    return undefined;
  }
  const answer = parsed(body) as QueueBody | { readonly shares: readonly QueueBody[] };
  return 'shares' in answer ? answer.shares : [answer];
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // Not an answer of the daemon.
    return undefined;
  }
}

async function showQueues(
  cli: CliContext,
  share: string | undefined,
  path: string | undefined,
): Promise<number> {
  const queues = await read(cli, share, path);
  if (queues === undefined) return 1;
  if (cli.json) cli.print(JSON.stringify(share === undefined ? { shares: queues } : queues[0]));
  else show(queues, cli);
  return 0;
}

function show(queues: readonly QueueBody[], cli: CliContext): void {
  for (const body of queues) cli.print(summaryOf(body));
  const rows = queues.flatMap(({ share, entries }) =>
    entries.map((entry) => [
      share,
      entry.action,
      entry.state,
      entry.action === 'upload' ? formatBytes(entry.bytes) : '',
      String(entry.tries),
      entry.next_try_at ?? '',
      entry.path,
      entry.reason,
    ]),
  );
  if (rows.length > 0)
    cli.table([['share', 'action', 'state', 'size', 'tries', 'next try', 'path', 'reason'], ...rows]);
  for (const { share, entries } of queues)
    if (entries.length === MOST_ENTRIES)
      cli.print(`${share}: more may wait than the ${MOST_ENTRIES} shown; name a PATH to see those in it`);
  for (const { share, conflicts: all } of queues) {
    for (const { path, copy, what } of all)
      cli.print(
        `conflict in ${share}: ${path} (${what})${copy === path ? '' : `, the other version: ${copy}`}`,
      );
  }
}

function summaryOf({ share, dirty_files, dirty_bytes, oldest_dirty_at, paused_until }: QueueBody): string {
  const paused = paused_until === null ? '' : `; paused until ${paused_until}`;
  if (dirty_files === null) return `${share}: not looked at yet${paused}`;
  if (dirty_files === 0) return `${share}: everything is on the remote${paused}`;
  const oldest = oldest_dirty_at === null ? '' : `, the oldest since ${oldest_dirty_at}`;
  const size = dirty_bytes === null ? '' : `, ${formatBytes(dirty_bytes)}`;
  return `${share}: ${dirty_files} changes wait${size}${oldest}${paused}`;
}

export const commands: readonly CliCommand[] = [
  {
    name: 'queue',
    usage: QUEUE_USAGE,
    summary:
      'Show what was written here and is not on the remote yet, and why; send, discard one file, pause, go on.',
    run: queue,
  },
  {
    name: 'conflicts',
    usage: CONFLICTS_USAGE,
    summary: 'Show files that others changed as well, and choose which version stays.',
    run: conflicts,
  },
  {
    name: 'verify',
    usage: VERIFY_USAGE,
    summary: 'Hold files that were brought up and still lie here against what the remote has now.',
    run: verify,
  },
];
