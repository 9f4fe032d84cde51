/**
 * The way to a cache. Whoever may rename a folder on it can put links in the cache's place, and have a share that is
 * written to as root show any folder of this machine.
 */
import { refuseForeignWay } from 'mountkeeper';

/** Rejects with a sentence that says whose the folder is, and what to do. */
export async function refuseForeignCache(cacheDir: string): Promise<void> {
  await refuseForeignWay(
    cacheDir,
    `the daemon would follow as root wherever the cache ${cacheDir} leads: choose a cache.dir below folders that ` +
      'belong to root and that nobody else can write, or mend these with chown and chmod',
  );
}
