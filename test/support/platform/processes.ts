/**
 * Processes of the machine as the kernel shows them; a process is meant by its id and start time together.
 */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { readdirSync, readFileSync } from 'node:fs';

export interface SeenProcess {
  readonly pid: number;
  readonly startTime: string;
  readonly command: string;
  readonly args: readonly string[];
}

function startTimeOf(stat: string): string {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

async function seen(pid: number): Promise<SeenProcess | undefined> {
  try {
    const [stat, cmdline] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
    ]);
    if (/^\d+ \(.*\) [ZX]/s.test(stat)) return undefined;
    const args = cmdline.split('\0').slice(0, -1);
    return { pid, startTime: startTimeOf(stat), command: args.join(' '), args };
  } catch {
    return undefined;
  }
}

/** Oldest first: a server comes before the children that it forked with its own arguments. */
export async function allProcesses(): Promise<SeenProcess[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const all = await Promise.all(pids.map(seen));
  return all
    .filter((one) => one !== undefined)
    .sort((a, b) => Number(a.startTime) - Number(b.startTime) || a.pid - b.pid);
}

/** Living processes, this one apart, whose command line, environment or working folder names the path. */
export async function processesNaming(path: string): Promise<SeenProcess[]> {
  const found: SeenProcess[] = [];
  for (const process of await allProcesses()) {
    if (process.pid === globalThis.process.pid) continue;
    if (process.command.includes(path) || (await environmentNames(process.pid, path))) found.push(process);
  }
  return found;
}

async function environmentNames(pid: number, path: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
  if (environment.includes(`${path}/`) || environment.includes(`${path}\0`)) return true;
  return (await readlink(`/proc/${pid}/cwd`).catch(() => '')).startsWith(path);
}

/** Signals the very process that was seen, not another one that got its number since. */
export function signalProcess(target: SeenProcess, signal: NodeJS.Signals): void {
  try {
    if (startTimeOf(readFileSync(`/proc/${target.pid}/stat`, 'utf8')) === target.startTime)
      process.kill(target.pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

/** The rclone process that serves a mount point. */
export async function rcloneOf(mountPoint: string): Promise<SeenProcess | undefined> {
  const all = await allProcesses();
  return all.find(
    (one) =>
      one.args.some((arg) => arg === 'mount' || arg === 'mount2') &&
      one.args.includes(mountPoint) &&
      /rclone[^/]*$/.test(one.args[0] ?? ''),
  );
}

/** False for a zombie, too. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Number of open file descriptors. Throws when the process is gone. */
export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Processor time spent, in milliseconds, own and of waited-for children. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/**
 * Processor time that the threads living now have spent, in milliseconds, by the scheduler's own clock: ticks
 * are too coarse for a process that idles.
 */
export function threadsCpuMs(pid: number): number {
  const spent = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return spent.reduce((sum, ns) => sum + ns, 0) / 1e6;
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
}
