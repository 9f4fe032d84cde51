import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Logger } from 'mountkeeper';
import { filesBelow, readMeta, writeMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import { isExact } from '../cache/ranges.ts';
import { hold } from './quarantine.ts';
import { recoveredPath } from './recovered.ts';

const GUARD = 'guarded';
export const KEPT_ASIDE =
  'rclone gave up a changed file; its changes are kept aside, what was never fetched reads as zeros';

/** There while the NAS is known to be away. */
export function awayFile(cacheDir: string): string {
  return join(cacheDir, GUARD, 'away');
}

/** Of the second name and the record that keep a file. */
export function namesOf(cacheDir: string, path: string): { readonly content: string; readonly meta: string } {
  return { content: join(cacheDir, GUARD, 'data', path), meta: join(cacheDir, GUARD, 'meta', path) };
}

/**
 * `photos/a.raw(0xc00028ff40): RWFileHandle.Release error: vfs cache: failed to download missing parts of
 * cache file`
 */
export function isStuck(lines: readonly string[], path: string): boolean {
  return lines.some((line) => {
    const isEnd = line.includes('failed to download missing parts') || line.includes("didn't Close file");
    const named = isEnd ? /(?:ERROR|INFO)\s*: (.+?)(?:\(0x[0-9a-f]+\))?: /.exec(line)?.[1] : undefined;
    return named !== undefined && (path === named || path.endsWith(`/${named}`));
  });
}

interface Keeping {
  readonly cacheDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * False when its record is lost: then nobody can tell its zeros from holes, and a person has to look at it.
 */
export async function keepFailedWriteBack(path: string, { cacheDir, clock, log }: Keeping): Promise<boolean> {
  const { content, meta } = namesOf(cacheDir, path);
  const record = await readMeta(meta);
  if (record !== undefined && record !== 'torn') {
    await hold(cacheDir, path, { content, meta });
    log.warn({ path }, 'rclone gave up a changed file; its changes are held and go up when the NAS is back');
    return true;
  }
  const kept = await recoveredPath(path, { cacheDir, clock });
  await rename(content, kept);
  log.error({ path, kept }, KEPT_ASIDE);
  return false;
}

/** At the start of a new rclone: second names of content that is still in the cache go, the rest is kept. */
export async function clearGuards(at: Keeping & { readonly trees: CacheTrees }): Promise<void> {
  const { cacheDir, clock, trees } = at;
  const wasAway = await stat(awayFile(cacheDir)).then(
    () => true,
    () => false,
  );
  for await (const path of filesBelow(join(cacheDir, GUARD, 'data'))) {
    const { content, meta } = namesOf(cacheDir, path);
    if ((await stat(content)).nlink > 1) {
      await giveBack(content, meta, join(trees.meta, path));
      continue;
    }
    if (wasAway) await keepFailedWriteBack(path, at);
    else await rename(content, await recoveredPath(path, { cacheDir, clock }));
  }
  await rm(join(cacheDir, GUARD), { recursive: true, force: true });
}

/** A record that was made after the last change is better than what a killed rclone left. */
async function giveBack(content: string, guarded: string, own: string): Promise<void> {
  const [record, former] = await Promise.all([readMeta(guarded), readMeta(own)]);
  if (record === undefined || record === 'torn' || former === undefined || former === 'torn' || !former.Dirty)
    return;
  if (await isExact(record, content)) await writeMeta(own, record);
}
