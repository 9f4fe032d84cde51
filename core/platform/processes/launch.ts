/**
 * Starts a process so that there is never one that no record names: a small shell waits in its place until
 * the record is on the disk, and becomes the command then. When the daemon dies in between, the shell reads
 * the end of its pipe and ends.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { readProcStat } from './proc-stat.ts';
import type { ProcessIdentity } from './proc-stat.ts';

const GATE = 'read -r go <&3 && unset go PWD OLDPWD && exec "$@" 3>&-';
const GATE_FD = 3;

export interface Launch {
  /** Absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Open file descriptor for both streams. */
  readonly output: number;
}

export interface WaitingProcess {
  readonly child: ChildProcess;
  readonly identity: ProcessIdentity;
  /** Lets the command begin. Resolves once the shell has made way for it or has ended. */
  begin(): Promise<void>;
}

/** In a session of its own, reading nothing, writing to a file: the daemon's death does not reach it. */
export async function launchWaiting(launch: Launch): Promise<WaitingProcess> {
  const child = spawn('/bin/sh', ['-c', GATE, 'sh', launch.command, ...launch.args], {
    cwd: launch.cwd,
    env: launch.env,
    detached: true,
    stdio: ['ignore', launch.output, launch.output, 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  const gate = child.stdio[GATE_FD] as Duplex;
  gate.on('error', () => undefined);
  const pid = child.pid as number;
  const stat = readProcStat(pid);
  if (stat === undefined) {
    child.kill('SIGKILL');
    throw new Error(`process ${pid} ended before it began`);
  }
  return { child, identity: { pid, startTicks: stat.startTicks }, begin: () => openGate(child, gate) };
}

function openGate(child: ChildProcess, gate: Duplex): Promise<void> {
  return new Promise((resolve) => {
    // It may have been killed while its record was written.
    if (gate.destroyed || child.exitCode !== null || child.signalCode !== null) return resolve();
    gate.once('close', resolve);
    gate.once('end', resolve);
    child.once('exit', () => resolve());
    gate.resume();
    gate.write('go\n');
  });
}
