import { join } from 'node:path';
import { filesBelow } from '../cache/metadata.ts';
import { asideFolders } from '../cache/identity.ts';
import { cachedShares, pendingIn } from '../cache/scan.ts';
import { RECOVERED } from './recovered.ts';

export interface Notice {
  readonly level: 'warning';
  readonly message: string;
}

/** Counting stops here; what matters is that there are some. */
const MANY = 1_000;

/**
 * Files in the caches that are not uploaded automatically, one sentence per place. `formerRoots`: where
 * `cache.dir` pointed before.
 */
export async function recoveryReport(
  cacheRoot: string,
  ...formerRoots: readonly string[]
): Promise<readonly Notice[]> {
  const messages = await Promise.all([
    inRoot(cacheRoot),
    ...formerRoots.map((root) => inRoot(root, formerNotice)),
  ]);
  return messages.flat().map((message) => ({ level: 'warning', message }));
}

async function inRoot(
  root: string,
  ofShare: (share: string, cacheDir: string) => Promise<string | undefined> = () =>
    Promise.resolve(undefined),
): Promise<readonly string[]> {
  const messages = await Promise.all(
    (await cachedShares(root)).map(async (share) => {
      const cacheDir = join(root, share);
      const aside = await Promise.all(
        (await asideFolders(cacheDir)).map((folder) => asideNotice(share, folder)),
      );
      return [await ofShare(share, cacheDir), await recoveredNotice(share, cacheDir), ...aside];
    }),
  );
  return messages.flat().filter((message) => message !== undefined);
}

async function formerNotice(share: string, cacheDir: string): Promise<string | undefined> {
  const { count } = await pendingIn(cacheDir);
  if (count === 0) return undefined;
  return (
    `${files(count)} of the share ${share} with changes wait in ${cacheDir}, a folder of a former ` +
    'cache.dir: they go up once cache.dir leads there again.'
  );
}

async function recoveredNotice(share: string, cacheDir: string): Promise<string | undefined> {
  let count = 0;
  for await (const path of filesBelow(join(cacheDir, RECOVERED))) {
    if (path !== '') count += 1;
    if (count >= MANY) break;
  }
  if (count === 0) return undefined;
  return (
    `${files(count)} of the share ${share} could not be assigned after a kill, an outage or a power ` +
    `cut: compare what lies in ${join(cacheDir, RECOVERED)} with the share, and delete it there.`
  );
}

async function asideNotice(share: string, folder: string): Promise<string | undefined> {
  const { count } = await pendingIn(folder);
  if (count === 0) return undefined;
  return (
    `${files(count)} of the share ${share} with changes for another NAS or path: ` +
    `what waits in ${folder} goes up when the share leads there again; ` +
    'deleting the folder gives it up.'
  );
}

function files(count: number): string {
  if (count >= MANY) return `${MANY} files or more`;
  return count === 1 ? 'One file' : `${count} files`;
}
