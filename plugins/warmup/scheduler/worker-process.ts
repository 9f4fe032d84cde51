import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { lessened } from 'mountkeeper';
import { linesOf } from '../lines.ts';
import type { Ending, Order, Refreshed, Report, Terms } from '../job-description.ts';

const WORKER = fileURLToPath(new URL('../worker/worker.js', import.meta.url));
/** An admin may have given a file in the share to somebody. */
const READS_ALL = ['dac_read_search'];
const KEPT_WORDS = 2_000;
const STOPPED: Ending = { outcome: 'stopped', reason: 'stopped' };
/** Each file that is read blocks one of Node's threads, and one more call per file may do so. */
const THREADS_PER_FILE = 2;

/** The helper process that does the work of one warmup. */
export interface Helper {
  /** Settles once, whether the process ended by itself or was stopped. Never rejects. */
  readonly ended: Promise<Ending>;
  tell(said: Terms | Refreshed): void;
  /** Ends it at once; a process that hangs in the mount is left to the kernel. */
  stop(): void;
}

export type StartHelper = (order: Order, onReport: (report: Report) => void) => Helper;

/**
 * Starts the helper in its own session, so that Ctrl-C in the daemon's terminal does not reach it. Its
 * orders contain credentials, so they are passed through a pipe; the path of its list shows people which
 * task it belongs to.
 */
export const startHelper: StartHelper = (order, onReport) => {
  const [command, args] = lessened(process.execPath, [WORKER, order.listFile], READS_ALL);
  const child = spawn(command, args, {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      LC_ALL: 'C',
      UV_THREADPOOL_SIZE: String(Math.min(256, 8 + THREADS_PER_FILE * order.concurrency)),
    },
  });
  let settle: (ending: Ending) => void = () => undefined;
  const ended = new Promise<Ending>((resolve) => {
    settle = resolve;
  });
  child.once('error', (error) =>
    settle({ outcome: 'failed', reason: `the helper process could not be started: ${error.message}` }),
  );
  // Without a free descriptor Node makes no streams, and emits the error later.
  if (child.pid === undefined) return { ended, tell: () => undefined, stop: () => settle(STOPPED) };
  const words = lastWords(child);
  child.stdin.on('error', () => undefined);
  child.stdout.on('error', () => undefined);
  child.once('close', (code, signal) =>
    settle({
      outcome: 'failed',
      reason: `the helper process ended with ${code ?? signal ?? 'no reason'}: ${words()}`,
    }),
  );
  void hear(child.stdout, (report) =>
    report.kind === 'end' ? settle(report.ending) : onReport(report),
  ).catch((error: unknown) =>
    settle({
      outcome: 'failed',
      reason: `what the helper process said is not understood: ${(error as Error).message}`,
    }),
  );
  child.stdin.write(`${JSON.stringify(order)}\n`);
  return {
    ended,
    tell: (said) => void child.stdin.write(`${JSON.stringify(said)}\n`),
    stop: () => {
      settle(STOPPED);
      letGo(child);
    },
  };
};

/** Ends with the process; an abandoned one may stop in the middle of a line. */
async function hear(said: Readable, onReport: (report: Report) => void): Promise<void> {
  const lines = linesOf(said);
  for (;;) {
    // Broken off: its end tells why.
    const next = await lines.next().catch(() => undefined);
    if (next === undefined || next.done === true) return;
    onReport(JSON.parse(next.value) as Report);
  }
}

function lastWords(child: ChildProcess): () => string {
  let text = '';
  child.stderr
    ?.on('error', () => undefined)
    .on('data', (piece: Buffer) => {
      text = (text + piece.toString()).slice(-KEPT_WORDS);
    });
  return () => text.trim();
}

function letGo(child: ChildProcess): void {
  child.kill('SIGKILL');
  for (const stream of child.stdio) stream?.destroy();
  child.unref();
}
