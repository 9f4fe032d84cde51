import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import { SECOND_LINKS } from '../recovery/held-files.ts';
import { LAYER } from '../layer/paths.ts';
import { removeLayer } from '../layer/remove-layer.ts';

/** File with the identity (a hash) of the remote path that the cache belongs to. */
const IDENTITY_FILE = 'place';
const ASIDE = 'aside';
const TREES = ['vfs', 'vfsMeta', ...SECOND_LINKS, LAYER] as const;

export interface IdentityChange {
  /** There were dirty files of another identity; they wait until the share leads there again. */
  readonly setAside: boolean;
}

/**
 * Makes the cache folder belong to `identity`. Files cached for another remote path would be taken for this
 * one's, and dirty ones would be uploaded to the wrong NAS: while there are dirty ones, they are moved
 * aside, and come back when the share leads to their remote path again. `formerNames`: identities that
 * earlier versions gave the same remote path.
 */
export async function settleIdentity(
  cacheDir: string,
  identity: string,
  hasDirtyFiles: () => Promise<boolean>,
  formerNames: readonly string[] = [],
): Promise<IdentityChange> {
  await makeFolder(cacheDir);
  const current = await readIdentity(cacheDir);
  const isElsewhere = current !== undefined && current !== identity && !formerNames.includes(current);
  const setAside = isElsewhere && (await moveFormerAside(cacheDir, current, hasDirtyFiles));
  // Written before files are brought back: an interrupted run is continued at the next mount.
  if (current !== identity) await writeWhole(join(cacheDir, IDENTITY_FILE), `${identity}\n`);
  for (const name of [identity, ...formerNames]) await bringBack(cacheDir, name);
  return { setAside };
}

/** Whether the cache folder already belongs to this identity: the share was mounted before. */
export async function hasIdentity(cacheDir: string, identity: string): Promise<boolean> {
  return (await readIdentity(cacheDir)) === identity;
}

/** Undefined for a cache folder that never had an identity: its files stay. */
async function readIdentity(cacheDir: string): Promise<string | undefined> {
  const text = await readFile(join(cacheDir, IDENTITY_FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return text.trim() || undefined;
}

/** True when files were moved aside. */
async function moveFormerAside(
  cacheDir: string,
  current: string,
  hasDirtyFiles: () => Promise<boolean>,
): Promise<boolean> {
  const hasTrees = (await readdir(cacheDir)).some((name) => TREES.includes(name as 'vfs'));
  if (hasTrees && (await hasDirtyFiles())) {
    await moveTrees(cacheDir, join(cacheDir, ASIDE, current));
    return true;
  }
  await removeLayer(cacheDir);
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
  // The metadata last: content without metadata would be deleted as litter if this were interrupted.
  for (const tree of TREES) {
    if (await exists(join(from, tree))) await rename(join(from, tree), join(to, tree));
  }
}

/** Rejects where that cannot be told: what waits there would be passed over. */
async function exists(path: string): Promise<boolean> {
  return (await readdir(path).catch(undefinedWhenMissing)) !== undefined;
}

/** Folders with the layout of a cache folder that hold files of former identities. */
export async function asideFolders(cacheDir: string): Promise<readonly string[]> {
  const names = (await readdir(join(cacheDir, ASIDE)).catch(undefinedWhenMissing)) ?? [];
  return names.map((name) => join(cacheDir, ASIDE, name));
}
