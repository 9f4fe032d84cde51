/**
 * Runs worker files in their own threads with bree, which is loaded for the first one. bree has three
 * quirks that this module works around: stopping waits for ever for a worker that ignores its message, a
 * failure is reported twice, and two simultaneous additions can take the same name.
 */
import { EventEmitter } from 'node:events';
import { isAbsolute } from 'node:path';
import type Bree from 'bree';
import type { Clock, Logger } from '../contract/platform.ts';
import { endsWithin } from './deadline.ts';
import { createSerialQueue } from './serial-queue.ts';

export interface WorkerFile {
  /** Absolute path of an ES module. */
  readonly file: string;
  readonly data?: unknown;
}

export interface WorkerJobs {
  /**
   * Resolves when the worker has ended; rejects with its error. On abort it is asked to stop, then
   * terminated.
   */
  run(key: string, worker: WorkerFile, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** A worker that is asked to stop has this long to end by itself. */
const CANCEL_MS = 2_000;
const REMOVE_MS = 1_000;

interface Runner {
  readonly bree: Bree;
  /** Emits `error:<name>` with the worker's first error. */
  readonly errors: EventEmitter;
}

export function createWorkerJobs({
  clock,
  log,
}: {
  readonly clock: Clock;
  readonly log: Logger;
}): WorkerJobs {
  let runner: Promise<Runner> | undefined;
  const additions = createSerialQueue();
  const add = (bree: Bree, key: string, worker: WorkerFile): Promise<void> =>
    additions.run(() =>
      bree.add({
        name: key,
        path: worker.file,
        timeout: false,
        interval: 0,
        worker: { workerData: { data: worker.data } },
      }),
    );
  return {
    run: async (key, worker, signal) => {
      if (!isAbsolute(worker.file))
        throw new Error(`the worker file ${worker.file} of ${key} must be an absolute path`);
      runner ??= startRunner(log);
      const { bree, errors } = await runner;
      await add(bree, key, worker);
      try {
        await runWorker({ bree, errors }, key, signal, clock);
      } finally {
        // It is gone from the list already where its thread has ended by itself.
        await endsWithin(clock, REMOVE_MS, bree.remove(key)).catch(() => undefined);
      }
    },
    close: async () => {
      if (runner === undefined) return;
      const { bree } = await runner;
      await Promise.all([...bree.workers.values()].map((worker) => worker.terminate()));
    },
  };
}

async function startRunner(log: Logger): Promise<Runner> {
  const { default: BreeClass } = await import('bree');
  const errors = new EventEmitter();
  const bree = new BreeClass({
    root: false,
    timeout: false,
    jobs: [],
    // bree logs every start and end; failures arrive through `errorHandler` instead.
    logger: {
      info: (...line: unknown[]) => log.trace({ line }, 'worker'),
      warn: (...line: unknown[]) => log.debug({ line }, 'worker'),
      error: (...line: unknown[]) => log.debug({ line }, 'worker'),
    } as Bree.BreeOptions['logger'] & object,
    errorHandler: (error: Error, { name }: { name: string }) => void errors.emit(`error:${name}`, error),
    workerMessageHandler: () => undefined,
  } as Bree.BreeOptions);
  return { bree, errors };
}

async function runWorker(
  { bree, errors }: Runner,
  key: string,
  signal: AbortSignal,
  clock: Clock,
): Promise<void> {
  let problem: Error | undefined;
  const onError = (error: Error): void => {
    problem ??= error;
  };
  errors.on(`error:${key}`, onError);
  try {
    signal.throwIfAborted();
    const ended = new Promise<void>((resolve) => {
      const onDeleted = (name: string): void => {
        if (name !== key) return;
        bree.off('worker deleted', onDeleted);
        resolve();
      };
      bree.on('worker deleted', onDeleted);
    });
    await bree.run(key);
    const onAbort = (): void => void cancelWorker(bree, key, ended, clock);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    await ended.finally(() => signal.removeEventListener('abort', onAbort));
  } finally {
    errors.off(`error:${key}`, onError);
  }
  if (problem !== undefined) throw problem;
}

async function cancelWorker(bree: Bree, key: string, ended: Promise<void>, clock: Clock): Promise<void> {
  bree.workers.get(key)?.postMessage('cancel');
  await endsWithin(clock, CANCEL_MS, ended);
  await bree.workers.get(key)?.terminate();
}
