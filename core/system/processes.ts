/**
 * Long-lived children that outlive a crash of the daemon: started in sessions of their own with their output in files,
 * recorded, adopted by the next daemon, stopped with their whole session.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import type { Clock, Logger, ManagedProcess, Processes, ProcessSpec } from '../services.ts';
import { childEnvironment } from './environment.ts';
import { createExitWatch } from './exit-watch.ts';
import type { ExitWatch } from './exit-watch.ts';
import { findCommand } from './find-command.ts';
import { createManagedProcess } from './managed-process.ts';
import type { ManagedProcessParts } from './managed-process.ts';
import { bootId, commandLine, isRunning } from './proc-stat.ts';
import { launchWaiting } from './process-launch.ts';
import type { WaitingProcess } from './process-launch.ts';
import { boundProcessLog, openProcessLog } from './process-log.ts';
import { createProcessRecords, hashArguments } from './process-record.ts';
import type { ProcessRecord, ProcessRecords } from './process-record.ts';
import { runShortCommand } from './short-command.ts';

const BOUND_LOGS_MS = 60_000;

export interface ProcessesOptions {
  readonly stateDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createProcesses(options: ProcessesOptions): Processes & { releaseAll(): void } {
  const keeper = createKeeper(options);
  return {
    start: (spec) => keeper.exclusively(spec.key, () => start(spec, keeper)),
    adopt: (key) => keeper.exclusively(key, () => adopt(key, keeper)),
    recorded: (prefix) => keeper.records.keys(prefix),
    run: (spec) => runShortCommand(spec, options.clock),
    releaseAll: () => keeper.releaseAll(),
  };
}

interface Keeper {
  readonly records: ProcessRecords;
  readonly exitWatch: ExitWatch;
  readonly held: ReadonlyMap<string, ManagedProcess>;
  readonly log: Logger;
  /** One start or adoption of a key at a time; the others follow in order. */
  exclusively<T>(key: string, work: () => Promise<T>): Promise<T>;
  hold(record: ProcessRecord, adopted: boolean, watch: ManagedProcessParts['watch']): ManagedProcess;
  releaseAll(): void;
}

function createKeeper({ stateDir, clock, log }: ProcessesOptions): Keeper {
  const records = createProcessRecords(stateDir, log);
  const held = new Map<string, ManagedProcess>();
  const queues = new Map<string, Promise<unknown>>();
  let cancelBounding: (() => void) | undefined;
  const boundLogs = (): void => {
    for (const { logFile, key } of held.values()) {
      boundProcessLog(logFile).catch((err: unknown) => log.warn({ err, key }, 'process log cannot be cut'));
    }
    cancelBounding = clock.after(BOUND_LOGS_MS, boundLogs);
  };
  const forget = (key: string, managed: ManagedProcess): void => {
    if (held.get(key) === managed) held.delete(key);
    if (held.size > 0) return;
    cancelBounding?.();
    cancelBounding = undefined;
  };
  const hold: Keeper['hold'] = (record, adopted, watch) => {
    const managed: ManagedProcess = createManagedProcess({
      record, logFile: records.logFile(record.key), adopted, clock, log, watch,
      onReleased: () => forget(record.key, managed),
      onEnded: async () => {
        await records.remove(record).catch((err: unknown) => log.warn({ err, key: record.key }, 'process record cannot be removed'));
        forget(record.key, managed);
      },
    });
    held.set(record.key, managed);
    cancelBounding ??= clock.after(BOUND_LOGS_MS, boundLogs);
    return managed;
  };
  const exclusively = <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const turn = (queues.get(key) ?? Promise.resolve()).then(work);
    const done = turn.catch(() => undefined).then(() => {
      if (queues.get(key) === done) queues.delete(key);
    });
    queues.set(key, done);
    return turn;
  };
  const releaseAll = (): void => {
    for (const managed of [...held.values()]) managed.release();
  };
  return { records, exitWatch: createExitWatch(clock), held, log, exclusively, hold, releaseAll };
}

async function start(spec: ProcessSpec, keeper: Keeper): Promise<ManagedProcess> {
  const { records, log } = keeper;
  const former = await records.read(spec.key);
  if (former !== undefined && (await isSameProcess(former))) {
    throw new Error(`process ${former.pid} is still running for ${spec.key}; it must end before another can start`);
  }
  const env = childEnvironment(spec.env);
  const cwd = spec.cwd ?? '/';
  const command = await findCommand(spec.command, env['PATH'] ?? '', cwd);
  await records.prepare();
  await mkdir(cwd, { recursive: true });
  const { handle, offset } = await openProcessLog(records.logFile(spec.key));
  try {
    const waiting = await launchWaiting({ command, args: spec.args, env, cwd, output: handle.fd });
    const record = await recordOrKill(spec, waiting, offset, records);
    const managed = keeper.hold(record, false, (onExit) => watchChild(waiting.child, onExit));
    await waiting.begin();
    log.debug({ key: spec.key, pid: record.pid, command }, 'process started');
    return managed;
  } finally {
    await handle.close();
  }
}

/** A process that no record names could never be adopted or stopped by a later daemon. */
async function recordOrKill(spec: ProcessSpec, waiting: WaitingProcess, logOffset: number, records: ProcessRecords): Promise<ProcessRecord> {
  try {
    const record: ProcessRecord = {
      version: 1, key: spec.key, ...waiting.identity, bootId: await bootId(),
      argumentCount: spec.args.length, argumentsHash: hashArguments(spec.args),
      fingerprint: spec.fingerprint, notes: spec.notes ?? {}, logOffset,
    };
    await records.write(record);
    return record;
  } catch (cause) {
    waiting.child.kill('SIGKILL');
    throw new Error(`the record of ${spec.key} cannot be written, so it was not started: ${(cause as Error).message}`, { cause });
  }
}

function watchChild(child: ChildProcess, onExit: Parameters<ManagedProcessParts['watch']>[0]): () => void {
  const listener = (code: number | null, signal: NodeJS.Signals | null): void => onExit({ code, signal });
  // It may have ended while its record was written.
  if (child.exitCode !== null || child.signalCode !== null) listener(child.exitCode, child.signalCode);
  else child.once('exit', listener);
  return () => {
    child.off('exit', listener);
    child.unref();
  };
}

async function adopt(key: string, keeper: Keeper): Promise<ManagedProcess | undefined> {
  const { records, log } = keeper;
  const held = keeper.held.get(key);
  if (held !== undefined) return held;
  const record = await records.read(key);
  if (record === undefined) return undefined;
  if (!(await isSameProcess(record))) {
    await records.remove(record);
    return undefined;
  }
  if (!(await runsRecordedCommand(record))) {
    log.warn({ key, pid: record.pid }, 'recorded process runs another command line; it is not adopted');
    return undefined;
  }
  return keeper.hold(record, true, (onExit) => keeper.exitWatch.add(record, () => onExit({ code: null, signal: null })));
}

async function isSameProcess(record: ProcessRecord): Promise<boolean> {
  return record.bootId === (await bootId()) && isRunning(record);
}

async function runsRecordedCommand(record: ProcessRecord): Promise<boolean> {
  const line = await commandLine(record.pid);
  if (line === undefined || line.length <= record.argumentCount) return false;
  const args = record.argumentCount === 0 ? [] : line.slice(-record.argumentCount);
  return hashArguments(args) === record.argumentsHash;
}
