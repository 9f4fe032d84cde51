/** `npm run bench`: everything side by side in one run, as a table here and in docs/benchmarks.md. */
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { benchDashboard } from './dashboard.ts';
import type { Figure } from './figures.ts';
import { benchHostile } from './hostile.ts';
import { benchNfs } from './lan-nfs.ts';
import { benchSmb } from './lan-smb.ts';
import { benchWebdav } from './lan-webdav.ts';
import { benchLogs } from './log-polls.ts';
import { benchMetrics } from './metrics-render.ts';
import { benchStart } from './mount-start.ts';
import { benchCycle, benchRunner } from './plugin-runner.ts';
import { benchStatus } from './status-load.ts';
import { benchIdle, benchSwap } from './swap-and-idle.ts';
import { warmupFigures } from './warmup.ts';

const REPORT = fileURLToPath(new URL('../../../docs/benchmarks.md', import.meta.url));
const BENCHES: Readonly<Record<string, (scratch: Scratch) => Promise<Figure[]>>> = {
  start: benchStart,
  status: benchStatus,
  logs: benchLogs,
  metrics: benchMetrics,
  dashboard: benchDashboard,
  swap: benchSwap,
  idle: benchIdle,
  runner: benchRunner,
  hostile: benchHostile,
  cycle: benchCycle,
  smb: benchSmb,
  nfs: benchNfs,
  webdav: benchWebdav,
  warmup: warmupFigures,
};

function machine(): string {
  const rclone =
    /v[\d.]+/.exec(spawnSync(currentRclone(), ['version'], { encoding: 'utf8' }).stdout)?.[0] ?? 'unknown';
  return (
    `${cpus().length} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), ` +
    `${Math.round(totalmem() / 2 ** 30)} GiB of memory, Node.js ${process.version}, ` +
    `rclone ${rclone}, Linux ` +
    `${spawnSync('uname', ['-r'], { encoding: 'utf8' }).stdout.trim()}`
  );
}

function document(figures: readonly Figure[]): string {
  const rows = figures.map(
    (figure) => `| ${[figure.what, figure.ours, figure.beside, figure.ratio, figure.aim].join(' | ')} |`,
  );
  return [
    '# Benchmarks',
    '',
    '`npm run bench` measures Mountkeeper beside what it is to be compared with, ' +
      'in one run on one machine, and writes this page.',
    'Absolute figures belong to the machine; ratios are what to look at. ' +
      'The remote is a NAS on loopback, so network time is nearly nothing.',
    '',
    `Machine: ${machine()}.`,
    '',
    '| what | Mountkeeper | beside it | ratio | aim |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    '## What the figures mean',
    '',
    ...figures.map((figure) => `- **${figure.what}**: ${figure.note}`),
    '',
  ].join('\n');
}

function show(figures: readonly Figure[]): void {
  for (const figure of figures)
    console.log(
      `${figure.what.padEnd(48)} ${figure.ours.padEnd(28)} beside ${figure.beside}\n` +
        `${' '.repeat(49)}ratio ${figure.ratio}, aim ${figure.aim}`,
    );
}

/** In a scratch folder of its own, so that nothing of it disturbs what comes after, also when it failed. */
async function run(bench: (scratch: Scratch) => Promise<Figure[]>): Promise<Figure[]> {
  const scratch = await createScratch('bench');
  try {
    return await bench(scratch);
  } finally {
    await scratch.close();
  }
}

const rclone = currentRclone();
if (rclone !== undefined) process.env['MOUNTKEEPER_RCLONE'] = rclone;
const only = process.argv.slice(2);
const figures: Figure[] = [];
const failures: string[] = [];
for (const [name, bench] of Object.entries(BENCHES)) {
  if (only.length > 0 && !only.includes(name)) continue;
  try {
    const start = performance.now();
    const found = await run(bench);
    show(found);
    console.log(`(${name} took ${Math.round((performance.now() - start) / 1000)} s)`);
    figures.push(...found);
  } catch (error) {
    console.error(`${name} could not be measured:`, error);
    failures.push(name);
  }
}
if (only.length === 0 && failures.length === 0) {
  await writeFile(REPORT, document(figures));
  console.log('\nwritten to docs/benchmarks.md');
}
if (failures.length > 0) {
  console.error(
    `\nnot measured: ${failures.join(', ')}${only.length === 0 ? '; docs/benchmarks.md is left as it was' : ''}`,
  );
  process.exitCode = 1;
}
