/** What the process of a stranger's plugin takes while it idles, beside a Node.js with an interval alone. */
import { spawn } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { packageDir } from '../../core/plugins/discovery/stage.ts';
import { collectLog } from '../support/platform/collected-log.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { sleep, until } from '../support/platform/wait.ts';
import { runnersOf } from '../support/plugins/strangers.ts';
import { supervisorOf } from '../support/plugins/supervised-runner.ts';
import { times } from './figures.ts';
import type { Figure } from './figures.ts';

const AT_REST_MS = 5_000;
const PLUGIN = `import { definePlugin } from 'mountkeeper';
export default definePlugin({ name: 'idle', version: '1.0.0', apiVersion: 1, description: 'Idle.',
  register(ctx) {
    let cycles = 0;
    ctx.tap('afterCycle', () => { cycles += 1; });
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

async function ofRunner(scratch: Scratch): Promise<Memory> {
  const [stateDir, copies] = [scratch.path('state'), scratch.path('state', 'plugins')];
  const folder = `${copies}/idle@000000000000`;
  for (const one of [folder, `${copies}/node_modules`, `${stateDir}/store`])
    await mkdir(one, { recursive: true });
  await symlink(packageDir, `${copies}/node_modules/mountkeeper`);
  await writeFile(`${folder}/package.json`, '{ "type": "module" }');
  await writeFile(`${folder}/index.js`, PLUGIN);
  const { log } = collectLog();
  const supervisor = supervisorOf(
    { log },
    { permissions: ['read-status'], folder, name: 'idle', entry: `${folder}/index.js`, stateDir, packageDir },
  );
  await supervisor.start();
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
