/**
 * Long-lived children that survive a crash of the daemon: started in their own sessions with their output
 * in files, recorded, adopted by the next daemon, stopped with their whole session.
 */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type {
  Clock,
  FolderLock,
  Logger,
  ManagedProcess,
  Processes,
  ProcessSpec,
} from '../../contract/platform.ts';
import { isLockedNow } from '../state-lock.ts';
import { childEnvironment } from './environment.ts';
import type { Watched } from './exit-watch.ts';
import { findCommand } from './find-command.ts';
import type { ManagedProcessParts } from './managed-process.ts';
import { bootId, commandLine, isRunning } from './proc-stat.ts';
import { launchWaiting } from './launch.ts';
import type { WaitingProcess } from './launch.ts';
import { createProcessKeeper } from './registry.ts';
import type { ProcessKeeper } from './registry.ts';
import { openProcessLog } from './output-log.ts';
import { hashArguments } from './record.ts';
import type { ProcessRecord, ProcessRecords } from './record.ts';
import { droppingTo } from './rights.ts';
import { runShortCommand } from './short-command.ts';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
const OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

export interface ProcessesOptions {
  readonly stateDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createProcesses(options: ProcessesOptions): Processes & { releaseAll(): void } {
  const keeper = createProcessKeeper(options);
  return {
    start: (spec) => keeper.exclusively(spec.key, () => start(spec, keeper)),
    adopt: (key) => keeper.exclusively(key, () => adopt(key, keeper)),
    recorded: (prefix) => keeper.records.keys(prefix),
    run: (spec) => runShortCommand(spec, options.clock),
    releaseAll: () => keeper.releaseAll(),
  };
}

async function start(spec: ProcessSpec, keeper: ProcessKeeper): Promise<ManagedProcess> {
  const { records, log } = keeper;
  const former = await records.read(spec.key);
  if (former !== undefined && (await isSameProcess(former))) {
    throw new Error(
      `process ${former.pid} is still running for ${spec.key}; it must end before another can start`,
    );
  }
  const env = childEnvironment(spec.env);
  const cwd = spec.cwd ?? '/';
  const path = env['PATH'] ?? '';
  const program = await findCommand(spec.command, path, cwd);
  const [command, args] = spec.rights
    ? [await findCommand('setpriv', path), [...droppingTo(spec.rights), program, ...spec.args]]
    : [program, spec.args];
  await records.prepare();
  const { handle, offset } = await openProcessLog(records.logFile(spec.key));
  const opened: FileHandle[] = [];
  try {
    for (const folder of spec.folders ?? []) opened.push(await open(folder, OPEN_FOLDER));
    if (spec.lock) opened.push(await openLocked(spec.lock));
    const passed = opened.map(({ fd }) => fd);
    const waiting = await launchWaiting({ command, args, env, cwd, output: handle.fd, passed });
    const record = await recordOrKill(spec, waiting, offset, records);
    const managed = keeper.hold(record, false, (onExit) => watchChild(waiting.child, onExit));
    await waiting.begin();
    log.debug({ key: spec.key, pid: record.pid, command: program }, 'process started');
    return managed;
  } finally {
    await Promise.all([handle, ...opened].map((one) => one.close()));
  }
}

/** The process has it open for as long as it lives, and so the lock. */
async function openLocked({ folder, taken }: FolderLock): Promise<FileHandle> {
  const handle = await open(folder, OPEN_FOLDER);
  try {
    if (!(await isLockedNow(handle.fd))) throw new Error(taken);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** A process without a record could never be adopted or stopped by a later daemon. */
async function recordOrKill(
  spec: ProcessSpec,
  waiting: WaitingProcess,
  logOffset: number,
  records: ProcessRecords,
): Promise<ProcessRecord> {
  try {
    const record: ProcessRecord = {
      version: 1,
      key: spec.key,
      ...waiting.identity,
      bootId: await bootId(),
      argumentCount: spec.args.length,
      argumentsHash: hashArguments(spec.args),
      fingerprint: spec.fingerprint,
      notes: spec.notes ?? {},
      logOffset,
    };
    await records.write(record);
    return record;
  } catch (cause) {
    waiting.child.kill('SIGKILL');
    throw new Error(
      `the record of ${spec.key} cannot be written, so it was not started: ${(cause as Error).message}`,
      { cause },
    );
  }
}

function watchChild(child: ChildProcess, onExit: Parameters<ManagedProcessParts['watch']>[0]): Watched {
  const listener = (code: number | null, signal: NodeJS.Signals | null): void => onExit({ code, signal });
  // It may have ended while its record was being written.
  if (child.exitCode !== null || child.signalCode !== null) listener(child.exitCode, child.signalCode);
  else child.once('exit', listener);
  const cancel = (): void => {
    child.off('exit', listener);
    child.unref();
  };
  return { look: () => undefined, cancel };
}

async function adopt(key: string, keeper: ProcessKeeper): Promise<ManagedProcess | undefined> {
  const { records, log } = keeper;
  const held = keeper.processes.get(key);
  if (held?.isAlive() === true) return held;
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
  return keeper.hold(record, true, (onExit) =>
    keeper.exitWatch.add(record, () => onExit({ code: null, signal: null })),
  );
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
