import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Logger } from 'mountkeeper';
import { filesBelow, readMeta, writeMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import { isExact } from '../cache/ranges.ts';
import { quarantine } from './quarantine.ts';
import { recoveredPath } from './recovered.ts';

const RESCUED_FOLDER = 'guarded';
export const KEPT_ASIDE =
  'rclone gave up a changed file; its changes are kept aside, what was never fetched reads as zeros';

/** This file exists while the NAS is known to be away. */
export function awayFile(cacheDir: string): string {
  return join(cacheDir, RESCUED_FOLDER, 'away');
}

/** Paths of the second hard link and of the metadata copy that preserve a file. */
export function namesOf(cacheDir: string, path: string): { readonly content: string; readonly meta: string } {
  return {
    content: join(cacheDir, RESCUED_FOLDER, 'data', path),
    meta: join(cacheDir, RESCUED_FOLDER, 'meta', path),
  };
}

/**
 * Recognises log lines such as `photos/a.raw(0xc00028ff40): RWFileHandle.Release error: vfs cache: failed
 * to download missing parts of cache file`
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
 * False when the metadata is lost: then zeros cannot be told from holes, and a person has to look at the
 * file.
 */
export async function keepFailedWriteBack(path: string, { cacheDir, clock, log }: Keeping): Promise<boolean> {
  const { content, meta } = namesOf(cacheDir, path);
  const record = await readMeta(meta);
  if (record !== undefined && record !== 'torn') {
    await quarantine(cacheDir, path, { content, meta });
    log.warn({ path }, 'rclone gave up a changed file; its changes are held and go up when the NAS is back');
    return true;
  }
  const kept = await recoveredPath(path, { cacheDir, clock });
  await rename(content, kept);
  log.error({ path, kept }, KEPT_ASIDE);
  return false;
}

/**
 * Runs before a new rclone: removes second links of content that is still in the cache, and restores or
 * keeps the rest.
 */
export async function clearRescued(at: Keeping & { readonly trees: CacheTrees }): Promise<void> {
  const { cacheDir, clock, trees } = at;
  const wasAway = await stat(awayFile(cacheDir)).then(
    () => true,
    () => false,
  );
  for await (const path of filesBelow(join(cacheDir, RESCUED_FOLDER, 'data'))) {
    const { content, meta } = namesOf(cacheDir, path);
    if ((await stat(content)).nlink > 1) {
      await giveBack(content, meta, join(trees.meta, path));
      continue;
    }
    if (wasAway) await keepFailedWriteBack(path, at);
    else await rename(content, await recoveredPath(path, { cacheDir, clock }));
  }
  await rm(join(cacheDir, RESCUED_FOLDER), { recursive: true, force: true });
}

/** Metadata saved after the last change is better than what a killed rclone left. */
async function giveBack(content: string, rescued: string, own: string): Promise<void> {
  const [record, former] = await Promise.all([readMeta(rescued), readMeta(own)]);
  if (record === undefined || record === 'torn' || former === undefined || former === 'torn' || !former.Dirty)
    return;
  if (await isExact(record, content)) await writeMeta(own, record);
}
