/**
 * The demo's own folder and children, and the end of them: the daemon first (it drains), then the NAS, then
 * whatever is still mounted or running in the folder, found by the folder's unique path, then the folder.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Only root may mount what users write to. */
export const MAY_WRITE = process.getuid?.() === 0;

export class DemoRoom {
  readonly folder: string;
  readonly #children: { readonly child: ChildProcess; readonly graceMs: number }[] = [];
  #closing: Promise<void> | undefined;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async open(): Promise<DemoRoom> {
    return new DemoRoom(await realpath(await mkdtemp(join(tmpdir(), 'mk-demo-'))));
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  /**
   * Starts a child in a session of its own, so that Ctrl-C reaches the demo alone and children end in order.
   */
  start(
    command: string,
    args: readonly string[],
    options: SpawnOptions & { readonly graceMs: number },
  ): ChildProcess {
    const child = spawn(command, args, { ...options, detached: true });
    child.on('error', () => undefined);
    this.#children.push({ child, graceMs: options.graceMs });
    return child;
  }

  /** Ends everything, last started first; may be called more than once. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const { child, graceMs } of this.#children.reverse()) await endChild(child, graceMs);
    for (let round = 0; round < 50; round += 1) {
      const [pids, mounts] = [await processesNaming(this.folder), await mountsBelow(this.folder)];
      if (pids.length === 0 && mounts.length === 0) break;
      for (const pid of pids) endProcess(pid);
      for (const mount of mounts) await detach(mount);
      await sleep(100);
    }
    if ((await mountsBelow(this.folder)).length > 0)
      throw new Error(`something is still mounted below ${this.folder}; it is left as it is`);
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function endChild(child: ChildProcess, graceMs: number): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = new AbortController();
  await Promise.race([ended, sleep(graceMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
  child.kill('SIGKILL');
  await ended;
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

async function processesNaming(folder: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const named = await Promise.all(
    pids.map(async (pid) =>
      (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes(folder),
    ),
  );
  return pids.filter((_, index) => named[index]).map(Number);
}

async function mountsBelow(folder: string): Promise<string[]> {
  const points = (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  return points
    .map((point) =>
      point.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    )
    .filter((point) => point.startsWith(`${folder}/`))
    .reverse();
}

async function detach(mountPoint: string): Promise<void> {
  const [command, ...args] =
    process.getuid?.() === 0 ? ['umount', '-l', mountPoint] : ['fusermount3', '-uz', mountPoint];
  const child = spawn(command ?? 'umount', args, { stdio: 'ignore' });
  child.on('error', () => undefined);
  await once(child, 'close');
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
