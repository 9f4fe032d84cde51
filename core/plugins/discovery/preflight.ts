/** Pre-flight check of third-party code: imports it in a child process with a deadline. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { lessened } from '../../platform/processes/lessened.ts';
import type { Declared } from './manifest.ts';
import { MayPass } from './may-pass.ts';

const CHILD = fileURLToPath(new URL('./preflight-child.js', import.meta.url));

export interface PreflightRequest {
  readonly entry: string;
  readonly name: string;
  /** The declarations in its package.json. */
  readonly declared: Declared;
  readonly timeoutMs: number;
}

interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  readonly answer: string;
  readonly stderr: string;
}

/** Undefined when the module may be imported, else what is wrong with it. Rejects where it may be the machine. */
export async function preflight(request: PreflightRequest): Promise<string | undefined> {
  const end = await runChild(request);
  if (end.timedOut)
    throw new MayPass(
      `it did not finish loading within ${String(request.timeoutMs / 1000)} s; ` +
        'a module must not loop or wait while it is imported',
    );
  if (end.answer !== '') return (JSON.parse(end.answer) as { problem?: string }).problem;
  if (end.signal !== null) throw new MayPass(`it was ended by ${end.signal}`);
  if (end.code === 13)
    return 'it never finishes loading: a top-level await waits for something that never comes';
  return (
    syntaxProblem(end.stderr) ?? `it ended the process while it was loaded (exit code ${String(end.code)})`
  );
}

/** Node prints the location of an uncaught SyntaxError as `file:///…:line` before the message. */
export function syntaxProblem(stderr: string): string | undefined {
  const message = /^SyntaxError: .*$/m.exec(stderr)?.[0];
  if (message === undefined) return undefined;
  const place = /^(?:file:\/\/)?(\/.+:\d+)$/m.exec(stderr)?.[1];
  return `it cannot be loaded: ${message}${place === undefined ? '' : ` (${place})`}`;
}

function runChild(request: PreflightRequest): Promise<ChildEnd> {
  const { entry, name, declared, timeoutMs } = request;
  return new Promise((resolve, reject) => {
    const [command, args] = lessened(process.execPath, [CHILD, entry, name, JSON.stringify(declared)]);
    const child = spawn(command, args, {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: process.env['HOME'] ?? '',
        LANG: process.env['LANG'] ?? '',
      },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    const output = { stderr: '', answer: '' };
    child.once('error', reject);
    // Where the daemon can open no more files, Node makes no streams, and emits the error later.
    if (child.pid === undefined) return;
    child.stderr?.on('data', (chunk: Buffer) => {
      output.stderr = (output.stderr + chunk.toString()).slice(-16_384);
    });
    (child.stdio[3] as NodeJS.ReadableStream).on('data', (chunk: Buffer) => {
      output.answer += chunk.toString();
    });
    child.once('close', (code, signal) => resolve({ code, signal, timedOut: child.killed, ...output }));
  });
}
