/** The test's side of a file worker: requests with a deadline, long tasks that are stopped, ledgers. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { FileRequest } from './file-requests.ts';
import type { Scratch } from './scratch-folder.ts';
import { within } from './wait.ts';

/** For what is not measured: a machine that has much to do may take long. */
const PATIENCE_MS = 60_000;
const WORKER = fileURLToPath(new URL('./file-worker-process.js', import.meta.url));

export interface Tally {
  readonly reads: number;
  readonly failures: readonly string[];
}

/** Something that goes on until it is stopped; `done` settles with its tally. */
export interface LongTask<T> {
  readonly done: Promise<T>;
  stop(): Promise<T>;
}

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
  readonly code?: string;
}

/** A child process that works below mounts. Killed with its scratch folder. */
export class Files {
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private nextId = 1;

  constructor(scratch: Scratch) {
    this.child = fork(WORKER, [scratch.root], {
      env: { PATH: process.env['PATH'], UV_THREADPOOL_SIZE: '16' },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      detached: true,
    });
    this.child.on('message', (answer: Answer) => this.settle(answer));
    this.child.once('exit', () => this.failAll());
    // The test process must end even while this child hangs in a mount that is dead.
    this.child.unref();
    scratch.defer(() => this.close());
  }

  /** One request; rejects at the deadline while the child may go on hanging. */
  async ask<T>(request: FileRequest, timeoutMs = PATIENCE_MS): Promise<T> {
    return within(
      `${request.op} ${'path' in request ? request.path : ''}`,
      timeoutMs,
      this.post(request).answer,
    ) as Promise<T>;
  }

  /** SHA-256 of a file below a mount, in hexadecimal. Rejects at the deadline. */
  async checksum(path: string, timeoutMs = PATIENCE_MS): Promise<string> {
    return (await this.ask<{ sha256: string }>({ op: 'checksum', path }, timeoutMs)).sha256;
  }

  /** Writes random bytes and closes the file; resolves with their SHA-256. Rejects at the deadline. */
  async write(path: string, bytes: number, timeoutMs = PATIENCE_MS): Promise<string> {
    return (await this.ask<{ sha256: string }>({ op: 'write', path, bytes }, timeoutMs)).sha256;
  }

  /** Starts what goes on until it is stopped. */
  begin<T>(request: FileRequest): LongTask<T> {
    const { id, answer } = this.post(request);
    answer.catch(() => undefined);
    const done = answer as Promise<T>;
    return {
      done,
      stop: () => {
        if (this.child.connected) this.child.send({ id, stop: true });
        return within(`the end of ${request.op}`, 60_000, done);
      },
    };
  }

  /** Opens a file for writing and keeps it open; the returned function closes it. */
  async holdForWriting(path: string, bytes: number): Promise<() => Promise<void>> {
    const { id, answer } = this.post({ op: 'hold-for-writing', path, bytes });
    await within(`open ${path}`, PATIENCE_MS, answer);
    return async () => {
      await this.ask({ op: 'release', target: id });
    };
  }

  /** Kills the child, though it may hang. */
  close(): void {
    if (this.child.connected) this.child.disconnect();
    this.child.kill('SIGKILL');
  }

  private post(request: FileRequest): { id: number; answer: Promise<unknown> } {
    const id = this.nextId;
    this.nextId += 1;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.child.send({ id, request });
    });
    return { id, answer };
  }

  private settle(answer: Answer): void {
    const waiter = this.waiting.get(answer.id);
    this.waiting.delete(answer.id);
    if (answer.error === undefined) waiter?.resolve(answer.result);
    else waiter?.reject(Object.assign(new Error(answer.error), { code: answer.code }));
  }

  private failAll(): void {
    this.waiting.forEach((waiter) => waiter.reject(new Error('the file worker has ended')));
    this.waiting.clear();
  }
}

export interface Ledger {
  /** Name → checksum of every file whose close() succeeded. */
  readonly closed: ReadonlyMap<string, string>;
  /** `code name` of what failed. */
  readonly failed: readonly string[];
}

/** Reads a ledger; an absent file is an empty one. */
export async function readLedger(file: string): Promise<Ledger> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
  const parts = lines.map((line) => /^(ok|failed) (\S+) (.+)$/.exec(line)?.slice(1) ?? []);
  return {
    closed: new Map(parts.filter(([kind]) => kind === 'ok').map(([, sum, name]) => [name ?? '', sum ?? ''])),
    failed: parts.filter(([kind]) => kind === 'failed').map(([, code, name]) => `${code} ${name}`),
  };
}

/** Names in the ledger that are missing or different among the files that arrived. */
export function lostFiles(ledger: Ledger, arrived: ReadonlyMap<string, string>): string[] {
  return [...ledger.closed]
    .filter(([name, sum]) => arrived.get(name) !== sum)
    .map(([name]) => `${name} ${arrived.has(name) ? 'differs' : 'missing'}`);
}
