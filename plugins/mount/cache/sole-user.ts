import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { realFolder } from '../stats/open-files.ts';

const OPTION = '--cache-dir=';
/** Processes that are examined before the event loop gets its turn. */
const SLICE = 200;
const SET_USER_ID = 0o4000;

/**
 * The process id of a process that already uses the cache folder: two of them would lose each other's files. Of
 * root, the daemon's user or the folder's owner, that is: anybody may write the folder's name into a command line.
 */
export async function userOfCache(cacheDir: string, resolve = realFolder): Promise<number | undefined> {
  const users = usersOf(cacheDir);
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (let start = 0; start < pids.length; start += SLICE) {
    const found = pids
      .slice(start, start + SLICE)
      // First whose it is: the path that a stranger names may lead into a share whose NAS is silent.
      .find((pid) => isOfOneOf(pid, users) && isSame(cacheOf(pid), cacheDir, resolve));
    if (found !== undefined) return Number(found);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return undefined;
}

function usersOf(cacheDir: string): ReadonlySet<number> {
  const owner = attempt(() => statSync(cacheDir).uid);
  return new Set([0, process.geteuid?.() ?? 0, owner ?? 0]);
}

/**
 * By who started it. The owner of its folder in /proc is root where it only has made itself unreadable, and so is the
 * user of a program that anybody may run as root.
 */
function isOfOneOf(pid: string, users: ReadonlySet<number>): boolean {
  const status = attempt(() => readFileSync(`/proc/${pid}/status`, 'utf8'));
  const uid = /^Uid:\t(\d+)/m.exec(status ?? '')?.[1];
  if (uid === undefined || !users.has(Number(uid))) return false;
  // Last, for its program may lie in a share as well.
  const mode = attempt(() => statSync(`/proc/${pid}/exe`).mode) ?? 0;
  return (mode & SET_USER_ID) === 0;
}

function isSame(other: string | undefined, cacheDir: string, resolve: typeof realFolder): boolean {
  if (other === undefined || basename(other) !== basename(cacheDir)) return false;
  return other === cacheDir || resolve(other) === resolve(cacheDir);
}

/** Undefined for a process without a cache folder, or one that has ended. */
function cacheOf(pid: string): string | undefined {
  return attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    ?.split('\0')
    .find((one) => one.startsWith(OPTION))
    ?.slice(OPTION.length);
}

function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    // The process or the folder is gone, or another user's: none of this daemon's caches is its own.
    return undefined;
  }
}
