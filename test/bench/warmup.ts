/**
 * A warmup over 30 ms round trip beside `rclone copy` and `find -exec cat` of the same files, with a user who
 * reads meanwhile.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { Daemon } from '../support/daemon/daemon.ts';
import { NAS_PASSWORD, NAS_USER, Nas } from '../support/nas/nas.ts';
import { freePort } from '../support/platform/free-port.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { sleep, until } from '../support/platform/wait.ts';
import { median, ms, times } from './figures.ts';
import type { Figure } from './figures.ts';

const ONE_WAY_MS = 15;
const SMALL = 2_000;
const SMALL_BYTES = 50 * 1024;
const LARGE = 10;
const LARGE_BYTES = 50 * 2 ** 20;
const FOLDERS = 20;
/** `cat` reads this part of the files only, since one after another they take minutes. */
const CAT_PART = 10;
const WINDOW_BYTES = 8 * 2 ** 20;

/** A line with a delay: what is on its way does not hold up what follows, as in a real one. */
function delayed(from: Socket, to: Socket): void {
  let onTheWay = 0;
  const after = (fn: () => void): void => void setTimeout(fn, ONE_WAY_MS);
  from.on('data', (piece: Buffer) => {
    onTheWay += piece.length;
    if (onTheWay > WINDOW_BYTES) from.pause();
    after(() => {
      onTheWay -= piece.length;
      if (onTheWay < WINDOW_BYTES / 2) from.resume();
      if (!to.destroyed) to.write(piece);
    });
  });
  from.on('error', () => to.destroy());
  from.on('close', () => after(() => to.destroy()));
}

async function farAway(scratch: Scratch, targetPort: number): Promise<number> {
  const port = await freePort();
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = createConnection({ port: targetPort, host: '127.0.0.1', noDelay: true });
    for (const socket of [near, far]) sockets.add(socket);
    near.setNoDelay(true);
    delayed(near, far);
    delayed(far, near);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  scratch.defer(() => {
    server.close();
    sockets.forEach((socket) => socket.destroy());
  });
  return port;
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

async function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): Promise<string> {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { PATH: process.env['PATH'], LC_ALL: 'C', ...env },
  });
  let text = '';
  child.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`${command} ended with ${code}`);
  return text;
}

interface TaskJson {
  readonly state: string;
  readonly active: boolean;
  readonly cached: number;
  readonly skipped: number;
  readonly total_files: number;
}

/** Ours: a first run with status polls, a second run, a run beside a user. */
class Bench {
  readonly daemon: Daemon;

  constructor(daemon: Daemon) {
    this.daemon = daemon;
  }

  async warm(path: string): Promise<TaskJson> {
    await this.daemon.request('POST', '/api/warmup/far', { path });
    return until(
      `the warmup of ${path} is through`,
      async () => {
        const task = await this.task(path);
        return task.active ? undefined : task;
      },
      { timeoutMs: 300_000, everyMs: 20 },
    );
  }

  async task(path: string): Promise<TaskJson> {
    const { body } = await this.daemon.get<{ tasks: (TaskJson & { path: string })[] }>('/api/warmup/far');
    return body.tasks.find((task) => task.path === path) as TaskJson;
  }

  user(path: string): Promise<number> {
    return seconds(() => run('cat', [`${this.daemon.mountPoint('far')}/${path}`]));
  }

  /** Latencies of `/api/status` while the work goes on. */
  async statusDuring(work: Promise<unknown>): Promise<number> {
    const spans: number[] = [];
    let isDone = false;
    void work
      .catch(() => undefined)
      .then(() => {
        isDone = true;
      });
    while (!isDone) {
      spans.push(1000 * (await seconds(() => this.daemon.get('/api/status'))));
      await sleep(20);
    }
    return spans.sort((a, b) => a - b)[Math.floor(spans.length * 0.99)] ?? Number.NaN;
  }
}

function filesOf(root: string): Record<string, number> {
  const small = Array.from(
    { length: SMALL },
    (_, index) => [`${root}/${index % FOLDERS}/${index}.bin`, SMALL_BYTES] as const,
  );
  const large = Array.from(
    { length: LARGE },
    (_, index) => [`${root}/large/${index}.bin`, LARGE_BYTES] as const,
  );
  return Object.fromEntries([...small, ...large]);
}

async function copySeconds(scratch: Scratch, rclone: string, port: number): Promise<number> {
  const pass = (await run(rclone, ['obscure', '-'], {}, NAS_PASSWORD)).trim();
  const env = {
    HOME: scratch.path('copy-home'),
    RCLONE_CONFIG: scratch.path('copy-none'),
    RCLONE_CONFIG_NAS_TYPE: 'sftp',
    RCLONE_CONFIG_NAS_HOST: '127.0.0.1',
    RCLONE_CONFIG_NAS_PORT: String(port),
    RCLONE_CONFIG_NAS_USER: NAS_USER,
    RCLONE_CONFIG_NAS_PASS: pass,
  };
  return seconds(() => run(rclone, ['copy', 'nas:all', scratch.path('copied')], env));
}

/** Of a part of the files that nothing has read before, scaled to all of them. */
async function catSeconds(daemon: Daemon): Promise<number> {
  return (
    CAT_PART *
    (await seconds(() =>
      run('find', [`${daemon.mountPoint('far')}/part`, '-type', 'f', '-exec', 'cat', '{}', ';']),
    ))
  );
}

