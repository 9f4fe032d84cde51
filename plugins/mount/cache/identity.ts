import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, writeWhole } from 'mountkeeper';
import { HELD } from '../recovery/quarantine.ts';
import { LAYER } from '../layer/paths.ts';

/** Holds the identity of the place that the cache belongs to. */
const PLACE_FILE = 'place';
const ASIDE = 'aside';
const TREES = ['vfs', 'vfsMeta', HELD, LAYER] as const;

export interface PlaceChange {
  /** Dirty files were there, which belong to another place and wait for it now. */
  readonly setAside: boolean;
}

/**
 * Makes the cache folder belong to `identity`. Files cached from another place would be taken for this one's,
 * and dirty ones would go up to the wrong NAS: they are set aside while there are any, and come back when
 * their place does. `formerNames`: what the same place was called before.
 */
export async function settlePlace(
  cacheDir: string,
  identity: string,
  hasDirtyFiles: () => Promise<boolean>,
  formerNames: readonly string[] = [],
): Promise<PlaceChange> {
  await makeFolder(cacheDir);
  const current = await readPlace(cacheDir);
  const isElsewhere = current !== undefined && current !== identity && !formerNames.includes(current);
  const setAside = isElsewhere && (await makeRoom(cacheDir, current, hasDirtyFiles));
  // Before anything comes back: what is interrupted here is taken up again at the next mount.
  if (current !== identity) await writeWhole(join(cacheDir, PLACE_FILE), `${identity}\n`);
  for (const name of [identity, ...formerNames]) await bringBack(cacheDir, name);
  return { setAside };
}

/** Whether the cache folder belongs to this place: a share of it was mounted before. */
export async function isPlace(cacheDir: string, identity: string): Promise<boolean> {
  return (await readPlace(cacheDir)) === identity;
}

/** Undefined for a cache folder that never had a place: what is in it stays. */
async function readPlace(cacheDir: string): Promise<string | undefined> {
  const text = await readFile(join(cacheDir, PLACE_FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return text.trim() || undefined;
}

/** True when files were set aside. */
async function makeRoom(
  cacheDir: string,
  current: string,
  hasDirtyFiles: () => Promise<boolean>,
): Promise<boolean> {
  const hasTrees = (await readdir(cacheDir)).some((name) => TREES.includes(name as 'vfs'));
  if (hasTrees && (await hasDirtyFiles())) {
    await moveTrees(cacheDir, join(cacheDir, ASIDE, current));
    return true;
  }
  await Promise.all(TREES.map((tree) => rm(join(cacheDir, tree), { recursive: true, force: true })));
  return false;
}

async function bringBack(cacheDir: string, identity: string): Promise<void> {
  const waiting = join(cacheDir, ASIDE, identity);
  if (!(await exists(waiting))) return;
  await moveTrees(waiting, cacheDir);
  await rm(waiting, { recursive: true, force: true });
}

async function moveTrees(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  // The documents last: content without them would be taken for litter if this were interrupted.
  for (const tree of TREES) {
    if (await exists(join(from, tree))) await rename(join(from, tree), join(to, tree));
  }
}

async function exists(path: string): Promise<boolean> {
  return readdir(path).then(
    () => true,
    () => false,
  );
}

/** Folders shaped like a cache folder, with files of former places. */
export async function asideFolders(cacheDir: string): Promise<readonly string[]> {
  const names = await readdir(join(cacheDir, ASIDE)).catch((): string[] => []);
  return names.map((name) => join(cacheDir, ASIDE, name));
}
