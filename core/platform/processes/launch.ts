/**
 * Starts a process so that it never runs without a record: a small shell waits in its place until the
 * record is on disk, and then becomes the command (`exec`). If the daemon dies in between, the shell sees
 * its pipe close and ends.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { readProcStat } from './proc-stat.ts';
import type { ProcessIdentity } from './proc-stat.ts';

const WAIT_SCRIPT = 'read -r go <&3 && unset go PWD OLDPWD && exec "$@" 3>&-';
const GO_FD = 3;

export interface Launch {
  /** Absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Open file descriptor for both streams. */
  readonly output: number;
  /** Open file descriptors that it has as 4, 5 and so on. */
  readonly passed?: readonly number[];
}

export interface WaitingProcess {
  readonly child: ChildProcess;
  readonly identity: ProcessIdentity;
  /** Lets the command begin. Resolves once the shell has become the command or has ended. */
  begin(): Promise<void>;
}

/**
 * Starts it in its own session, with no input and its output in a file: the daemon's death does not affect
 * it.
 */
export async function launchWaiting(launch: Launch): Promise<WaitingProcess> {
  const child = spawn('/bin/sh', ['-c', WAIT_SCRIPT, 'sh', launch.command, ...launch.args], {
    cwd: launch.cwd,
    env: launch.env,
    detached: true,
    stdio: ['ignore', launch.output, launch.output, 'pipe', ...(launch.passed ?? [])],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  const goPipe = child.stdio[GO_FD] as Duplex;
  goPipe.on('error', () => undefined);
  const pid = child.pid as number;
  const stat = readProcStat(pid);
  if (stat === undefined) {
    child.kill('SIGKILL');
    throw new Error(`process ${pid} ended before it began`);
  }
  return { child, identity: { pid, startTicks: stat.startTicks }, begin: () => letBegin(child, goPipe) };
}

function letBegin(child: ChildProcess, goPipe: Duplex): Promise<void> {
  return new Promise((resolve) => {
    // It may have been killed while its record was being written.
    if (goPipe.destroyed || child.exitCode !== null || child.signalCode !== null) return resolve();
    goPipe.once('close', resolve);
    goPipe.once('end', resolve);
    child.once('exit', () => resolve());
    goPipe.resume();
    goPipe.write('go\n');
  });
}
