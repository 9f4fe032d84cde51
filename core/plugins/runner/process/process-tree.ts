/**
 * The processes of a runner: all of its session, and what they have started, also where that has made a
 * session of its own.
 */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { readProcStat } from '../../../platform/processes/proc-stat.ts';
import type { ProcessIdentity } from '../../../platform/processes/proc-stat.ts';

export interface Seen extends ProcessIdentity {
  readonly parent: number;
  readonly session: number;
  /** Of the processor, its own and that of its children that have ended. */
  readonly busyMs: number;
}

/** Linux tells all programs of a hundred in a second. */
const TICK_MS = 10;

/** One look serves all runners that ask at about the same time. */
const FRESH_MS = 500;
let last: { readonly atMs: number; readonly seen: readonly Seen[] } | undefined;

function seenNow(): readonly Seen[] {
  const nowMs = performance.now();
  if (!last || nowMs - last.atMs > FRESH_MS) last = { atMs: nowMs, seen: look() };
  return last.seen;
}

function look(): readonly Seen[] {
  return namesInProc().flatMap((name) => {
    const pid = Number(name);
    const stat = Number.isInteger(pid) ? readProcStat(pid) : undefined;
    if (!stat || stat.state === 'Z' || stat.state === 'X') return [];
    const { parent, session, startTicks, busyTicks } = stat;
    return [{ pid, parent, session, startTicks, busyMs: busyTicks * TICK_MS }];
  });
}

function namesInProc(): readonly string[] {
  try {
    return readdirSync('/proc');
  } catch {
    // The daemon can open no more files: it sees nothing then, and goes on.
    return [];
  }
}

/** Living processes below `leader`, itself among them. `isFresh`: not as they were half a second ago. */
export function processTree(leader: number, isFresh = false): readonly Seen[] {
  if (isFresh) last = undefined;
  return treeIn(seenNow(), leader);
}

function treeIn(seen: readonly Seen[], leader: number): readonly Seen[] {
  const known = new Set(seen.filter((one) => one.session === leader).map(({ pid }) => pid));
  for (let size = -1; size !== known.size;) {
    size = known.size;
    for (const { pid, parent } of seen) if (known.has(parent)) known.add(pid);
  }
  return seen.filter(({ pid }) => known.has(pid));
}

/** Memory that is the processes' own, in bytes: resident, without files and what they share. */
export function memoryOf(processes: readonly ProcessIdentity[]): number {
  return processes.reduce((sum, { pid }) => sum + ownMemory(pid), 0);
}

function ownMemory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const kib = /^RssAnon:\s+(\d+) kB/m.exec(status)?.[1] ?? /^VmRSS:\s+(\d+) kB/m.exec(status)?.[1];
    return Number(kib ?? 0) * 1_024;
  } catch {
    // It has ended since it was seen.
    return 0;
  }
}

/**
 * What is left of a leader that has ended: living processes below it, and those that have this in their environment,
 * `NAME=value`, whoever their parent is by now. Of processes older than `sinceTicks` the environment is not looked at:
 * that of one that hangs on a dead mount may not be readable.
 */
export function leftBy(leader: number, variable: string, sinceTicks: string): readonly ProcessIdentity[] {
  // One look at all processes of the machine serves both.
  const seen = look();
  return [...treeIn(seen, leader), ...markedIn(seen, variable, sinceTicks)];
}

function markedIn(seen: readonly Seen[], variable: string, sinceTicks: string): readonly ProcessIdentity[] {
  return seen.filter(({ pid, startTicks }) => {
    if (Number(startTicks) < Number(sinceTicks)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(variable);
    } catch {
      // It is another user's, or has ended.
      return false;
    }
  });
}

/** Whether the kernel gives the process another network than the daemon's. False where that cannot be read. */
export function hasOwnNetwork(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`) !== readlinkSync('/proc/self/ns/net');
  } catch {
    // Who cannot be looked at is not known to be kept apart.
    return false;
  }
}

/** SIGKILL to the leader's group, and to each of these that still is the same process. */
export function killTree(leader: number, processes: readonly ProcessIdentity[]): void {
  kill(-leader);
  for (const { pid, startTicks } of processes) if (readProcStat(pid)?.startTicks === startTicks) kill(pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone.
  }
}
