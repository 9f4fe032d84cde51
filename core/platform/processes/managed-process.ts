/**
 * One long-lived process, started or adopted: its state, its signals, its end. A signal is sent only while
 * the process id still belongs to the recorded process.
 */
import type { Clock, Logger, ManagedProcess, ProcessExit } from '../../contract/platform.ts';
import { endsWithin, timeBoxOr } from '../deadline.ts';
import { isRunning, readProcStat, sessionMembers, stateOf } from './proc-stat.ts';
import type { Watched } from './exit-watch.ts';
import { tailProcessLog } from './output-log.ts';
import type { ProcessRecord } from './record.ts';

/** How long to wait after SIGKILL for a process that is stuck in the kernel. */
const AFTER_KILL_MS = 5_000;
const LOOK_MS = 50;
/** The end of a process is noticed within this time. */
const NOTICE_MS = 1_000;
const LAST_LINES = 20;

export type RawExit = Pick<ProcessExit, 'code' | 'signal'>;

export interface ManagedProcessParts {
  readonly record: ProcessRecord;
  readonly logFile: string;
  readonly adopted: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Calls back once when the process has ended, until it is cancelled. */
  readonly watch: (onExit: (exit: RawExit) => void) => Watched;
  /** Called before `exited` settles: removes the record. */
  readonly onEnded: () => Promise<void>;
  readonly onReleased: () => void;
}

export function createManagedProcess(parts: ManagedProcessParts): ManagedProcess {
  const { record, logFile, clock } = parts;
  const tail = (lines: number): Promise<readonly string[]> =>
    tailProcessLog(logFile, record.logOffset, lines);
  let watched: Watched | undefined;
  const exited = new Promise<ProcessExit>((resolve) => {
    watched = parts.watch((exit) => {
      void Promise.all([tail(LAST_LINES), parts.onEnded()]).then(([lastLines]) =>
        resolve({ ...exit, lastLines }),
      );
    });
  });
  return {
    key: record.key,
    pid: record.pid,
    fingerprint: record.fingerprint,
    notes: record.notes,
    adopted: parts.adopted,
    logFile,
    exited,
    isAlive: () => isRunning(record),
    state: () => stateOf(record),
    signal: (name) => sendSignal(record, name),
    tail,
    stop: ({ graceMs }) =>
      stopProcess({ record, exited, clock, log: parts.log, tail, look: () => watched?.look() }, graceMs),
    release: () => {
      watched?.cancel();
      parts.onReleased();
    },
  };
}

interface Stopping {
  readonly record: ProcessRecord;
  readonly exited: Promise<ProcessExit>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly tail: (lines: number) => Promise<readonly string[]>;
  /** Checks now whether the process has ended. */
  readonly look: () => void;
}

async function stopProcess(stopping: Stopping, graceMs: number): Promise<ProcessExit> {
  const { record, exited, clock, log } = stopping;
  const started = clock.monotonic();
  if (graceMs > 0) {
    sendSignal(record, 'SIGTERM');
    // A stopped process cannot handle the signal until it continues.
    if (['T', 't'].includes(stateOf(record) ?? '')) sendSignal(record, 'SIGCONT');
    const exit = await timeBoxOr(clock, graceMs, exited, () => undefined);
    if (exit !== undefined) {
      await sweepSession(stopping, Math.max(0, graceMs - (clock.monotonic() - started)));
      return exit;
    }
  }
  killSession(record);
  const end = clock.monotonic() + AFTER_KILL_MS;
  while (isRunning(record) && clock.monotonic() < end) await endsWithin(clock, LOOK_MS, exited);
  stopping.look();
  if (isRunning(record)) {
    log.warn(
      { key: record.key, pid: record.pid, state: stateOf(record) },
      'process does not end although it was killed; it is stuck in the kernel',
    );
  }
  // Unsettled for a process that is stuck or was released.
  const exit = isRunning(record) ? undefined : await timeBoxOr(clock, NOTICE_MS, exited, () => undefined);
  return exit ?? { code: null, signal: null, lastLines: await stopping.tail(LAST_LINES) };
}

/** Children of the process may outlive it for the rest of the grace period. */
async function sweepSession({ record, clock }: Stopping, graceMs: number): Promise<void> {
  const end = clock.monotonic() + graceMs;
  // Checking the process group is cheap and mostly enough; finding members of a session means reading every
  // process.
  while (hasGroup(record.pid) && leftovers(record).length > 0) {
    if (clock.monotonic() >= end) return killSession(record);
    await clock.sleep(LOOK_MS);
  }
}

/** Empty when the leader's process id was reused by now: then the session is another one's, too. */
function leftovers(record: ProcessRecord): number[] {
  const leader = readProcStat(record.pid);
  const isOurs = leader === undefined || leader.startTicks === record.startTicks;
  return isOurs ? sessionMembers(record.pid) : [];
}

function killSession(record: ProcessRecord): void {
  const members = leftovers(record);
  // The group first and at once, before a member forks; then the members that have left the group.
  if (members.length > 0) send(-record.pid, 'SIGKILL');
  for (const pid of members) send(pid, 'SIGKILL');
}

function hasGroup(leaderPid: number): boolean {
  try {
    process.kill(-leaderPid, 0);
    return true;
  } catch {
    // ESRCH: nobody is left in the group.
    return false;
  }
}

function sendSignal(record: ProcessRecord, name: NodeJS.Signals): void {
  if (isRunning(record)) send(record.pid, name);
}

function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It may end at any moment.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
