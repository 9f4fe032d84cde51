/** What is being taken out of an upper folder lies aside for a while, with notes for the daemon that comes after a kill. */
import { link, lstat, mkdir, readFile, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import type { BigIntStats } from 'node:fs';
import type { Logger } from 'mountkeeper';
import type { LayerPaths } from './paths.ts';

export const NAMES = 'names.json';

/** Of one thing that lies aside, for the next daemon. The time says that it had been taken out. */
export interface Note { readonly path: string; readonly changedNs?: string }

/**
 * Brings back what a former daemon left in the middle, and what was changed while it lay aside; the rest has been taken out. To be
 * called before the overlay is mounted.
 */
export async function recoverAside(paths: LayerPaths, log: Logger): Promise<number> {
  let count = 0;
  for (const name of await readdir(paths.aside).catch((): string[] => [])) {
    const folder = join(paths.aside, name);
    const notes = await readFile(join(folder, NAMES), 'utf8').then((text) => JSON.parse(text) as readonly Note[], () => undefined);
    if (!notes) continue;
    for (const [index, { path, changedNs }] of notes.entries()) {
      const aside = join(folder, String(index));
      const stats = await lstat(aside, { bigint: true }).catch(() => undefined);
      if (stats && changedNs !== undefined && changedNs !== '' && !isTouchedSince(stats, BigInt(changedNs))) await (stats.isDirectory() ? rmdir(aside) : unlink(aside));
      else if (await putBack(aside, path, paths, log)) count += 1;
    }
    await rm(join(folder, NAMES), { force: true });
    await rmdir(folder).catch(() => undefined);
  }
  return count;
}

/** The kernel makes all whiteouts links of one: their time changes with each that comes or goes, and nothing can be written to them. */
export function isTouchedSince(now: BigIntStats, changedNs: bigint): boolean {
  return !now.isCharacterDevice() && now.ctimeNs !== changedNs;
}

/** Into the upper folder again. Where something new has its name by then, both stay. */
export async function putBack(aside: string, path: string, { upper }: LayerPaths, log: Logger): Promise<boolean> {
  const stats = await lstat(aside).catch(() => undefined);
  if (!stats) return false;
  await mkdir(dirname(join(upper, path)), { recursive: true });
  if (stats.isDirectory()) {
    // Empty, so nothing is lost where one of its name is there by now.
    await rename(aside, join(upper, path)).catch(() => rmdir(aside));
    return true;
  }
  try {
    await link(aside, join(upper, path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (stats.isFile()) {
      const name = `${basename(path, extname(path))} (recovered ${new Date(stats.mtimeMs).toISOString().slice(0, 16).replace('T', ' ').replace(':', '-')})${extname(path)}`;
      log.warn({ path, recovered: name }, 'two versions of a file were found, both are kept');
      await link(aside, join(upper, dirname(path), name));
    }
  }
  await unlink(aside);
  return true;
}
