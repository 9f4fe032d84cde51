import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import { SECOND_LINKS } from '../recovery/held-files.ts';
import { LAYER } from '../layer/paths.ts';
import { removeLayer } from '../layer/remove-layer.ts';

/** File with the identity (a hash) of the remote path that the cache belongs to. */
const IDENTITY_FILE = 'place';
/**
 * Beside it, with the same text: a version gave that name which looks at all options that say where a connection leads.
 * Without it, the name may stand for a connection with such options, too, since the versions before left some out. So
 * it may where the texts differ: such a version had the folder since.
 */
const WHOLE_FILE = 'place-is-whole';
const ASIDE = 'aside';
const TREES = ['vfs', 'vfsMeta', ...SECOND_LINKS, LAYER] as const;

export interface IdentityChange {
  /** There were dirty files of another identity; they wait until the share leads there again. */
  readonly setAside: boolean;
}

export interface FormerNames {
  /** Identities that earlier versions gave the same remote path, and that stand for nothing else. */
  readonly names?: readonly string[];
  /**
   * The identity that versions gave it which left out some of its options: without these, it is the name of another
   * place. Believed as long as no version that looks at them had the folder.
   */
  readonly lesser?: string | undefined;
}

/**
 * Makes the cache folder belong to `identity`. Files cached for another remote path would be taken for this
 * one's, and dirty ones would be uploaded to the wrong NAS: while there are dirty ones, they are moved
 * aside, and come back when the share leads to their remote path again.
 */
export async function settleIdentity(
  cacheDir: string,
  identity: string,
  hasDirtyFiles: () => Promise<boolean>,
  former: FormerNames = {},
): Promise<IdentityChange> {
  await makeFolder(cacheDir);
  const current = await readIdentity(cacheDir);
  const isWhole = await isWholeName(cacheDir, current);
  const isElsewhere = current !== undefined && !isNameOf(identity, former, { current, isWhole });
  const setAside = isElsewhere && (await moveFormerAside({ cacheDir, current, isWhole }, hasDirtyFiles));
  await noteIdentity(cacheDir, identity, { current, isWhole }, () =>
    bringAllBack(cacheDir, identity, former, hasDirtyFiles),
  );
  return { setAside };
}

/**
 * For a cache folder in which a former daemon's mount is at work. True when it belongs to `identity`, by this name or
 * by the lesser one that it is believed to have; from then on it has this one.
 */
export async function takeUpIdentity(
  cacheDir: string,
  identity: string,
  lesser: string | undefined,
): Promise<boolean> {
  const current = await readIdentity(cacheDir);
  const isWhole = await isWholeName(cacheDir, current);
  if (current === undefined || !isNameOf(identity, { lesser }, { current, isWhole })) return false;
  await noteIdentity(cacheDir, identity, { current, isWhole });
  return true;
}

interface Noted {
  readonly current: string | undefined;
  readonly isWhole: boolean;
}

function isNameOf(
  identity: string,
  { names = [], lesser }: FormerNames,
  { current, isWhole }: Noted & { readonly current: string },
): boolean {
  return current === identity || names.includes(current) || (current === lesser && !isWhole);
}

async function noteIdentity(
  cacheDir: string,
  identity: string,
  { current, isWhole }: Noted,
  bringBackFiles: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  // First: without it, the new name would be believed to be the lesser one of another place.
  if (current !== identity || !isWhole) await writeWhole(join(cacheDir, WHOLE_FILE), `${identity}\n`);
  // Written before files are brought back: an interrupted run is continued at the next mount.
  if (current !== identity) await writeWhole(join(cacheDir, IDENTITY_FILE), `${identity}\n`);
  await bringBackFiles();
}

/** Whether the cache folder already belongs to this identity: the share was mounted before. */
export async function hasIdentity(cacheDir: string, identity: string): Promise<boolean> {
  return (await readIdentity(cacheDir)) === identity;
}

/** Undefined for a cache folder that never had an identity: its files stay. */
function readIdentity(cacheDir: string): Promise<string | undefined> {
  return readName(join(cacheDir, IDENTITY_FILE));
}

async function isWholeName(folder: string, name: string | undefined): Promise<boolean> {
  return name !== undefined && (await readName(join(folder, WHOLE_FILE))) === name;
}

/** Undefined for a file that is missing or empty. */
async function readName(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return text.trim() || undefined;
}

/** True when files were moved aside. */
async function moveFormerAside(
  { cacheDir, current, isWhole }: Noted & { readonly cacheDir: string; readonly current: string },
  hasDirtyFiles: () => Promise<boolean>,
): Promise<boolean> {
  const hasTrees = (await readdir(cacheDir)).some((name) => TREES.includes(name as 'vfs'));
  if (hasTrees && (await hasDirtyFiles())) {
    const waiting = join(cacheDir, ASIDE, current);
    if (await isInTheWay(cacheDir, waiting))
      throw new Error(
        'files that have not reached the place that the share led to before wait in two parts, since a former ' +
          'version took it for another place; let the share lead there until nothing waits, then change it',
      );
    // First, since what is moved in part is moved on by the next run, under the same name.
    if (isWhole) await writeWhole(join(waiting, WHOLE_FILE), `${current}\n`);
    await moveTrees(cacheDir, waiting);
    return true;
  }
  await dropTrees(cacheDir);
  return false;
}

async function dropTrees(cacheDir: string): Promise<void> {
  await removeLayer(cacheDir);
  await Promise.all(TREES.map((tree) => rm(join(cacheDir, tree), { recursive: true, force: true })));
}

async function bringAllBack(
  cacheDir: string,
  identity: string,
  { names = [], lesser }: FormerNames,
  hasDirtyFiles: () => Promise<boolean>,
): Promise<void> {
  for (const name of [identity, ...names]) await bringBack(cacheDir, name, hasDirtyFiles);
  if (lesser !== undefined && !(await isWholeName(join(cacheDir, ASIDE, lesser), lesser)))
    await bringBack(cacheDir, lesser, hasDirtyFiles);
}

/** Not yet where others wait in its place, as after a version that took the same place for another one. */
async function bringBack(
  cacheDir: string,
  identity: string,
  hasDirtyFiles: () => Promise<boolean>,
): Promise<void> {
  const waiting = join(cacheDir, ASIDE, identity);
  if (!(await exists(waiting))) return;
  if (await isInTheWay(cacheDir, waiting)) {
    if (await hasDirtyFiles()) return;
    await dropTrees(cacheDir);
  }
  await moveTrees(waiting, cacheDir);
  await rm(waiting, { recursive: true, force: true });
}

async function isInTheWay(cacheDir: string, waiting: string): Promise<boolean> {
  for (const tree of TREES)
    if ((await exists(join(waiting, tree))) && (await exists(join(cacheDir, tree)))) return true;
  return false;
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
