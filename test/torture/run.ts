/**
 * `npm run torture`: all of it, with the long form of the tests in test/e2e that have one (`// @long`).
 * `npm run torture -- --people`: the files whose names begin with the word, such as `people-matrix`.
 * `npm run torture -- --minutes 10 --seed 7`: a run by a seed (`campaign.ts`).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { testFiles } from '../runner/test-files.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { campaign } from './campaign.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));

async function main(words: readonly string[]): Promise<number> {
  if (words.some((word) => /^--(minutes|seed|rounds)\b/.test(word))) return campaign(words);
  const own = (await readdir(FOLDER))
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => FOLDER + name);
  const withLongForm = (await testFiles()).filter(({ isLong }) => isLong).map(({ built }) => built);
  const files = new Map([...own, ...withLongForm].map((path) => [basename(path), path]));
  const names = [...files.keys()].sort();
  const begun = words.map((word) => word.replace(/^--/, ''));
  const unknown = begun.find((word) => !names.some((name) => name.startsWith(word)));
  if (unknown !== undefined) {
    console.error(`no file begins with '${unknown}'; there are: ${names.join(' ')}`);
    return 64;
  }
  const meant = [...files].filter(
    ([name]) => begun.length === 0 || begun.some((word) => name.startsWith(word)),
  );
  const child = spawn(process.execPath, ['--test', ...meant.map(([, path]) => path)], {
    stdio: 'inherit',
    env: { ...process.env, MOUNTKEEPER_TEST_LONG: '1', MOUNTKEEPER_RCLONE: currentRclone() },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}

process.exitCode = await main(process.argv.slice(2));
