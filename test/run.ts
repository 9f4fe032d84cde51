/**
 * `npm test`: all unit tests in one process and each end-to-end file in its own, some at a time, under one test runner whose
 * closing lines are the last ones. A file that fails runs once more, alone (test/tries.ts). Afterwards nothing of ours may run, be
 * mounted or lie about: else the run fails.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { run } from 'node:test';
import { spec, tap } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { currentRclone } from './support/rclones.ts';
import { sweep } from './support/scratch.ts';
import { fileToRun, inTwoTries } from './tries.ts';
import type { Outcome } from './tries.ts';
import { Turns } from './turns.ts';

const BUILT = fileURLToPath(new URL('.', import.meta.url));
const PROJECT = fileURLToPath(new URL('../../', import.meta.url));
const FILE_TIMEOUT_MS = 8 * 60_000;
/** Files wait more than they compute: three keep two cores busy, not crowded. */
const LOAD_LIMIT = 3;
/** They wait for a NAS that is away, most of their time. */
const QUIET = ['outage', 'offline', 'cut-off', 'mount-outage', 'auto-nas-watch', 'auto-webhooks', 'offline-listings'];
/** Two daemons at once, or limits of time that leave less room for others. */
const LOUD = ['kill-rclone', 'warmup-faults'];
/** Processes: some wait for their turn. */
const AT_ONCE = 5;
/**
 * Those that measure outages and kills come first, beside each other, since they wait so much; then the longest first, so that no
 * long one is left running beside nothing.
 */
const FIRST = [
  'outage', 'kill-rclone', 'offline', 'cut-off', 'mount-outage', 'auto-nas-watch', 'auto-webhooks', 'offline-listings',
  'unit', 'warmup-faults', 'cross-files', 'smbtorture', 'stop', 'cross-kill', 'cross-reload', 'export-webdav', 'plugin-swaps', 'command-line', 'documents',
];
/** Their limits of time are what a user would feel; what another test does to the machine is not part of that. They come last. */
const ALONE = ['kill-daemon', 'hang', 'start', 'cross-hang', 'cross-outage'];

function loadOf(name: string): number {
  if (ALONE.includes(name)) return LOAD_LIMIT;
  if (LOUD.includes(name)) return 1.5;
  return QUIET.includes(name) ? 0.5 : 1;
}

/** In the order in which they begin. */
async function testFiles(): Promise<string[]> {
  const built = (await readdir(join(BUILT, 'e2e'))).filter((name) => name.endsWith('.test.js')).map((name) => name.replace('.test.js', ''));
  const names = ['unit', ...built.filter((name) => existsSync(join(PROJECT, 'test/e2e', `${name}.test.ts`)))];
  const rest = names.filter((name) => !FIRST.includes(name) && !ALONE.includes(name)).sort();
  const inOrder = [...FIRST, ...rest, ...ALONE].filter((name) => names.includes(name));
  return inOrder.map((name) => join(BUILT, name === 'unit' ? 'unit.js' : `e2e/${name}.test.js`));
}

interface Runner {
  /** With the given files, some at a time. */
  readonly run: (files: readonly string[], concurrency: number) => Promise<Outcome>;
  readonly close: () => Promise<void>;
}

async function runner(root: string): Promise<Runner> {
  const turns = await Turns.open(join(root, 'turns.sock'), { limit: LOAD_LIMIT, load: loadOf });
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => ending.abort());
  // Every scratch folder of this run lies in one folder, which must be empty again at the end.
  Object.assign(process.env, { TMPDIR: root, MOUNTKEEPER_TEST_TURNS: join(root, 'turns.sock'), NODE_OPTIONS: `--import=${join(BUILT, 'support/turn.js')}` });
  process.chdir(PROJECT);
  return {
    close: () => turns.close(),
    async run(files, concurrency) {
      const failed = new Set<string>();
      const events = run({ files: [...files], concurrency, timeout: FILE_TIMEOUT_MS, signal: ending.signal });
      events.on('test:fail', ({ todo, skip, file }) => {
        if (todo === undefined && skip === undefined) failed.add(fileToRun(file, files));
      });
      const report = process.stdout.isTTY ? events.compose(new spec()) : events.compose(tap);
      report.pipe(process.stdout, { end: false });
      await finished(report);
      return { failed: [...failed], isCutShort: ending.signal.aborted };
    },
  };
}

/** True when all passed. */
async function runFiles(files: readonly string[], root: string): Promise<boolean> {
  const { run: runThem, close } = await runner(root);
  try {
    return await inTwoTries({ first: () => runThem(files, AT_ONCE), alone: (again) => runThem(again, 1), say: (line) => console.log(line) });
  } finally {
    await close();
  }
}

async function main(): Promise<number> {
  const only = process.argv.slice(2);
  const files = (await testFiles()).filter((file) => only.length === 0 || only.some((part) => file.includes(part)));
  const root = await realpath(await mkdtemp(join(tmpdir(), 'mountkeeper-test-')));
  process.env['MOUNTKEEPER_RCLONE'] = currentRclone();
  const isGood = await runFiles(files, root);
  const left = [...(await readdir(root)).map((name) => `folder ${join(root, name)}`), ...(await sweep(root))];
  if (left.length === 0) return isGood ? 0 : 1;
  console.error(`the tests left behind (cleared now):\n${left.map((one) => `  ${one}`).join('\n')}`);
  return 1;
}

process.exitCode = await main();
