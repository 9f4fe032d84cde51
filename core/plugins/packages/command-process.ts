/**
 * The command line in a process of its own: `mountkeeper plugin …`. Nothing of npm runs in the daemon. It has the
 * daemon's rights, since it writes the state folder and starts plugins as their user, and comes after all that serves
 * users.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Clock } from '../../contract/platform.ts';
import { PACKAGE_DIR } from '../../platform/package.ts';
import { childEnvironment } from '../../platform/processes/environment.ts';
import { timeoutError } from '../../platform/timeout-error.ts';

const MAIN = join(PACKAGE_DIR, 'dist', 'core', 'main.js');
/** npm itself gives up a request after 5 minutes. */
const LONGEST_MS = 900_000;
/** The command takes back what it has begun, for which it gives itself 10 s. */
const ENDING_MS = 12_000;
const NICENESS = 10;
const MOST_OUTPUT = 1_048_576;
const MOST_SAID = 16_384;

/**
 * Where npm finds the registry. Not in it: logins, which npm reads from its own files, and what the daemon itself was
 * told in variables.
 */
const OF_NPM = new Set([
  'npm_config_registry',
  'npm_config_userconfig',
  'npm_config_globalconfig',
  'npm_config_cache',
  'npm_config_cafile',
  'npm_config_fetch_retries',
  'node_extra_ca_certs',
  'http_proxy',
  'https_proxy',
  'no_proxy',
]);

export function commandEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const given = Object.entries(own).filter(
    (pair): pair is [string, string] => pair[1] !== undefined && OF_NPM.has(pair[0].toLowerCase()),
  );
  return childEnvironment(Object.fromEntries(given));
}

export interface CommandRun {
  /** Behind `mountkeeper plugin`. */
  readonly args: readonly string[];
  readonly configFile: string;
  readonly clock: Clock;
  /** Ends the command, which leaves nothing half done then. */
  readonly signal: AbortSignal;
  /** Told of each line of its progress. */
  readonly said: (line: string) => void;
}

export interface CommandEnd {
  readonly code: number | null;
  readonly stdout: string;
  /** What it said beside its answer, the end of it. */
  readonly stderr: string;
}

export type RunCommand = (run: CommandRun) => Promise<CommandEnd>;

/** Resolves once the process has ended. Rejects where it could not be started, did not end in time or was ended. */
export const runCommand: RunCommand = ({ args, configFile, ...run }) =>
  runProgram([process.execPath, MAIN, 'plugin', ...args, '--json', '--config', configFile], run);

/** The same, of any program. */
export async function runProgram(
  [command, ...args]: readonly [string, ...string[]],
  { clock, signal, said }: Omit<CommandRun, 'args' | 'configFile'>,
): Promise<CommandEnd> {
  signal.throwIfAborted();
  const child = spawn(
    command,
    args,
    // A relative path means nothing here, and no `.npmrc` of a folder counts.
    { cwd: '/', env: commandEnvironment(process.env), detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const stdout = kept(child.stdout, MOST_OUTPUT);
  const stderr = kept(child.stderr, MOST_SAID, (line) => said(line));
  if (child.pid !== undefined) lower(child.pid);
  const late = timeoutError('the command did not end in time');
  const over = new AbortController();
  const cancel = clock.after(LONGEST_MS, () => over.abort(late));
  const ended = AbortSignal.any([signal, over.signal]);
  const release = endOn(ended, child, clock);
  try {
    const code = await exitOf(child);
    // It may have been through already.
    if (code !== 0) ended.throwIfAborted();
    return { code, stdout: stdout(), stderr: stderr() };
  } finally {
    cancel();
    release();
  }
}

function lower(pid: number): void {
  try {
    setPriority(pid, NICENESS);
  } catch {
    // It has ended already, which is told of elsewhere.
  }
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', (cause) => reject(new Error('the command could not be started', { cause })));
    child.once('close', resolve);
  });
}

/** Asked first, as by a shell: it ends npm, which has a process group of its own. */
function endOn(ended: AbortSignal, child: ChildProcess, clock: Clock): () => void {
  let cancel = (): void => undefined;
  const end = (): void => {
    child.kill('SIGTERM');
    cancel = clock.after(ENDING_MS, () => killAll(child), { keepAlive: true });
  };
  ended.addEventListener('abort', end, { once: true });
  return () => {
    ended.removeEventListener('abort', end);
    cancel();
  };
}

/** With all that it has left in its group, which would keep its output open. */
function killAll({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // All of it has ended.
  }
}

/** The last of what a stream gives. */
function kept(stream: Readable, most: number, line: (text: string) => void = () => undefined): () => string {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('error', () => undefined);
  stream.on('data', (piece: string) => {
    text = (text + piece).slice(-most);
    const last = piece
      .split('\n')
      .filter((one) => one.trim() !== '')
      .at(-1);
    if (last !== undefined) line(last);
  });
  return () => text;
}
