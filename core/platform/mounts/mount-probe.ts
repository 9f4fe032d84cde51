/**
 * Checks whether mounts answer, by opening their folder: a call that always reaches the process behind the
 * mount and never the remote (statfs and listings wait for an absent remote). Small shells that live on
 * between calls do it, because starting a process per call costs more than the call.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Clock, Logger } from '../../contract/platform.ts';
import { childEnvironment } from '../processes/environment.ts';
import { lessened } from '../processes/lessened.ts';
import { createSemaphore } from '../semaphore.ts';
import { timeoutError } from '../timeout-error.ts';

export interface MountProbe {
  /**
   * Rejects with a `TimeoutError` when the folder cannot be opened in time, with the reason when it cannot be
   * opened.
   */
  touch(path: string, timeoutMs: number): Promise<void>;
  close(): void;
}

/** Reads one path per line, writes one line each: `ok`, or the shell's own error message. */
const SHELL = 'while IFS= read -r path; do { true < "$path/."; } 2>&1 && echo ok; done';
/** A mount point may lie in the home of somebody. */
const ENTERS_ALL = ['dac_read_search'];
/** Calls younger than `SLOW_MS` share this many slots; a slow call gives its slot to the next one. */
const QUICK_PLACES = 4;
const SLOW_MS = 200;
/**
 * Limit of shells that hang in the kernel, and of calls that may join them. Beyond it something is badly
 * wrong with the machine.
 */
const MAX_SHELLS = 128;

interface Shell {
  readonly child: ChildProcess;
  readonly stdin: Socket;
  /** Settles the call in progress: its answer, or undefined when the shell has ended. */
  onLine: ((line: string | undefined) => void) | undefined;
}

interface Pool {
  readonly all: Set<Shell>;
  readonly idle: Shell[];
  /** Abandoned shells, by the path that they hang on; each promise settles when its shell has ended. */
  readonly stuck: Map<string, Promise<void>>;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createMountProbe({
  clock,
  log,
}: {
  readonly clock: Clock;
  readonly log: Logger;
}): MountProbe {
  const pool: Pool = { all: new Set(), idle: [], stuck: new Map(), clock, log };
  const places = createSemaphore({ places: QUICK_PLACES, heldAtMostMs: SLOW_MS, clock });
  let closed = false;
  return {
    touch: async (path, timeoutMs) => {
      if (/[\n\0]/.test(path)) throw new Error('a path with a line end cannot be opened');
      await whenFreed(pool, path, timeoutMs);
      const leave = await places.enter();
      if (closed) throw new Error('the mount reader is closed');
      await ask(pool, path, timeoutMs).finally(leave);
    },
    close: () => {
      closed = true;
      for (const shell of pool.all) dismiss(shell);
    },
  };
}

/** A shell still hangs on this path: a second one would hang as well, so the call waits for the first. */
async function whenFreed(pool: Pool, path: string, timeoutMs: number): Promise<void> {
  const stuck = pool.stuck.get(path);
  if (stuck === undefined) return;
  const freed = new AbortController();
  const timeUp = pool.clock.sleep(timeoutMs, freed.signal);
  void stuck.then(() => freed.abort());
  const isFreed = await timeUp.then(
    () => false,
    () => true,
  );
  if (!isFreed) throw timeoutError(`${path} did not answer within ${timeoutMs} ms`);
}

async function ask(pool: Pool, path: string, timeoutMs: number): Promise<void> {
  const shell = pool.idle.pop() ?? startShell(pool);
  return new Promise((resolve, reject) => {
    const cancel = pool.clock.after(
      timeoutMs,
      () => {
        shell.onLine = undefined;
        leaveBehind(pool, shell, path);
        reject(timeoutError(`${path} did not answer within ${timeoutMs} ms`));
      },
      { keepAlive: true },
    );
    shell.onLine = (line) => {
      cancel();
      shell.onLine = undefined;
      if (line !== undefined) pool.idle.push(shell);
      if (line === 'ok') resolve();
      else reject(new Error(`open ${path}: ${line === undefined ? 'the helper ended' : reasonIn(line)}`));
    };
    shell.stdin.write(`${path}\n`);
  });
}

function startShell(pool: Pool): Shell {
  if (pool.all.size >= MAX_SHELLS)
    throw new Error(`${MAX_SHELLS} helpers already wait for mounts that do not answer`);
  // In its own session, so that Ctrl-C in the daemon's terminal does not reach it. It ends when its input
  // closes.
  const [command, args] = lessened('/bin/sh', ['-c', SHELL], ENTERS_ALL);
  const child = spawn(command, args, {
    cwd: '/',
    env: childEnvironment({ LC_ALL: 'C' }),
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  // Without a free descriptor Node makes no streams, and emits the error later.
  child.once('error', () => undefined);
  if (child.pid === undefined) throw new Error('the helper that looks at mounts cannot be started');
  const [stdin, stdout] = [child.stdin as Socket, child.stdout as Socket];
  const shell: Shell = { child, stdin, onLine: undefined };
  pool.all.add(shell);
  const onEnd = (): void => {
    pool.all.delete(shell);
    const index = pool.idle.indexOf(shell);
    if (index >= 0) pool.idle.splice(index, 1);
    shell.onLine?.(undefined);
  };
  stdin.on('error', () => undefined);
  stdout.on('error', () => undefined);
  createInterface({ input: stdout }).on('line', (line) => shell.onLine?.(line));
  child.once('exit', onEnd);
  // Its pipes do not keep the daemon alive; a call in progress does.
  for (const handle of [child, stdin, stdout]) handle.unref();
  return shell;
}

function leaveBehind(pool: Pool, shell: Shell, path: string): void {
  pool.log.warn({ path, pid: shell.child.pid }, 'mount does not answer');
  const freed = new Promise<void>((resolve) => shell.child.once('exit', () => resolve()));
  pool.stuck.set(path, freed);
  void freed.then(() => {
    if (pool.stuck.get(path) === freed) pool.stuck.delete(path);
  });
  dismiss(shell);
}

/** Takes effect at once, unless the shell hangs in the kernel: then when the mount is freed. */
function dismiss(shell: Shell): void {
  shell.child.kill('SIGKILL');
  shell.stdin.destroy();
}

/** `sh: 1: cannot open /mnt/photos/.: Transport endpoint is not connected` */
function reasonIn(line: string): string {
  return line.slice(line.lastIndexOf(': ') + 2);
}
