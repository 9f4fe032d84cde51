/** The test's side of the child that touches the share. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Scratch } from '../platform/scratch-folder.ts';
import { within } from '../platform/wait.ts';
import type { ShareWorkerRequest } from './share-worker-process.ts';
import type { Step } from './operations.ts';
import type { Action } from '../torture/plan.ts';

const WORKER = fileURLToPath(new URL('./share-worker-process.js', import.meta.url));

/** One child process that works below the share. Killed with the scratch folder. */
export class ShareWorker {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #nextId = 1;

  constructor(scratch: Scratch) {
    this.#child = fork(WORKER, [scratch.root], {
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      detached: true,
    });
    this.#child.on('message', ({ id, result, error }: { id: number; result?: unknown; error?: string }) => {
      const waiter = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiter?.resolve(result);
      else waiter?.reject(new Error(error));
    });
    this.#child.unref();
    scratch.defer(() => {
      if (this.#child.connected) this.#child.disconnect();
      this.#child.kill('SIGKILL');
    });
  }

  /** Error codes, null for what was done. */
  steps(root: string, steps: readonly Step[], timeoutMs = 300_000): Promise<readonly (string | null)[]> {
    return this.#ask({ op: 'steps', root, steps }, timeoutMs);
  }

  /** The error's code, null when it was done. Rejects at the deadline: it may be done later. */
  act(root: string, action: Action, timeoutMs: number): Promise<string | null> {
    return this.#ask({ op: 'act', root, action }, timeoutMs);
  }

  /** Reads the first bytes of each file. Rejects at the deadline. */
  async read(root: string, files: readonly string[], bytes: number, timeoutMs = 300_000): Promise<void> {
    await this.#ask({ op: 'read', root, files, bytes }, timeoutMs);
  }

  /** The tree below a folder, as `treeOf` gives it. Rejects at the deadline. */
  tree(root: string, timeoutMs = 120_000): Promise<Record<string, string>> {
    return this.#ask({ op: 'tree', root }, timeoutMs);
  }

  #ask<T>(request: ShareWorkerRequest, timeoutMs: number): Promise<T> {
    const id = this.#nextId;
    this.#nextId += 1;
    const answer = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, request });
    });
    return within(`${request.op} below ${request.root}`, timeoutMs, answer) as Promise<T>;
  }
}
