/** Finds files of a share that are open for writing, and folders in use, from `/proc`. Touches no mount. */
import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from 'mountkeeper';

const ACCESS_MODES = 3;

export interface OpenFilesPlace {
  readonly mountPoint: string;
  readonly upper: string;
}

interface OpenFile {
  /** Absolute, as the process sees it. */
  readonly target: string;
  /** Folder of the process in `/proc`, and the number of its handle. */
  readonly process: string;
  readonly fd: string;
}

/** In an outage each share asks every second: with twenty of them that would be one look after the other. */
const SHARED_MS = 250;
const PROCESSES_IN_ONE_GO = 16;

interface Look {
  readonly proc: string;
  readonly clock: Clock;
  readonly atMs: number;
  readonly files: Promise<readonly OpenFile[]>;
}

let shared: Look | undefined;

/**
 * Paths relative to the share. The kernel shows a file that is open in an unmounted overlay by its path
 * from the overlay's root, and it may also be a file of another mount with the same path. Such a false
 * match is harmless: the file only waits a little longer.
 */
export function openForWriting(place: OpenFilesPlace, proc = '/proc'): ReadonlySet<string> {
  return writtenIn(place, openFiles(processesIn(proc)));
}

/**
 * The same by one look for all shares that ask within 250 ms. A file that was opened since may be missing, as one
 * that is opened right after the answer.
 */
export async function recentlyOpenForWriting(
  place: OpenFilesPlace,
  clock: Clock,
  proc = '/proc',
): Promise<ReadonlySet<string>> {
  const now = clock.monotonic();
  if (shared?.proc !== proc || shared.clock !== clock || now - shared.atMs > SHARED_MS)
    shared = { proc, clock, atMs: now, files: openFilesInTurns(proc) };
  return writtenIn(place, await shared.files);
}

/** Others have their turn meanwhile: a machine with many open files takes a tenth of a second. */
async function openFilesInTurns(proc: string): Promise<readonly OpenFile[]> {
  const processes = processesIn(proc);
  const found: OpenFile[] = [];
  for (let first = 0; first < processes.length; first += PROCESSES_IN_ONE_GO) {
    found.push(...openFiles(processes.slice(first, first + PROCESSES_IN_ONE_GO)));
    await new Promise((resolve) => void setImmediate(resolve));
  }
  return found;
}

function processesIn(proc: string): readonly string[] {
  return namesIn(proc)
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => `${proc}/${pid}`);
}

function openFiles(processes: readonly string[]): readonly OpenFile[] {
  const found: OpenFile[] = [];
  for (const process of processes) {
    for (const fd of namesIn(`${process}/fd`)) {
      const target = targetOf(`${process}/fd/${fd}`);
      if (target !== undefined) found.push({ target, process, fd });
    }
  }
  return found;
}

function writtenIn({ mountPoint, upper }: OpenFilesPlace, files: readonly OpenFile[]): ReadonlySet<string> {
  const found = new Set<string>();
  const below = `${mountPoint}/`;
  // Of the thousands of open files of a machine hardly any has such a name: the disk is asked about few.
  const names = new Set(namesIn(upper));
  const pathIn = (target: string): string | undefined => {
    if (target.startsWith(below)) return target.slice(below.length);
    return names.has(firstName(target)) && existsSync(join(upper, target)) ? target.slice(1) : undefined;
  };
  for (const file of files) {
    const path = pathIn(file.target);
    if (path !== undefined && !found.has(path) && isWriter(file)) found.add(path);
  }
  return found;
}

/** Folders that are open or somebody's working directory, folders of open files, and all their parents. */
export function foldersInUse(mountPoint: string, proc = '/proc'): ReadonlySet<string> {
  const found = new Set<string>();
  for (const path of usedPaths(mountPoint, proc)) {
    const names = path.split('/');
    // This adds the file's own path, too, which is harmless.
    for (let length = 1; length <= names.length; length += 1) found.add(names.slice(0, length).join('/'));
  }
  return found;
}

/** Paths that are open in any way, somebody's working directory, executed, or mapped into memory. */
export function usedPaths(mountPoint: string, proc = '/proc'): ReadonlySet<string> {
  const found = new Set<string>();
  for (const target of usedTargets(mountPoint, proc))
    if (target.startsWith(`${mountPoint}/`)) found.add(target.slice(mountPoint.length + 1));
  return found;
}

/** Whether somebody stands in the root of a mount or has it open, as NFS-Ganesha has while it exports it. */
export function isRootInUse(mountPoint: string, proc = '/proc'): boolean {
  for (const target of usedTargets(mountPoint, proc)) if (target === mountPoint) return true;
  return false;
}

/** Of all processes; files in memory only of this mount. */
function* usedTargets(mountPoint: string, proc: string): Generator<string> {
  for (const process of processesIn(proc)) {
    const links = ['cwd', 'root', 'exe', ...namesIn(`${process}/fd`).map((fd) => `fd/${fd}`)];
    for (const link of links) {
      const target = targetOf(`${process}/${link}`);
      if (target !== undefined) yield target;
    }
    for (const line of mapsOf(`${process}/maps`, mountPoint))
      yield line.slice(line.indexOf('/')).replace(/ \(deleted\)$/, '');
  }
}

function mapsOf(file: string, mountPoint: string): readonly string[] {
  try {
    const text = readFileSync(file, 'utf8');
    return text.includes(mountPoint) ? text.split('\n').filter((line) => line.includes(mountPoint)) : [];
  } catch {
    // The process has ended.
    return [];
  }
}

function firstName(path: string): string {
  const end = path.indexOf('/', 1);
  return end === -1 ? path.slice(1) : path.slice(1, end);
}

function targetOf(link: string): string | undefined {
  try {
    const target = readlinkSync(link);
    return target.startsWith('/') ? target.replace(/ \(deleted\)$/, '') : undefined;
  } catch {
    // Closed meanwhile, or the process has ended.
    return undefined;
  }
}

function isWriter({ target, process, fd }: OpenFile): boolean {
  // Somebody else's file may have the number by now.
  if (targetOf(`${process}/fd/${fd}`) !== target) return false;
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`${process}/fdinfo/${fd}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & ACCESS_MODES) !== 0;
  } catch {
    // Closed, or its process is gone.
    return false;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // The process is gone.
    return [];
  }
}
