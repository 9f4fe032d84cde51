import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { realFolder } from '../stats/open-files.ts';

const OPTION = '--cache-dir=';
/** Processes that are examined before the event loop gets its turn. */
const SLICE = 200;

/**
 * The process id of a process that already uses the cache folder, whoever started it: two of them would
 * lose each other's files.
 */
export async function userOfCache(cacheDir: string): Promise<number | undefined> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (let start = 0; start < pids.length; start += SLICE) {
    const found = pids.slice(start, start + SLICE).find((pid) => isSame(cacheOf(pid), cacheDir));
    if (found !== undefined) return Number(found);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return undefined;
}

function isSame(other: string | undefined, cacheDir: string): boolean {
  if (other === undefined || basename(other) !== basename(cacheDir)) return false;
  return other === cacheDir || realFolder(other) === realFolder(cacheDir);
}

/** Undefined for a process without a cache folder, or one that has ended. */
function cacheOf(pid: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      .split('\0')
      .find((one) => one.startsWith(OPTION))
      ?.slice(OPTION.length);
  } catch {
    // The process is gone, or another user's: none of this daemon's caches is its own.
    return undefined;
  }
}
