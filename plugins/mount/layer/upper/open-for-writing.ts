/** Finds files of a share that are open for writing, and folders in use, from `/proc`. Touches no mount. */
import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const ACCESS_MODES = 3;

export interface OpenFilesPlace {
  readonly mountPoint: string;
  readonly upper: string;
}

/**
 * Paths relative to the share. The kernel shows a file that is open in an unmounted overlay by its path
 * from the overlay's root, and it may also be a file of another mount with the same path. Such a false
 * match is harmless: the file only waits a little longer.
 */
export function openForWriting({ mountPoint, upper }: OpenFilesPlace, proc = '/proc'): ReadonlySet<string> {
  const found = new Set<string>();
  const below = `${mountPoint}/`;
  // Of the thousands of open files of a machine hardly any has such a name: the disk is asked about few.
  const names = new Set(namesIn(upper));
  const pathIn = (target: string): string | undefined => {
    if (target.startsWith(below)) return target.slice(below.length);
    return names.has(firstName(target)) && existsSync(join(upper, target)) ? target.slice(1) : undefined;
  };
  for (const pid of namesIn(proc)) {
    if (!isNumber(pid)) continue;
    const ofProcess = `${proc}/${pid}`;
    for (const fd of namesIn(`${ofProcess}/fd`)) {
      const target = targetOf(`${ofProcess}/fd/${fd}`);
      const path = target && pathIn(target);
      if (path !== undefined && !found.has(path) && isWriter(`${ofProcess}/fdinfo/${fd}`)) found.add(path);
    }
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
  for (const pid of namesIn(proc)) {
    if (!isNumber(pid)) continue;
    const ofProcess = `${proc}/${pid}`;
    const links = ['cwd', 'root', 'exe', ...namesIn(`${ofProcess}/fd`).map((fd) => `fd/${fd}`)];
    for (const link of links) {
      const target = targetOf(`${ofProcess}/${link}`);
      if (target !== undefined) yield target;
    }
    for (const line of mapsOf(`${ofProcess}/maps`, mountPoint))
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

function isNumber(name: string): boolean {
  return /^\d+$/.test(name);
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

function isWriter(info: string): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(info, 'utf8'))?.[1];
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
