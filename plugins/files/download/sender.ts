/** Runs the process that sends a file, and ends it when the mount hangs or the reader has gone. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { pipeline, Transform } from 'node:stream';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { lessened } from 'mountkeeper';
import type { Clock } from 'mountkeeper';
import type { SendAnswer, SendRequest } from './send-process.ts';

const HELPER = fileURLToPath(new URL('./send-process.js', import.meta.url));

/** An admin may have given a file in the share to somebody. */
const READS_ALL = ['dac_read_search'];

export interface SendLimits {
  /** Until the file is opened. */
  readonly answerMs: number;
  /** Without a byte: a NAS that wakes a disk goes on within this time, and a reader who reads nothing has gone. */
  readonly silenceMs: number;
}

const USUAL: SendLimits = { answerMs: 15_000, silenceMs: 60_000 };

export interface Sending {
  readonly answer: SendAnswer;
  /** Breaks off with an error when the file does; never ends early in order. */
  readonly content: Readable;
  /** Ends the process at once; one that hangs in the mount is left to the kernel. */
  stop(): void;
}

export interface SenderTools {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly limits?: SendLimits;
  /** Called when no process works for the request any more, whatever became of it; never before, and once. */
  readonly gone: () => void;
}

/** Rejects with a sentence when the mount does not answer in time or the file cannot be opened. */
export async function sendFile(request: SendRequest, tools: SenderTools): Promise<Sending> {
  const { clock, signal, limits = USUAL } = tools;
  const child = startHelper(tools.gone);
  const kill = (): void => void child.kill('SIGKILL');
  const said = child.stdio[3] as Readable;
  // A process that ended has no more to say; its exit tells.
  for (const stream of [child.stdin, child.stderr, said]) stream?.on('error', () => undefined);
  try {
    child.stdin?.end(JSON.stringify(request));
    const deadline = clock.deadline(limits.answerMs, signal);
    const answer = await Promise.race([answerOf(said), failureOf(child), endOf(deadline)]);
    const content = watched(child, answer, { clock, signal, limits });
    return { answer, content, stop: () => void content.destroy() };
  } catch (error) {
    kill();
    throw error;
  }
}

function startHelper(gone: () => void): ChildProcess {
  try {
    const [command, args] = lessened(process.execPath, [HELPER], READS_ALL);
    const child = spawn(command, args, {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    });
    child.once('exit', gone);
    // One that never started never exits. Others may fail to be killed, and are there until they exit.
    child.on('error', () => {
      if (child.pid === undefined) gone();
    });
    return child;
  } catch (error) {
    gone();
    throw error;
  }
}

async function answerOf(said: Readable): Promise<SendAnswer> {
  let line = '';
  for await (const piece of said) {
    line += String(piece);
    if (line.includes('\n')) return JSON.parse(line) as SendAnswer;
  }
  // The exit says why.
  return new Promise<never>(() => undefined);
}

async function failureOf(child: ChildProcess): Promise<never> {
  // What it did not live to say is replaced by its exit code.
  const words = child.stderr ? text(child.stderr).catch(() => '') : Promise.resolve('');
  const [code] = (await once(child, 'close')) as [number | null];
  // After its answer nobody waits for this any more.
  throw new Error((await words).trim().slice(-300) || `the file could not be read (${code ?? 'killed'})`);
}

async function endOf(deadline: AbortSignal): Promise<never> {
  if (!deadline.aborted) await once(deadline, 'abort');
  throw new Error('the mount does not answer');
}

/** The content, cut off when nothing moves, and refused at its end when bytes are missing. */
function watched(
  child: ChildProcess,
  answer: SendAnswer,
  { clock, signal, limits }: Omit<Required<SenderTools>, 'gone'>,
): Readable {
  let missing = answer.ok ? answer.bytes : 0;
  let cancel: () => void = () => undefined;
  const content = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      moved();
      missing -= chunk.length;
      done(null, chunk);
    },
    flush(done) {
      done(missing === 0 ? null : new Error('the file broke off'));
    },
  });
  const end = (): void => void content.destroy(new Error('the mount does not go on'));
  const moved = (): void => {
    cancel();
    cancel = clock.after(limits.silenceMs, end);
  };
  moved();
  signal.addEventListener('abort', end, { once: true });
  // Whoever reads the content sees its error.
  content.on('error', () => undefined);
  content.once('close', () => {
    cancel();
    signal.removeEventListener('abort', end);
    child.kill('SIGKILL');
  });
  if (child.stdout) pipeline(child.stdout, content, () => undefined);
  return content;
}
