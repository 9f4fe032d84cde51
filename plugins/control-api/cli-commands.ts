/** `mountkeeper reconnect` and `mountkeeper bwlimit`. */
import { rateBytes } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import { sendCommand } from './api-client.ts';
import { showBandwidth } from './cli-bandwidth.ts';
import type { CommandResult } from './api-client.ts';

function report(cli: CliContext, result: CommandResult): number {
  if (cli.json) cli.print(JSON.stringify(result));
  else if (result.ok) cli.print(result.message);
  else cli.printError(result.message);
  return result.ok ? 0 : 1;
}

function usage(cli: CliContext, text: string): number {
  cli.printError(`usage: mountkeeper ${text}`);
  return 64;
}

async function reconnect(cli: CliContext): Promise<number> {
  const [share, ...more] = cli.args;
  if (share === undefined || more.length > 0) return usage(cli, 'reconnect SHARE');
  return report(cli, await sendCommand(cli, `/api/reconnect/${encodeURIComponent(share)}`));
}

async function bwlimit(cli: CliContext): Promise<number> {
  const [up, down, ...more] = cli.args;
  if (up === undefined) return showBandwidth(cli);
  if (down === undefined || more.length > 0) return usage(cli, 'bwlimit [UP DOWN], such as: bwlimit 5M 0');
  try {
    rateBytes(up);
    rateBytes(down);
  } catch (error) {
    cli.printError((error as Error).message);
    return 64;
  }
  return report(cli, await sendCommand(cli, '/api/bwlimit', { up, down }));
}

export const reconnectCommand: CliCommand = {
  name: 'reconnect',
  usage: 'SHARE',
  summary: 'Unmount a share and probe it again.',
  run: reconnect,
};

export const bwlimitCommand: CliCommand = {
  name: 'bwlimit',
  usage: '[UP DOWN]',
  summary:
    'Limit the bandwidth of all shares together; "0" is unlimited. Without rates: show what holds now.',
  run: bwlimit,
};
