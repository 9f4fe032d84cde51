/**
 * The processes that this daemon manages, and what they share: records, one exit watch, bounded logs, one
 * change per key at a time.
 */
import type { Clock, Logger, ManagedProcess } from '../../contract/platform.ts';
import { createKeyedQueue } from '../serial-queue.ts';
import { createExitWatch } from './exit-watch.ts';
import type { ExitWatch } from './exit-watch.ts';
import { createManagedProcess } from './managed-process.ts';
import type { ManagedProcessParts } from './managed-process.ts';
import { boundProcessLog } from './output-log.ts';
import { createProcessRecords } from './record.ts';
import type { ProcessRecord, ProcessRecords } from './record.ts';

const BOUND_LOGS_MS = 60_000;

export interface ProcessKeeper {
  readonly records: ProcessRecords;
  readonly exitWatch: ExitWatch;
  readonly processes: ReadonlyMap<string, ManagedProcess>;
  readonly log: Logger;
  /** Runs one start or adoption per key at a time; further ones follow in order. */
  exclusively<T>(key: string, work: () => Promise<T>): Promise<T>;
  hold(record: ProcessRecord, adopted: boolean, watch: ManagedProcessParts['watch']): ManagedProcess;
  releaseAll(): void;
}

export function createProcessKeeper(options: {
  readonly stateDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}): ProcessKeeper {
  const { clock, log } = options;
  const records = createProcessRecords(options.stateDir, log);
  const processes = new Map<string, ManagedProcess>();
  const turns = createKeyedQueue();
  const exclusively: ProcessKeeper['exclusively'] = (key, work) => turns.run(key, work);
  const bounding = createBounding(processes, clock, log);
  const forget = (key: string, managed: ManagedProcess): void => {
    if (processes.get(key) === managed) processes.delete(key);
    bounding.update();
  };
  const hold: ProcessKeeper['hold'] = (record, adopted, watch) => {
    const managed: ManagedProcess = createManagedProcess({
      record,
      logFile: records.logFile(record.key),
      adopted,
      clock,
      log,
      watch,
      onReleased: () => forget(record.key, managed),
      onEnded: async () => {
        // Queued with starts of this key, so that it cannot remove the next process's record.
        await exclusively(record.key, () => records.remove(record)).catch((err: unknown) =>
          log.warn({ err, key: record.key }, 'process record cannot be removed'),
        );
        forget(record.key, managed);
      },
    });
    processes.set(record.key, managed);
    bounding.update();
    return managed;
  };
  const releaseAll = (): void => {
    for (const managed of processes.values()) managed.release();
  };
  return {
    records,
    exitWatch: createExitWatch(clock),
    processes: processes,
    log,
    exclusively,
    hold,
    releaseAll,
  };
}

/** Truncates the logs of the managed processes now and then. No timer while there are none. */
function createBounding(
  processes: ReadonlyMap<string, ManagedProcess>,
  clock: Clock,
  log: Logger,
): { update(): void } {
  let cancel: (() => void) | undefined;
  const look = (): void => {
    for (const { logFile, key } of processes.values()) {
      boundProcessLog(logFile).catch((err: unknown) => log.warn({ err, key }, 'process log cannot be cut'));
    }
    cancel = clock.after(BOUND_LOGS_MS, look);
  };
  return {
    update: () => {
      if (processes.size > 0) {
        cancel ??= clock.after(BOUND_LOGS_MS, look);
        return;
      }
      cancel?.();
      cancel = undefined;
    },
  };
}
