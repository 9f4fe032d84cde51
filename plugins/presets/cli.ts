/** `mountkeeper preset NAME`. */
import type { CliCommand, CliContext } from 'mountkeeper';
import { readFragment } from './fragment.ts';
import { PROFILES } from './profiles.ts';

const USAGE = Object.keys(PROFILES).join('|');

async function run(cli: CliContext): Promise<number> {
  const [name, ...more] = cli.args;
  if (name === undefined || more.length > 0) {
    cli.printError(`usage: mountkeeper preset ${USAGE}`);
    return 64;
  }
  const { status, body } = await cli.request('POST', `/api/preset/${encodeURIComponent(name)}`);
  if (status === 400) {
    cli.printError(body);
    return 64;
  }
  const { ok, text } = readFragment(body);
  if (cli.json) cli.print(JSON.stringify({ ok, message: text }));
  else if (ok) cli.print(`Preset ${name} is applied; the configuration is being reloaded.`);
  else cli.printError(text);
  return ok ? 0 : 1;
}

export const presetCommand: CliCommand = {
  name: 'preset',
  usage: USAGE,
  summary: 'Set the mount parameters to suit photographs, video or office work.',
  run,
};
