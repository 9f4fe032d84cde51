/**
 * `npm test`: all unit tests in one process and each end-to-end file in its own, two at a time, under one test runner whose
 * closing lines are the last ones. Afterwards nothing of ours may run, be mounted or lie about: else the run fails.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { currentRclone } from './support/rclones.ts';
import { sweep } from './support/scratch.ts';

const BUILT = fileURLToPath(new URL('.', import.meta.url));
const PROJECT = fileURLToPath(new URL('../../', import.meta.url));
const FILE_TIMEOUT_MS = 8 * 60_000;
/** Longest first, so that no long one is left running alone at the end. */
const LONG_FIRST = ['kill-rclone', 'cut-off', 'documents', 'kill-daemon', 'plugin-swaps', 'stop', 'hang', 'start'];

async function endToEndFiles(): Promise<string[]> {
  const names = (await readdir(join(BUILT, 'e2e'))).filter((name) => name.endsWith('.test.js'));
  const living = names.filter((name) => existsSync(join(PROJECT, 'test/e2e', name.replace(/\.js$/, '.ts'))));
  const rank = (name: string): number => (LONG_FIRST.indexOf(name.replace('.test.js', '')) + LONG_FIRST.length + 1) % (LONG_FIRST.length + 1);
  return living.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b)).map((name) => join(BUILT, 'e2e', name));
}

async function main(): Promise<number> {
  const only = process.argv.slice(2);
  const files = [join(BUILT, 'unit.js'), ...(await endToEndFiles())].filter((file) => only.length === 0 || only.some((part) => file.includes(part)));
  const root = await realpath(await mkdtemp(join(tmpdir(), 'mountkeeper-test-')));
  const rclone = currentRclone();
  if (rclone === undefined) console.log('# the current rclone was not available here: tests run with the system\'s rclone only');
  const runner = spawn(process.execPath, ['--test', '--test-concurrency=2', `--test-timeout=${FILE_TIMEOUT_MS}`, ...files], {
    stdio: 'inherit',
    cwd: PROJECT,
    // Every scratch folder of this run lies in one folder, which must be empty again at the end.
    env: { ...process.env, TMPDIR: root, ...(rclone === undefined ? {} : { MOUNTKEEPER_RCLONE: rclone }) },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal));
  const [code] = (await once(runner, 'exit')) as [number | null];
  const left = [...(await readdir(root)).map((name) => `folder ${join(root, name)}`), ...(await sweep(root))];
  if (left.length === 0) return code ?? 1;
  console.error(`the tests left behind (cleared now):\n${left.map((one) => `  ${one}`).join('\n')}`);
  return 1;
}

process.exitCode = await main();
