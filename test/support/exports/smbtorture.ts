/**
 * Samba's own test programme, and the same smbd a second time: over a folder of the local disk, to compare
 * with.
 */
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Daemon } from '../daemon/daemon.ts';
import { freePort } from '../platform/free-port.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';
import { smb } from './client-programs.ts';

export interface TortureTarget {
  readonly share: string;
  readonly port: number;
  readonly user: string;
}

/** How each test ended, by its full name. */
export type Verdicts = ReadonlyMap<string, 'success' | 'failure' | 'error' | 'skip'>;

const WRAPPER = /NSS_WRAPPER|LD_PRELOAD/;

/**
 * Runs tests and whole suites to their end, or to the deadline: some of this version never end though all
 * their tests have.
 */
export async function torture(
  tests: readonly string[],
  target: TortureTarget,
  timeoutMs: number,
): Promise<Verdicts> {
  const args = [
    `//127.0.0.1/${target.share}`,
    '-p',
    String(target.port),
    '-U',
    target.user,
    '--format=subunit',
    '--fullname',
    ...tests,
  ];
  // It makes a folder where it stands, and leaves it there when the deadline ends it.
  const cwd = await mkdtemp(join(tmpdir(), 'mountkeeper-torture-'));
  const child = spawn('timeout', ['-s', 'KILL', String(timeoutMs / 1_000), 'smbtorture', ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', HOME: '/nonexistent' },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => (output += piece.toString()));
  await new Promise((resolve) => child.once('close', resolve));
  await rm(cwd, { recursive: true, force: true });
  const verdicts = new Map<string, 'success' | 'failure' | 'error' | 'skip'>();
  for (const [, verdict, name] of output.matchAll(/^(success|failure|error|skip): (\S+)/gm))
    verdicts.set(name as string, verdict as 'success');
  return verdicts;
}

/** The daemon's smbd once more, with every setting but places and port the same. */
export async function startPlainSmbd(
  daemon: Daemon,
  share: string,
  { scratch, user }: { readonly scratch: Scratch; readonly user: string },
): Promise<TortureTarget> {
  const room = scratch.path('plain');
  const folder = scratch.path('plain-files');
  await mkdir(folder, { recursive: true });
  await cp(`${daemon.stateDir}/smb`, room, {
    recursive: true,
    filter: (source) => !/\/(?:pid|ncalrpc|winbindd|log|lock)\/./.test(source),
  });
  const port = await freePort();
  const conf = join(room, 'smb.conf');
  const text = await readFile(conf, 'utf8');
  await writeFile(
    conf,
    text
      .replaceAll(`${daemon.stateDir}/smb`, room)
      .replace(`path = ${daemon.mountPoint(share)}`, `path = ${folder}`)
      .replace(/smb ports = \d+/, `smb ports = ${port}`),
  );
  const pid = Number((await readFile(`${daemon.stateDir}/smb/pid/smbd.pid`, 'utf8')).trim());
  const environment = (await readFile(`/proc/${pid}/environ`, 'utf8'))
    .split('\0')
    .filter((pair) => WRAPPER.test(pair))
    .map((pair) => pair.replaceAll(`${daemon.stateDir}/smb`, room));
  const child = spawn(
    'env',
    [...environment, 'smbd', '--foreground', '--no-process-group', `--configfile=${conf}`],
    { stdio: 'ignore', detached: true },
  );
  scratch.defer(() => void (child.pid !== undefined && process.kill(-child.pid, 'SIGKILL')));
  await until('the second smbd serves', async () => (await smb(share, 'ls', { port, user })).code === 0, {
    timeoutMs: 30_000,
  });
  return { share, port, user };
}
