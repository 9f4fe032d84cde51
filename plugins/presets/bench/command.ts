/** `mountkeeper bench [SHARE]`: measures what a preset depends on; changes nothing. */
import { makeFolder } from 'mountkeeper';
import type { CliCommand, CliContext, Config, ShareSpec } from 'mountkeeper';
import { measureDisk } from './disk.ts';
import { proposal, sentences } from './words.ts';

const WRONG_USAGE = 64;

async function run(cli: CliContext): Promise<number> {
  const [name, ...more] = cli.args;
  if (more.length > 0 || name?.startsWith('-') === true) {
    cli.printError('usage: mountkeeper bench [SHARE]');
    return WRONG_USAGE;
  }
  const config = await cli.config();
  const spec = specOf(config, name);
  const mounter = await cli.offline('mounter');
  if (!mounter.measure) throw new Error('what mounts the shares cannot measure the line');
  cli.progress(`measuring the line to ${spec.share.name} …`);
  const line = await mounter.measure(spec, cli.signal);
  const { dir: cacheDir } = config.cache;
  cli.progress(`measuring the cache disk (${cacheDir}) …`);
  await makeFolder(cacheDir);
  const disk = await measureDisk(cacheDir, cli.clock);
  const measured = { share: spec.share.name, line, cacheDir, disk };
  if (cli.json) {
    const { sizes, ...rest } = line;
    const preset = proposal(line) ?? null;
    cli.print(JSON.stringify({ ...measured, line: { ...rest, files: sizes.length }, preset }));
  } else for (const sentence of sentences(measured)) cli.print(sentence);
  return 0;
}

function specOf({ shares, connections }: Config, name: string | undefined): ShareSpec {
  const share = name === undefined ? shares[0] : shares.find((one) => one.name === name);
  const connection = connections.find((one) => one.name === share?.connection);
  if (share && connection) return { share, connection };
  throw new Error(
    name === undefined
      ? 'there is no share to be measured yet: `mountkeeper init` makes one'
      : `there is no share "${name}"; there are: ${shares.map((one) => one.name).join(', ')}`,
  );
}

export const benchCommand: CliCommand = {
  name: 'bench',
  usage: '[SHARE]',
  summary:
    'Measure the line to the NAS (by reading) and the cache disk, and propose a preset in words; changes nothing.',
  run,
};
