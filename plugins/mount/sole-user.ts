import { readdirSync, readFileSync } from 'node:fs';

/** Processes that are looked at before others get their turn. */
const SLICE = 200;

/** The process that works on the cache folder already, whoever started it: two of them would lose each other's files. */
export async function userOfCache(cacheDir: string): Promise<number | undefined> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  for (let start = 0; start < pids.length; start += SLICE) {
    const found = pids.slice(start, start + SLICE).find((pid) => argumentsOf(pid).includes(`--cache-dir=${cacheDir}`));
    if (found !== undefined) return Number(found);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return undefined;
}

/** None of one that has ended. */
function argumentsOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
