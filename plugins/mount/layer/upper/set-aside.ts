/**
 * What is being taken out of an upper folder lies aside for a while, with notes for the daemon that comes
 * after a kill.
 */
import { link, lstat, mkdir, readFile, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import type { BigIntStats } from 'node:fs';
import type { Logger } from 'mountkeeper';
import type { LayerPaths } from '../paths.ts';

export const NAMES = 'names.json';

/** Of one thing that lies aside, for the next daemon. The time says that it had been taken out. */
export interface Note {
  readonly path: string;
  readonly changedNs?: string;
}

/** What a take-out that was cut off has left. */
export interface Left {
  readonly path: string;
  readonly aside: string;
  /** It had been taken out, and nobody has touched it since: its time of change. */
  readonly changedNs?: bigint;
  readonly stats: BigIntStats;
}

/** In each folder of a take-out. */
export async function leftAside({
  aside,
}: Pick<LayerPaths, 'aside'>): Promise<ReadonlyMap<string, readonly Left[]>> {
  const found = new Map<string, readonly Left[]>();
  for (const name of await readdir(aside).catch((): string[] => [])) {
    const folder = join(aside, name);
    const notes = await readFile(join(folder, NAMES), 'utf8').then(
      (text) => JSON.parse(text) as readonly Note[],
      () => undefined,
    );
    if (!notes) continue;
    const left: Left[] = [];
    for (const [index, { path, changedNs = '' }] of notes.entries()) {
      const place = join(folder, String(index));
      const stats = await lstat(place, { bigint: true }).catch(() => undefined);
      if (!stats) continue;
      const isOut = changedNs !== '' && !isTouchedSince(stats, BigInt(changedNs));
      left.push({ path, aside: place, stats, ...(isOut && { changedNs: BigInt(changedNs) }) });
    }
    found.set(folder, left);
  }
  return found;
}

/**
 * Brings back what a former daemon left in the middle, and what was changed while it lay aside. The rest has
 * been taken out: it goes, but while the overlay is mounted (`isLive`), since somebody may still be about to
 * write through a name that the kernel keeps. To be called before an uploader looks. Resolves with how many
 * are in the upper folder again.
 */
export async function recoverAside(paths: LayerPaths, log: Logger, { isLive = false } = {}): Promise<number> {
  let count = 0;
  for (const [folder, left] of await leftAside(paths)) {
    const isOut = ({ changedNs }: Left): boolean => changedNs !== undefined;
    for (const { aside, path } of left.filter((one) => !isOut(one)))
      if (await restoreAside(aside, path, paths, log)) count += 1;
    if (isLive && left.some(isOut)) continue;
    for (const { aside, stats } of left.filter(isOut))
      await (stats.isDirectory() ? rmdir(aside) : unlink(aside));
    await rm(join(folder, NAMES), { force: true });
    await rmdir(folder).catch(() => undefined);
  }
  return count;
}

/**
 * The kernel makes all whiteouts links of one: their time changes with each that comes or goes, and nothing
 * can be written to them.
 */
export function isTouchedSince(now: BigIntStats, changedNs: bigint): boolean {
  return !now.isCharacterDevice() && now.ctimeNs !== changedNs;
}

/** Into the upper folder again. Where something new has its name by then, both stay. */
export async function restoreAside(
  aside: string,
  path: string,
  { upper }: LayerPaths,
  log: Logger,
): Promise<boolean> {
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
