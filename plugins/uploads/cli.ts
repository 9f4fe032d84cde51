/** `mountkeeper queue [SHARE]`. */
import { formatBytes } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import type { QueueBody } from './routes.ts';

async function run(cli: CliContext): Promise<number> {
  const [share, ...more] = cli.args;
  if (more.length > 0) {
    cli.printError('usage: mountkeeper queue [SHARE]');
    return 64;
  }
  const { status, body } = await cli.request('GET', share === undefined ? '/api/queue' : `/api/queue/${encodeURIComponent(share)}`);
  if (status !== 200) {
    cli.printError(share === undefined ? 'the daemon gave no answer that makes sense' : `no share '${share}' is mounted with a write layer`);
    return 1;
  }
  const answer = JSON.parse(body) as QueueBody | { readonly shares: readonly QueueBody[] };
  if (cli.json) cli.print(body);
  else show('shares' in answer ? answer.shares : [answer], cli);
  return 0;
}

function show(queues: readonly QueueBody[], cli: CliContext): void {
  const rows = queues.flatMap(({ share, entries }) => entries.map(({ path, action, state, bytes, tries, reason }) =>
    [share, action, state, action === 'upload' ? formatBytes(bytes) : '', String(tries), path, reason]));
  if (rows.length === 0) cli.print('Everything is on the remote.');
  else cli.table([['share', 'action', 'state', 'size', 'tries', 'path', 'reason'], ...rows]);
  for (const { share, conflicts } of queues) {
    for (const { path, copy, what } of conflicts) cli.print(`conflict in ${share}: ${path} (${what})${copy === path ? '' : `, the other version: ${copy}`}`);
  }
}

export const queueCommand: CliCommand = { name: 'queue', usage: '[SHARE]', summary: 'Show what was written here and is not on the remote yet, and why.', run };
