/**
 * `npm run torture`: all of it. `npm run torture -- --people`: the files whose names begin with the word, such as
 * `people-matrix`. `npm run torture -- --minutes 10 --seed 7`: a run by a seed (`campaign.ts`).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { campaign } from './campaign.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));

async function main(words: readonly string[]): Promise<number> {
  if (words.some((word) => /^--(minutes|seed|rounds)\b/.test(word))) return campaign(words);
  const files = (await readdir(FOLDER)).filter((name) => name.endsWith('.test.js')).sort();
  const begun = words.map((word) => word.replace(/^--/, ''));
  const unknown = begun.find((word) => !files.some((name) => name.startsWith(word)));
  if (unknown !== undefined) {
    console.error(`no file of ${FOLDER} begins with '${unknown}'; there are: ${files.join(' ')}`);
    return 64;
  }
  const meant = files.filter((name) => begun.length === 0 || begun.some((word) => name.startsWith(word)));
  const child = spawn(process.execPath, ['--test', ...meant.map((name) => FOLDER + name)], {
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}

process.exitCode = await main(process.argv.slice(2));
