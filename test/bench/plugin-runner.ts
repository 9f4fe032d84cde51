/** What the process of a stranger's plugin takes while it idles, beside a Node.js with an interval alone. */
import { spawn } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { packageDir } from '../../core/plugins/discovery/stage.ts';
import type { Confinement } from '../../core/plugins/runner/process/confinement.ts';
import type { RunnerSupervisor } from '../../core/plugins/runner/process/runner-supervisor.ts';
import { collectLog } from '../support/platform/collected-log.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { sleep, until } from '../support/platform/wait.ts';
import { runnersOf } from '../support/plugins/strangers.ts';
import { supervisorOf } from '../support/plugins/supervised-runner.ts';
import { median, ms, times } from './figures.ts';
import type { Figure } from './figures.ts';

const AT_REST_MS = 5_000;
const PLUGIN = `import { definePlugin } from 'mountkeeper';
export default definePlugin({ name: 'idle', version: '1.0.0', apiVersion: 1, description: 'Idle.',
  register(ctx) {
    let cycles = 0;
    ctx.tap('afterCycle', () => { cycles += 1; });
    ctx.tap('collectNotices', () => []);
    ctx.status('idle', { default: 0, read: () => cycles });
    ctx.every({ name: 'beat', ms: () => 1000, run: async () => ctx.log.debug('beat') });
  } });
`;

interface Memory {
  /** Bytes, with all that it shares. */
  readonly resident: number;
  /** Bytes, with its part of what it shares with other processes of this moment. */
  readonly proportional: number;
}

async function memoryOf(pid: number): Promise<Memory> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1');
  const bytes = (key: string): number =>
    1024 * Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN);
  return { resident: bytes('Rss'), proportional: bytes('Pss') };
}

/** Where the copy of the plugin lies. */
async function laidOut(scratch: Scratch): Promise<Pick<Confinement, 'folder' | 'stateDir'>> {
  const [stateDir, copies] = [scratch.path('state'), scratch.path('state', 'plugins')];
  const folder = `${copies}/idle@000000000000`;
  for (const one of [folder, `${copies}/node_modules`, `${stateDir}/store`])
    await mkdir(one, { recursive: true });
  await symlink(packageDir, `${copies}/node_modules/mountkeeper`);
  await writeFile(`${folder}/package.json`, '{ "type": "module" }');
  await writeFile(`${folder}/index.js`, PLUGIN);
  return { folder, stateDir };
}

async function begun({
  folder,
  stateDir,
}: Pick<Confinement, 'folder' | 'stateDir'>): Promise<RunnerSupervisor> {
  const { log } = collectLog();
  const supervisor = supervisorOf(
    { log },
    { permissions: ['read-status'], folder, name: 'idle', entry: `${folder}/index.js`, stateDir, packageDir },
  );
  await supervisor.start();
  return supervisor;
}

async function ofRunner(scratch: Scratch): Promise<Memory> {
  const supervisor = await begun(await laidOut(scratch));
  const there = async () => {
    const found = await runnersOf(process.pid);
    return found.length > 0 ? found : undefined;
  };
  const [pid = 0] = await until('its process is there', there, { timeoutMs: 20_000 });
  await sleep(AT_REST_MS);
  const found = await memoryOf(pid);
  await supervisor.stop('the figure is there');
  return found;
}

async function ofBareNode(): Promise<Memory> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' });
  await sleep(AT_REST_MS);
  const found = await memoryOf(child.pid ?? 0);
  child.kill();
  return found;
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

export async function benchRunner(scratch: Scratch): Promise<Figure[]> {
  const [ours, bare] = [await ofRunner(scratch), await ofBareNode()];
  return [
    {
      what: "an idle plugin's own process",
      ours: `${megabytes(ours.resident)} resident, ${megabytes(ours.proportional)} its share`,
      beside: `${megabytes(bare.resident)} resident, ${megabytes(bare.proportional)} its share (node with an interval)`,
      ratio: times(ours.resident / bare.resident),
      aim: '< 45 MB',
      note:
        'A plugin with a hook, a status field and an interval, five seconds after its start. Resident counts the ' +
        'pages of Node.js itself in full, though all Node.js processes of the machine have them once; its share ' +
        '(PSS) counts them by the number of those, and is what one more such process costs. ' +
        'A plugin with a configuration has Joi as well, one with a route the web server.',
    },
  ];
}

const PLUGINS = 20;
const CYCLES = 200;
/** How far apart these are here: what runs between is looking after the processes, which is measured by itself. */
const PAUSE_MS = 20;

/** Processor time of this process, which is the daemon's part, in milliseconds. */
function spentMs(from?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1_000;
}

export async function benchCycle(scratch: Scratch): Promise<Figure[]> {
  const place = await laidOut(scratch);
  const all = await Promise.all(Array.from({ length: PLUGINS }, () => begun(place)));
  const taps = [0, 1].flatMap((index) => all.map((one) => () => one.call('tap', index, [])));
  const cycle = (): Promise<unknown> => Promise.all(taps.map((call) => call()));
  for (let index = 0; index < CYCLES; index += 1) await cycle();
  const calls: number[] = [];
  for (let index = 0; index < CYCLES; index += 1) {
    const fromMs = performance.now();
    await taps[0]?.();
    calls.push(performance.now() - fromMs);
  }
  const measured = async (work: () => Promise<unknown>): Promise<number> => {
    const from = process.cpuUsage();
    for (let index = 0; index < CYCLES; index += 1) {
      await work();
      await sleep(PAUSE_MS);
    }
    return spentMs(from) / CYCLES;
  };
  // In turns, since the machine may have other work: the lowest of each is the least disturbed.
  const rounds: (readonly [idle: number, busy: number])[] = [];
  for (let round = 0; round < 3; round += 1)
    rounds.push([await measured(() => Promise.resolve()), await measured(cycle)]);
  await Promise.all(all.map((one) => one.stop('the figure is there')));
  const added = rounds.map(([idle, busy]) => busy - idle);
  return [
    {
      what: `a cycle with ${PLUGINS} plugins in processes of their own`,
      ours: `${ms(Math.min(...added))} CPU in the daemon`,
      beside: `${ms(median(added))} (the median of ${rounds.length} rounds)`,
      ratio: '–',
      aim: '< 2 ms',
      note:
        `Each taps two hooks of the cycle; ${CYCLES} cycles a round, less what ${CYCLES} pauses of the same length ` +
        'take, in turns. What looking after the processes takes goes on in both.',
    },
    {
      what: 'a hook that is carried',
      ours: `${ms(median(calls))}, ${ms(Math.min(...added) / taps.length)} CPU in the daemon`,
      beside: '–',
      ratio: '–',
      aim: '< 1 ms',
      note:
        `Until its answer is there, the median of ${CYCLES} calls; ` +
        `processor time as part of a cycle of ${taps.length} calls.`,
    },
  ];
}
