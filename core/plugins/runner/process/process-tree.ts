/**
 * The processes of a runner: all of its session, and what they have started, also where that has made a
 * session of its own; with a user of its own all of its group, whatever they have done to get away.
 */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { readProcStat } from '../../../platform/processes/proc-stat.ts';
import type { ProcessIdentity } from '../../../platform/processes/proc-stat.ts';

export interface Seen extends ProcessIdentity {
  readonly parent: number;
  readonly session: number;
  /** As `ps` shows it: `T` is stopped by a signal. */
  readonly state: string;
  /** Of the processor, its own and that of its children that have ended. */
  readonly busyMs: number;
}

/** Linux tells all programs of a hundred in a second. */
const TICK_MS = 10;

/** One look serves all runners that ask at about the same time. */
const FRESH_MS = 500;
/** Looked at in one turn: about a millisecond, in which nothing else runs. */
const AT_ONCE = 50;
let last: { readonly atMs: number; readonly seen: readonly Seen[] } | undefined;
let coming: Promise<readonly Seen[]> | undefined;
let running: Promise<readonly Seen[]> | undefined;

async function seenNow(): Promise<readonly Seen[]> {
  if (last && performance.now() - last.atMs <= FRESH_MS) return last.seen;
  return freshLook();
}

/** One after the other, each in turns of its own: where many plugins end at the same time, one look serves them all. */
function freshLook(): Promise<readonly Seen[]> {
  coming ??= (async () => {
    await (running ?? nextTurn());
    coming = undefined;
    running = look();
    return running;
  })();
  return coming;
}

async function look(): Promise<readonly Seen[]> {
  const atMs = performance.now();
  const seen = (await inTurns(namesInProc(), seenAs)).flat();
  if (groups.size > 2 * seen.length) groups.clear();
  last = { atMs, seen };
  running = undefined;
  return seen;
}

function seenAs(name: string): readonly Seen[] {
  const pid = Number(name);
  const stat = Number.isInteger(pid) ? readProcStat(pid) : undefined;
  if (!stat || stat.state === 'Z' || stat.state === 'X') return [];
  const { parent, session, state, startTicks, busyTicks } = stat;
  return [{ pid, parent, session, state, startTicks, busyMs: busyTicks * TICK_MS }];
}

/** A machine may run thousands of processes: others have their turn between. */
async function inTurns<T, V>(all: readonly T[], work: (one: T) => V): Promise<readonly V[]> {
  const done: V[] = [];
  for (let at = 0; at < all.length; at += AT_ONCE) {
    if (at > 0) await nextTurn();
    done.push(...all.slice(at, at + AT_ONCE).map(work));
  }
  return done;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

function namesInProc(): readonly string[] {
  try {
    return readdirSync('/proc');
  } catch {
    // The daemon can open no more files: it sees nothing then, and goes on.
    return [];
  }
}

export interface Root {
  /** The process that leads the session. */
  readonly leader: number;
  /** Whom no other process has and none of them can leave, where there is one. */
  readonly group?: number | undefined;
}

/** Living processes below `leader`, itself among them. `isFresh`: not as they were half a second ago. */
export async function processTree(root: Root, isFresh = false): Promise<readonly Seen[]> {
  return treeIn(await (isFresh ? freshLook() : seenNow()), root);
}

async function treeIn(seen: readonly Seen[], { leader, group }: Root): Promise<readonly Seen[]> {
  const isOfGroup = (one: Seen): boolean => group !== undefined && groupOf(one) === group;
  const first = await inTurns(seen, (one) => (one.session === leader || isOfGroup(one) ? [one.pid] : []));
  const known = new Set(first.flat());
  for (let size = -1; size !== known.size;) {
    size = known.size;
    for (const { pid, parent } of seen) if (known.has(parent)) known.add(pid);
  }
  return seen.filter(({ pid }) => known.has(pid));
}

/** Of processes that were seen: to be read once of each, since reading takes as long as the rest of a look. */
const groups = new Map<number, { readonly startTicks: string; readonly group: number | undefined }>();

/** The real one. The owner of its folder in /proc would be root's for a process that hides itself. */
function groupOf({ pid, startTicks }: ProcessIdentity): number | undefined {
  const known = groups.get(pid);
  if (known?.startTicks === startTicks) return known.group;
  const group = Number(/^Gid:\s+(\d+)/m.exec(statusOf(pid))?.[1] ?? NaN);
  groups.set(pid, { startTicks, group });
  return group;
}

/** Empty for one that has ended since it was seen. */
function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1');
  } catch {
    // It has ended, or cannot be read: then it is told by its session and its parents.
    return '';
  }
}

/** Memory that is the processes' own, in bytes: resident or swapped out, without files. */
export function memoryOf(processes: readonly ProcessIdentity[]): number {
  return processes.reduce((sum, { pid }) => sum + ownMemoryIn(statusOf(pid)), 0);
}

/** By what /proc/PID/status says. What processes share by /dev/shm, where all may write, counts for each. */
export function ownMemoryIn(status: string): number {
  const fields = new Map([...status.matchAll(/^(\w+):\s+(\d+) kB$/gm)].map(([, name, kib]) => [name, kib]));
  const bytesOf = (name: string): number | undefined => {
    const kib = fields.get(name);
    return kib === undefined ? undefined : Number(kib) * 1_024;
  };
  const anonymous = bytesOf('RssAnon');
  const resident = anonymous === undefined ? bytesOf('VmRSS') : anonymous + (bytesOf('RssShmem') ?? 0);
  return (resident ?? 0) + (bytesOf('VmSwap') ?? 0);
}

/**
 * What is left of a leader that has ended: living processes below it or of its group, and those that have this in
 * their environment, `NAME=value`, whoever their parent is by now. Of processes older than `sinceTicks` the
 * environment is not looked at: that of one that hangs on a dead mount may not be readable.
 */
export async function leftBy(
  root: Root,
  variable: string,
  sinceTicks: string,
): Promise<readonly ProcessIdentity[]> {
  // One look at all processes of the machine serves both.
  const seen = await freshLook();
  const young = seen.filter(({ startTicks }) => Number(startTicks) >= Number(sinceTicks));
  const marked = await inTurns(young, (one) => (hasVariable(one.pid, variable) ? [one] : []));
  return [...(await treeIn(seen, root)), ...marked.flat()];
}

function hasVariable(pid: number, variable: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(variable);
  } catch {
    // It is another user's, or has ended.
    return false;
  }
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

/** SIGKILL to the leader's group. Only while the leader, or one of its group, is known to be there. */
export function killGroup(leader: number): void {
  kill(-leader);
}

/** SIGKILL to each that still is the same process. */
export function killAll(processes: readonly ProcessIdentity[]): void {
  for (const { pid, startTicks } of processes) if (readProcStat(pid)?.startTicks === startTicks) kill(pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone.
  }
}
