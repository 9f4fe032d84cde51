import { join } from 'node:path';
import { filesBelow } from './cache-meta.ts';
import { asideFolders } from './cache-place.ts';
import { cachedShares, pendingIn } from './cache-scan.ts';
import { RECOVERED } from './recovered.ts';

export interface Notice { readonly level: 'warning'; readonly message: string }

/** Counted no further; what matters is that there are some. */
const MANY = 1_000;

/** What lies in the caches and goes nowhere by itself, a sentence each. */
export async function leftovers(cacheRoot: string): Promise<readonly Notice[]> {
  const notices = await Promise.all((await cachedShares(cacheRoot)).map(async (share) => {
    const cacheDir = join(cacheRoot, share);
    return [await recoveredNotice(share, cacheDir), ...(await Promise.all((await asideFolders(cacheDir)).map((folder) => asideNotice(share, folder))))];
  }));
  return notices.flat().filter((message) => message !== undefined).map((message) => ({ level: 'warning', message }));
}

async function recoveredNotice(share: string, cacheDir: string): Promise<string | undefined> {
  let count = 0;
  for await (const path of filesBelow(join(cacheDir, RECOVERED))) {
    if (path !== '') count += 1;
    if (count >= MANY) break;
  }
  if (count === 0) return undefined;
  return `${files(count)} of the share ${share} could not be assigned after a kill or an outage: compare what lies in ${join(cacheDir, RECOVERED)} with the share, and delete it there.`;
}

async function asideNotice(share: string, folder: string): Promise<string | undefined> {
  const { count } = await pendingIn(folder);
  if (count === 0) return undefined;
  return `${files(count)} of the share ${share} with changes for another NAS or path: what waits in ${folder} goes up when the share leads there again; deleting the folder gives it up.`;
}

function files(count: number): string {
  if (count >= MANY) return `${MANY} files or more`;
  return count === 1 ? 'One file' : `${count} files`;
}
