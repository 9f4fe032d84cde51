/**
 * Runs a command that ends by itself, bounded in time and output. At the deadline its whole process group
 * is killed and the caller goes on without waiting, because a process that is stuck in the kernel would not
 * end.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Clock, ShortCommand, ShortCommandResult } from '../../contract/platform.ts';
import { childEnvironment } from './environment.ts';
import { findCommand } from './find-command.ts';
import { lessened } from './lessened.ts';
import { timeoutError } from '../timeout-error.ts';

const DEFAULT_MAX_OUTPUT_BYTES = 1_048_576;
/** How long to wait, after the command has ended, for a descendant that keeps the pipes open. */
const PIPES_AFTER_EXIT_MS = 300;

export async function runShortCommand(spec: ShortCommand, clock: Clock): Promise<ShortCommandResult> {
  spec.signal?.throwIfAborted();
  const env = childEnvironment(spec.env);
  const command = await findCommand(spec.command, env['PATH'] ?? '');
  spec.signal?.throwIfAborted();
  const [program, args] = spec.capabilities
    ? lessened(command, spec.args, spec.capabilities)
    : [command, spec.args];
  const argv0 = program === command ? spec.command : program;
  // Without a free descriptor Node makes no streams, and emits the error later.
  const child: ChildProcess = spawn(program, args, { env, argv0, detached: true, stdio: 'pipe' });
  const limitBytes = spec.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES;
  const stdout = keepLast(child.stdout, limitBytes);
  const stderr = keepLast(child.stderr, limitBytes);
  const { code, signal } = await ending(child, spec, clock);
  return { code, signal, stdout: stdout(), stderr: stderr() };
}

type Ending = Pick<ShortCommandResult, 'code' | 'signal'>;

function ending(child: ChildProcess, spec: ShortCommand, clock: Clock): Promise<Ending> {
  return new Promise((resolve, reject) => {
    const releases: (() => void)[] = [];
    const finish = (settle: () => void): void => {
      for (const release of releases) release();
      settle();
    };
    const abandon = (reason: unknown): void =>
      finish(() => {
        killGroup(child);
        reject(reason);
      });
    const onAbort = (): void => abandon(spec.signal?.reason);
    spec.signal?.addEventListener('abort', onAbort, { once: true });
    releases.push(() => spec.signal?.removeEventListener('abort', onAbort));
    give(child, spec.input, abandon);
    const late = timeoutError(`${spec.command} did not end within ${spec.timeoutMs} ms`);
    releases.push(clock.after(spec.timeoutMs, () => abandon(late), { keepAlive: true }));
    child.once('error', (cause) => finish(() => reject(new Error(`start ${spec.command}`, { cause }))));
    child.once('close', (code, signal) => finish(() => resolve({ code, signal })));
    child.once('exit', (code, signal) => {
      releases.push(
        clock.after(
          PIPES_AFTER_EXIT_MS,
          () =>
            finish(() => {
              letGo(child);
              resolve({ code, signal });
            }),
          { keepAlive: true },
        ),
      );
    });
  });
}

/** What a function gives as soon as the command has written something; one that fails ends the command. */
function give(
  { stdin, stdout }: ChildProcess,
  input: ShortCommand['input'] = '',
  abandon: (reason: unknown) => void,
): void {
  stdin?.on('error', () => undefined);
  if (typeof input === 'string') stdin?.end(input);
  else
    stdout?.once('data', () => {
      void Promise.resolve()
        .then(input)
        .then((text) => stdin?.end(text), abandon);
    });
}

function killGroup(child: ChildProcess): void {
  letGo(child);
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The whole group has ended.
  }
}

/** Neither the pipes nor the process keep the daemon running; its exit code is still collected later. */
function letGo(child: ChildProcess): void {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  child.unref();
}

/** Keeps the last bytes of a stream. The returned function gives them as text. */
function keepLast(stream: Readable | null, limitBytes: number): () => string {
  let chunks: Buffer[] = [];
  let size = 0;
  const join = (): Buffer => {
    const all = Buffer.concat(chunks);
    return all.subarray(Math.max(0, all.length - limitBytes));
  };
  stream?.on('error', () => undefined);
  stream?.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size <= 2 * limitBytes + 65_536) return;
    chunks = [Buffer.from(join())];
    size = limitBytes;
  });
  return () => join().toString('utf8');
}
