/** `mountkeeper sessions` and `mountkeeper sessions end ID`. */
import { formatBytes } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import type { SessionsAnswer, SessionView } from './routes.ts';

const USAGE = '[end ID]';
const HEADER = ['PROTOCOL', 'USER', 'ADDRESS', 'SHARES', 'SINCE', 'TO CLIENT', 'FROM CLIENT', 'ID'];
/** For what is not known. */
const UNKNOWN = '?';

function row(session: SessionView): readonly string[] {
  const { protocol, user, address, shares, since, id } = session;
  return [
    protocol,
    user ?? '-',
    address,
    shares === null ? UNKNOWN : shares.join(', ') || '-',
    since ?? UNKNOWN,
    ...[session.bytes_to_client, session.bytes_from_client].map((bytes) =>
      bytes === null ? UNKNOWN : formatBytes(bytes),
    ),
    id,
  ];
}

async function show(cli: CliContext): Promise<number> {
  const { status, body } = await cli.request('GET', '/api/sessions');
  if (status !== 200) return refused(cli, body, status);
  if (cli.json) {
    cli.print(body);
    return 0;
  }
  const { sessions, problems } = JSON.parse(body) as SessionsAnswer;
  if (sessions.length > 0) cli.table([HEADER, ...sessions.map(row)]);
  else if (problems.length === 0) cli.print('Nobody is connected.');
  for (const { protocol, message } of problems)
    cli.printError(`who is connected over ${protocol} is not known: ${message}`);
  return problems.length === 0 ? 0 : 1;
}

async function end(cli: CliContext, id: string): Promise<number> {
  const { status, body } = await cli.request('POST', `/api/sessions/${encodeURIComponent(id)}/end`);
  if (status !== 200) return refused(cli, body, status);
  const { ok, message } = JSON.parse(body) as { readonly ok: boolean; readonly message: string };
  if (cli.json) cli.print(body);
  else (ok ? cli.print : cli.printError).call(cli, message);
  return ok ? 0 : 1;
}

function refused(cli: CliContext, body: string, status: number): number {
  cli.printError(messageIn(body) ?? `the daemon answered with status ${status}`);
  return 1;
}

function messageIn(body: string): string | undefined {
  try {
    const { message } = JSON.parse(body) as { readonly message?: unknown };
    return typeof message === 'string' ? message : undefined;
  } catch {
    // Not JSON: only the status code can be shown.
    return undefined;
  }
}

export const sessionsCommand: CliCommand = {
  name: 'sessions',
  usage: USAGE,
  summary: 'Show who is connected over SMB, NFS and WebDAV, or disconnect one of them.',
  async run(cli) {
    const [verb, id, ...more] = cli.args;
    if (verb === undefined) return show(cli);
    if (verb === 'end' && id !== undefined && more.length === 0) return end(cli, id);
    cli.printError(`usage: mountkeeper sessions ${USAGE}`);
    return 64;
  },
};
