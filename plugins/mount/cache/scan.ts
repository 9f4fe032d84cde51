import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { PendingFiles } from 'mountkeeper';
import { dataFile, eachOf, filesBelow, readMeta, treesOf } from './metadata.ts';
import { asideFolders } from './identity.ts';
import { heldFiles } from '../recovery/held-files.ts';
import { LAYER } from '../layer/paths.ts';
import { isReadOnlyCache } from '../former/read-only-cache.ts';

const MAX_PATHS = 1_000;
const FILES_AT_ONCE = 16;
/** The file system's own folder, which root alone reads; no share has such a name. */
const LOST_AND_FOUND = 'lost+found';

/**
 * Dirty files that a former version left in one cache folder, found by its files on disk. `remotePath` is removed
 * from the start of the paths.
 */
export async function pendingIn(cacheDir: string, remotePath = ''): Promise<PendingFiles> {
  if (await isReadOnlyCache(cacheDir)) return { count: 0, bytes: 0, paths: [] };
  const { data, meta } = treesOf(cacheDir);
  const prefix = remotePath.replaceAll(/^\/+|(?<!\/)\/+$/g, '');
  const paths: string[] = [];
  let [count, bytes] = [0, 0];
  const add = (path: string, size: number): void => {
    count += 1;
    bytes += size;
    if (paths.length < MAX_PATHS)
      paths.push(prefix !== '' && path.startsWith(`${prefix}/`) ? path.slice(prefix.length + 1) : path);
  };
  await eachOf(filesBelow(meta), FILES_AT_ONCE, async (path) => {
    const size = await dirtyBytes(join(meta, path), join(data, path));
    if (size !== undefined) add(path, size);
  });
  for (const held of await heldFiles(cacheDir)) add(held.path, (await dataFile(held.data))?.bytes ?? 0);
  return { count, bytes, paths: paths.sort() };
}

/**
 * Undefined when the file is clean. Incomplete metadata next to content may belong to a dirty file, so it
 * counts as one.
 */
async function dirtyBytes(metaFile: string, contentFile: string): Promise<number | undefined> {
  const meta = await readMeta(metaFile);
  if (meta === undefined || (meta !== 'torn' && !meta.Dirty)) return undefined;
  const content = await dataFile(contentFile);
  if (!content && meta === 'torn') return undefined;
  return content?.bytes ?? 0;
}

/** Includes files that were moved aside because they belong to another remote path. */
export function pendingOf(cacheDir: string, remotePath = ''): Promise<PendingFiles> {
  return pendingInAll([cacheDir], remotePath);
}

/** The same for several cache folders. */
export async function pendingInAll(cacheDirs: readonly string[], remotePath = ''): Promise<PendingFiles> {
  const aside = (await Promise.all(cacheDirs.map(asideFolders))).flat();
  const all = await Promise.all(
    [...cacheDirs, ...aside].map((folder) => pendingIn(folder, cacheDirs.includes(folder) ? remotePath : '')),
  );
  return {
    count: all.reduce((sum, one) => sum + one.count, 0),
    bytes: all.reduce((sum, one) => sum + one.bytes, 0),
    paths: all.flatMap((one) => one.paths).slice(0, MAX_PATHS),
  };
}

/**
 * Names of the folders in `root` that contain a cache of ours, or may: one that cannot be read counts as one, and
 * who looks for files in it hears why.
 */
export async function cachedShares(root: string): Promise<readonly string[]> {
  const entries = (await readdir(root, { withFileTypes: true }).catch(undefinedWhenMissing)) ?? [];
  const folders = entries
    .filter((entry) => entry.isDirectory() && entry.name !== LOST_AND_FOUND)
    .map((entry) => entry.name);
  const holding = await Promise.all(
    folders.map(async (name) => ((await mayHoldCache(join(root, name))) ? name : undefined)),
  );
  return holding.filter((name) => name !== undefined);
}

async function mayHoldCache(folder: string): Promise<boolean> {
  try {
    const inside = (await readdir(folder).catch(undefinedWhenMissing)) ?? [];
    return ['vfsMeta', 'aside', LAYER].some((tree) => inside.includes(tree));
  } catch {
    // Unknown counts as waiting.
    return true;
  }
}
