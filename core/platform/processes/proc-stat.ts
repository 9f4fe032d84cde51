/**
 * What the kernel reports about one process. Process ids are reused, so a process is the same one only when
 * its start time is equal, too.
 */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

export interface ProcStat {
  /** `R S D T t Z X I`… */
  readonly state: string;
  readonly parent: number;
  readonly session: number;
  readonly group: number;
  readonly threads: number;
  /** Clock ticks since the machine's start. */
  readonly startTicks: string;
  /** Of the processor, in clock ticks: its own and that of its children that have ended. */
  readonly busyTicks: number;
}

/** Names one process for as long as the machine runs. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
}

const GONE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ESRCH']);
/** Longer than the kernel's line. One for all: who reads a file as a whole makes a new one of 64 KiB each time. */
const line = Buffer.alloc(4_096);

/** Undefined for a process that is gone, or cannot be looked at. */
export function readProcStat(pid: number): ProcStat | undefined {
  try {
    return statOf(pid);
  } catch {
    // Nobody knows.
    return undefined;
  }
}

/**
 * Undefined for a process that is gone; throws where that is not known, as without a free descriptor. At a third of
 * what it costs to read a file as a whole: some look at every process of the machine.
 */
function statOf(pid: number): ProcStat | undefined {
  let file: number | undefined;
  try {
    file = openSync(`/proc/${pid}/stat`, 'r');
    return parseProcStat(line.toString('latin1', 0, readSync(file, line)));
  } catch (error) {
    if (GONE.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** The name in brackets may hold blanks and brackets itself; the fields begin after the last one. */
export function parseProcStat(text: string): ProcStat | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, parent, group, session] = fields;
  const threads = fields[17];
  const startTicks = fields[19];
  if (state === undefined || threads === undefined || startTicks === undefined) return undefined;
  return {
    state,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    threads: Number(threads),
    startTicks,
    busyTicks: fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0),
  };
}

/**
 * The state letter of exactly this process; undefined when it has ended or its id belongs to another
 * process.
 */
export function stateOf(identity: ProcessIdentity): string | undefined {
  const stat = readProcStat(identity.pid);
  return stat?.startTicks === identity.startTicks ? stat.state : undefined;
}

/**
 * A zombie has ended, unless some of its threads still run (its first thread may end before them, or be
 * stuck in the kernel).
 */
export function isRunning(identity: ProcessIdentity): boolean {
  let stat: ProcStat | undefined;
  try {
    stat = statOf(identity.pid);
  } catch {
    // Whoever hears that it has ended buries it for good.
    return true;
  }
  if (stat?.startTicks !== identity.startTicks || stat.state === 'X') return false;
  return stat.state !== 'Z' || stat.threads > 1;
}

/** Living members of a session or process group, zombies left out. */
export function sessionMembers(leaderPid: number): number[] {
  const members: number[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = readProcStat(pid);
    if (stat === undefined || stat.state === 'Z' || stat.state === 'X') continue;
    if (stat.session === leaderPid || stat.group === leaderPid) members.push(pid);
  }
  return members;
}

export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim();
}

/** The command line as the kernel holds it, or undefined when the process is gone. */
export async function commandLine(pid: number): Promise<readonly string[] | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8');
    return text === '' ? [] : text.replace(/\0$/, '').split('\0');
  } catch {
    // The process is gone.
    return undefined;
  }
}
