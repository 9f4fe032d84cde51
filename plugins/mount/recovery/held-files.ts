/** Where a former version kept what rclone's write cache had given up, or was about to. Nothing is put there now. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import { filesBelow } from '../cache/metadata.ts';

/** Versions that were given up, each in a folder with a number; a higher one is newer. */
export const HELD = 'held';
/** Second links of content that rclone might delete. */
const GUARDED = 'guarded';
export const SECOND_LINKS = [HELD, GUARDED] as const;

export interface HeldFile {
  readonly path: string;
  readonly data: string;
  readonly meta: string;
}

/** Oldest first. Rejects when a folder cannot be read: files may be waiting in it. */
export async function heldFiles(cacheDir: string): Promise<readonly HeldFile[]> {
  const numbers = (await readdir(join(cacheDir, HELD)).catch(undefinedWhenMissing)) ?? [];
  const found: HeldFile[] = [];
  for (const folder of [...numbers.sort().map((number) => join(HELD, number)), GUARDED]) {
    const [data, meta] = [join(cacheDir, folder, 'data'), join(cacheDir, folder, 'meta')];
    for await (const path of filesBelow(data))
      found.push({ path, data: join(data, path), meta: join(meta, path) });
  }
  return found;
}
