/**
 * `npm run torture -- --minutes 10 --seed 7`: writers over SMB, NFS, WebDAV and on the machine itself, with faults,
 * held against a model. What goes wrong is tried again with fewer rounds.
 */
import { parseArgs } from 'node:util';
import { runCampaign } from '../support/torture/campaign.ts';
import type { Choice } from '../support/torture/campaign.ts';
import { shrunk } from '../support/torture/shrink.ts';

const KINDS = ['sftp', 'webdav', 'smb', 's3'] as const;
const TRIES = 12;
const USAGE =
  'usage: npm run torture -- --minutes N [--seed S] [--nas sftp|webdav|smb|s3] ' +
  '[--rounds 3,4,7] [--quiet]';

/** Resolves with the exit code: 0 when nothing was wrong, 1 when something was, 64 for wrong words. */
export async function campaign(words: readonly string[]): Promise<number> {
  const choice = choiceOf(words);
  if (choice === undefined) {
    console.error(USAGE);
    return 64;
  }
  console.log(`seed ${choice.seed}, a NAS over ${choice.nas}`);
  const { wrong, rounds, counts } = await runCampaign(choice);
  const figures = Object.entries(counts).map(([what, count]) => `${what} ${count}`);
  console.log(`${rounds.length} rounds: ${figures.join(', ')}`);
  if (wrong.length === 0) {
    console.log('nothing was wrong');
    return 0;
  }
  console.log(`WRONG:\n${wrong.join('\n')}`);
  const fewer = await shrunk(
    rounds,
    async (some) => {
      console.log(`tried again with rounds ${some.join(',')}`);
      return (await runCampaign({ ...choice, rounds: some, say: () => undefined })).wrong.length > 0;
    },
    TRIES,
  );
  console.log(`to have it again: --seed ${choice.seed} --nas ${choice.nas} --rounds ${fewer.join(',')}`);
  return 1;
}

function choiceOf(words: readonly string[]): Choice | undefined {
  try {
    const { values } = parseArgs({
      args: [...words],
      options: {
        minutes: { type: 'string', default: '5' },
        seed: { type: 'string', default: '1' },
        nas: { type: 'string', default: 'sftp' },
        rounds: { type: 'string' },
        quiet: { type: 'boolean', default: false },
      },
    });
    const nas = KINDS.find((kind) => kind === values.nas);
    const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
    if (nas === undefined || !(minutes > 0) || !Number.isInteger(seed)) return undefined;
    return {
      seed,
      nas,
      rounds: values.rounds === undefined ? { minutes } : values.rounds.split(',').map(Number),
      say: values.quiet ? () => undefined : (line) => console.log(line),
    };
  } catch {
    return undefined;
  }
}
