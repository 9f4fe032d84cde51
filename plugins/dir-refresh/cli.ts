/** `mountkeeper refresh SHARE [PATH]`. */
import type { CliCommand, CliContext } from 'mountkeeper';
import type { RefreshAnswer } from './routes.ts';

async function run(cli: CliContext): Promise<number> {
  const [share, path, ...more] = cli.args;
  if (share === undefined || more.length > 0) {
    cli.printError('usage: mountkeeper refresh SHARE [PATH]');
    return 64;
  }
  const { body } = await cli.request('POST', `/api/refresh/${encodeURIComponent(share)}`, {
    path: path ?? '',
  });
  const answer = JSON.parse(body) as Partial<RefreshAnswer>;
  const message = answer.message ?? 'the answer of the daemon cannot be understood';
  if (cli.json) cli.print(body);
  else if (answer.ok === true) cli.print(message);
  else
    cli.printError(
      [message, ...(answer.failed ?? []).map((one) => `  ${one.path || '/'}: ${one.reason}`)].join('\n'),
    );
  return answer.ok === true ? 0 : 1;
}

export const refreshCommand: CliCommand = {
  name: 'refresh',
  usage: 'SHARE [PATH]',
  summary: 'Refresh the folder listings of a share, or of one folder in it, from the remote.',
  run,
};
