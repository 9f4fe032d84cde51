/**
 * Worker files in threads of their own, run by bree. It is loaded when the first one comes. What is known of
 * it: a stop waits for ever on a worker that heeds no message, a failure is reported twice, and two additions
 * at once take one name twice.
 */
import { EventEmitter } from 'node:events';
import { isAbsolute } from 'node:path';
import type Bree from 'bree';
import type { Clock, Logger } from '../contract/platform.ts';
import { createSerialQueue } from './serial-queue.ts';

export interface WorkerFile {
  /** Absolute path of an ES module. */
  readonly file: string;
  readonly data?: unknown;
}

export interface WorkerJobs {
  /** Resolves when the worker has ended; rejects with its error. Aborted: asked to stop, then ended. */
  run(key: string, worker: WorkerFile, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** A worker that is asked to stop has this long to end by itself. */
const CANCEL_MS = 2_000;
const REMOVE_MS = 1_000;

interface Runner {
  readonly bree: Bree;
  /** Emits `error:<name>` with the first thing that went wrong. */
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
        await withLimit(bree.remove(key), REMOVE_MS, clock);
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
    // Its lines on every start and end are noise; failures come through `errorHandler`.
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
  await withLimit(ended, CANCEL_MS, clock);
  await bree.workers.get(key)?.terminate();
}

async function withLimit(work: Promise<unknown>, ms: number, clock: Clock): Promise<void> {
  const enough = new AbortController();
  await Promise.race([work.catch(() => undefined), clock.sleep(ms, enough.signal).catch(() => undefined)]);
  enough.abort();
}
