/**
 * What the demo starts and asks: the NAS, the daemon, its API and command line, and file work in child
 * processes.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort, MAY_WRITE } from './room.ts';
import type { DemoRoom } from './room.ts';
import { writeSample } from './sample.ts';
import { planServers, serverSections } from './servers.ts';
import type { DemoServers } from './servers.ts';

const MAIN = fileURLToPath(new URL('../../core/main.js', import.meta.url));
/** Where the set-up puts an rclone when the machine has none that is new enough. */
const FETCHED = fileURLToPath(new URL('../../../.cache/rclone/usr/bin/rclone', import.meta.url));
const USER = 'demo';

export interface DemoNas {
  readonly folder: string;
  readonly port: number;
  readonly password: string;
}

export interface DemoDaemon {
  readonly url: string;
  readonly configFile: string;
  readonly mountRoot: string;
  readonly servers: DemoServers;
}

export interface DemoShare {
  readonly name: string;
  readonly health: string;
  readonly health_message: string | null;
}

/** A plain sentence for the user; shown without a stack. */
export class DemoFault extends Error {}

async function until(what: string, condition: () => Promise<boolean>, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (
    !(await condition().catch((error: unknown) => {
      if (error instanceof DemoFault) throw error;
      return false;
    }))
  ) {
    if (performance.now() > deadline) throw new DemoFault(`${what} took longer than ${timeoutMs / 1000} s`);
    await sleep(50);
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = createConnection({ port, host: '127.0.0.1' });
  try {
    await once(socket, 'connect');
    return true;
  } finally {
    socket.destroy();
  }
}

export async function startNas(room: DemoRoom): Promise<DemoNas> {
  const nas = { folder: room.path('nas'), port: await freePort(), password: randomBytes(12).toString('hex') };
  await writeSample(nas.folder);
  const log = openSync(room.path('nas.log'), 'w');
  const child = room.start(
    process.env['MOUNTKEEPER_RCLONE'] ?? (existsSync(FETCHED) ? FETCHED : 'rclone'),
    ['serve', 'sftp', '--addr', `127.0.0.1:${nas.port}`, '--cache-dir', room.path('nas-cache'), nas.folder],
    {
      graceMs: 1_000,
      stdio: ['ignore', log, log],
      env: { PATH: process.env['PATH'], HOME: room.folder, RCLONE_USER: USER, RCLONE_PASS: nas.password },
    },
  );
  await until(
    'the start of the demo NAS',
    async () => {
      if (child.pid === undefined || child.exitCode !== null)
        throw new DemoFault(
          'the demo NAS (rclone serve) did not start: ' +
            `${(await readFile(room.path('nas.log'), 'utf8')).trim().split('\n').at(-1) ?? ''}`,
        );
      return answers(nas.port);
    },
    15_000,
  );
  return nas;
}

async function writeConfig(room: DemoRoom, nas: DemoNas, port: number): Promise<DemoDaemon> {
  const daemon = {
    url: `http://127.0.0.1:${port}`,
    configFile: room.path('mountkeeper.toml'),
    mountRoot: room.path('mnt'),
    servers: await planServers(),
  };
  const text = `# The demo's configuration. Edit it and save: the running daemon takes the change by itself.
[web]
port = ${port}

[mount]
root = ${JSON.stringify(daemon.mountRoot)}
write_back = "3s"

[cache]
dir = ${JSON.stringify(room.path('cache'))}
min_free_space = "100M"

[supervisor]
state_dir = ${JSON.stringify(room.path('state'))}
stop_timeout = "20s"

[log]
file = ${JSON.stringify(room.path('mountkeeper.log'))}

${serverSections(daemon.servers)}
[[connections]]
name = "demo-nas"
type = "sftp"
options = { host = "127.0.0.1", port = "${nas.port}", user = "${USER}", pass = "${nas.password}" }

[[shares]]
name = "照片 Photos"
connection = "demo-nas"
remote_path = "Photos 照片"
read_only = ${!MAY_WRITE}

[[shares]]
name = "Team Files"
connection = "demo-nas"
remote_path = "Team Files"
read_only = ${!MAY_WRITE}
`;
  await mkdir(daemon.mountRoot, { recursive: true });
  await writeFile(daemon.configFile, text, { mode: 0o600 });
  return daemon;
}

export async function fetchShares(daemon: DemoDaemon): Promise<readonly DemoShare[]> {
  const response = await fetch(`${daemon.url}/api/status`, { signal: AbortSignal.timeout(5_000) });
  return ((await response.json()) as { shares: DemoShare[] }).shares;
}

export async function startDaemon(room: DemoRoom, nas: DemoNas): Promise<DemoDaemon> {
  const daemon = await writeConfig(room, nas, await freePort());
  const output = openSync(room.path('output.log'), 'w');
  const child = room.start(process.execPath, [MAIN, 'run', '--config', daemon.configFile], {
    graceMs: 30_000,
    stdio: ['ignore', output, output],
  });
  await until(
    'mounting the demo shares',
    async () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new DemoFault(
          `the daemon ended: ${(await readFile(room.path('output.log'), 'utf8')).trim().split('\n').at(-1) ?? ''}`,
        );
      const shares = await fetchShares(daemon);
      const failed = shares.find((share) => share.health === 'failed');
      if (failed)
        throw new DemoFault(
          `the share "${failed.name}" could not be mounted: ${failed.health_message ?? 'no reason given'}`,
        );
      return shares.length > 0 && shares.every((share) => share.health === 'healthy');
    },
    30_000,
  );
  return daemon;
}

export async function runCli(daemon: DemoDaemon, ...args: string[]): Promise<string> {
  return runChild(process.execPath, [MAIN, ...args, '--config', daemon.configFile]);
}

const READ =
  'const start = performance.now(); const data = require("fs").readFileSync(process.argv[1]); ' +
  'console.log(JSON.stringify({ bytes: data.length, ms: performance.now() - start }));';

/** Reads a file in a child: nothing in this process may wait for a mount. */
export async function readThroughMount(path: string): Promise<{ bytes: number; ms: number }> {
  return JSON.parse(await runChild(process.execPath, ['-e', READ, path])) as { bytes: number; ms: number };
}

export async function copyIntoMount(from: string, to: string): Promise<void> {
  await runChild('cp', [from, to]);
}

async function runChild(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (piece: Buffer) => (stdout += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => (stderr += piece.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0)
    throw new DemoFault(
      `${[command, ...args].slice(-3).join(' ')} failed: ${(stderr || stdout).trim().split('\n').at(-1) ?? ''}`,
    );
  return stdout;
}

export { MAIN };