function partFiles(): Record<string, number> {
  const all = Object.entries(filesOf('part'));
  return Object.fromEntries([
    ...all.slice(0, SMALL / CAT_PART),
    ...all.slice(SMALL, SMALL + LARGE / CAT_PART),
  ]);
}

async function beside(bench: Bench): Promise<{ idle: number; shared: number }> {
  const [idle, shared] = [[] as number[], [] as number[]];
  for (const round of [0, 1, 2]) {
    idle.push(await bench.user(`user/idle-${round}.bin`));
    await bench.daemon.request('POST', '/api/warmup/far', { path: `beside-${round}` });
    await until('it is caching', async () => (await bench.task(`beside-${round}`)).state === 'caching', {
      timeoutMs: 60_000,
    });
    await sleep(500);
    shared.push(await bench.user(`user/shared-${round}.bin`));
    await bench.daemon.request('POST', '/api/warmup/far/cancel');
    await sleep(3_000);
  }
  return { idle: median(idle), shared: median(shared) };
}

function besideFiles(): Record<string, number> {
  const users = [0, 1, 2].flatMap(
    (round) =>
      [
        [`user/idle-${round}.bin`, LARGE_BYTES],
        [`user/shared-${round}.bin`, LARGE_BYTES],
      ] as const,
  );
  const warmed = [0, 1, 2].flatMap((round) =>
    Array.from(
      { length: 240 },
      (_, index) =>
        [
          `beside-${round}/${index % 10 === 0 ? 'large' : 'small'}-${index}.bin`,
          index % 10 === 0 ? 8 * 2 ** 20 : SMALL_BYTES,
        ] as const,
    ),
  );
  return Object.fromEntries([...users, ...warmed]);
}

export async function warmupFigures(scratch: Scratch): Promise<Figure[]> {
  const rclone = currentRclone();
  const nas = await Nas.create(scratch, {
    name: 'warm-nas',
    files: { ...filesOf('all'), ...partFiles(), ...besideFiles() },
  });
  const port = await farAway(scratch, nas.port);
  const daemon = await Daemon.create(scratch, {
    name: 'warm',
    rclone,
    connections: [nas.connection('nas', port)],
    shares: [{ name: 'far', connection: 'nas' }],
  });
  await daemon.start();
  await daemon.healthy();
  const bench = new Bench(daemon);
  const copied = await copySeconds(scratch, rclone, port);
  let slowest = Number.NaN;
  let task: TaskJson | undefined;
  const warmed = await seconds(async () => {
    const warming = bench.warm('all');
    slowest = await bench.statusDuring(warming);
    task = await warming;
  });
  const again = await seconds(() => bench.warm('all'));
  const skipped = (await bench.task('all')).skipped;
  const cat = await catSeconds(daemon);
  const user = await beside(bench);
  await daemon.stop();
  const what = `${SMALL} files of 50 KiB and ${LARGE} of 50 MiB, 30 ms away`;
  const amount = (span: number): string =>
    `${span.toFixed(1)} s (${((SMALL * SMALL_BYTES + LARGE * LARGE_BYTES) / 2 ** 20 / span).toFixed(1)} MiB/s)`;
  if (task?.cached !== SMALL + LARGE || skipped !== SMALL + LARGE)
    throw new Error(`not all was cached (${task?.cached}) or skipped (${skipped})`);
  return [
    {
      what: `warmup of ${what}`,
      ours: amount(warmed),
      beside: `${amount(copied)} (rclone copy)`,
      ratio: times(copied / warmed),
      aim: '≥ 0.9×',
      note:
        'Until the rule is complete, that is, until every file is seen whole in the cache on ' +
        'the disk. `rclone copy` is the same binary with its defaults (4 transfers), ' +
        'writing to the same disk.',
    },
    {
      what: 'the same, beside find -exec cat',
      ours: amount(warmed),
      beside: `${amount(cat)} (find -exec cat through the mount)`,
      ratio: times(cat / warmed),
      aim: '≥ 5×',
      note: `One file after another. Measured with one file in ${CAT_PART} of each kind, and multiplied.`,
    },
    {
      what: 'warmup when all is cached',
      ours: `${again.toFixed(2)} s`,
      beside: '–',
      ratio: '–',
      aim: '< 2 s',
      note:
        `${skipped} files, skipped by what the cache on the disk says. ` +
        `Includes the start of the helper process and the listing of ${FOLDERS + 2} folders.`,
    },
    {
      what: '/api/status while it runs, p99',
      ours: ms(slowest),
      beside: '–',
      ratio: '–',
      aim: '< 50 ms',
      note: 'One request after another, 20 ms apart, during the first run; client, NAS and relay share the two cores.',
    },
    {
      what: 'a user reads 50 MiB beside a warmup',
      ours: `${user.shared.toFixed(2)} s`,
      beside: `${user.idle.toFixed(2)} s (nothing else going on)`,
      ratio: times(user.idle / user.shared),
      aim: '≥ 0.5×',
      note:
        'An uncached file, read through the same mount in the middle of a warmup of files of ' +
        '50 KiB and 8 MiB. Medians of three.',
    },
  ];
}
