/**
 * Staging of third-party plugins: each content gets a folder of its own, `<state>/plugins/<name>@<sha256-12>/`, since a module
 * that was imported once is never read again from the same place. `mountkeeper` resolves to the host from there.
 */
import { createHash, randomBytes } from 'node:crypto';
import { cp, lstat, readFile, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolder } from '../system/make-folder.ts';

/** Folder of the host package, seen from the compiled file. */
export const packageDir = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

const MOST_FILES = 20_000;
const MOST_BYTES = 256 * 1024 ** 2;
const SKIPPED = new Set(['.git', '.DS_Store']);
/** What an author's tests run with: in the daemon it would be a second Mountkeeper beside the one that loads the plugin. */
const AUTHORS_HOST = path.join('node_modules', 'mountkeeper');

export interface StagedPlugin {
  readonly folder: string;
  readonly hash: string;
}

/** What all plugins share; to be done once before several are staged side by side. */
export async function prepareStage(stateDir: string): Promise<void> {
  await linkHost(path.join(stateDir, 'plugins'));
}

/** Copies the plugin unless this content is there already. */
export async function stagePlugin(source: string, name: string, stateDir: string): Promise<StagedPlugin> {
  const root = path.join(stateDir, 'plugins');
  await linkHost(root);
  const known = path.join(root, `${name}@${await hashFolder(source)}`);
  if (await exists(known)) return { folder: known, hash: known.slice(-12) };

  const draft = path.join(root, `.staging-${randomBytes(6).toString('hex')}`);
  try {
    await cp(source, draft, { recursive: true, verbatimSymlinks: true, filter: (file) => isStaged(path.relative(source, file)) });
    const hash = await hashFolder(draft);
    const folder = path.join(root, `${name}@${hash}`);
    if (!(await exists(folder))) await rename(draft, folder);
    return { folder, hash };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Removes copies that are not in `kept`. Only at the start: modules that are loaded may still import from theirs. */
export async function sweepStage(stateDir: string, kept: ReadonlySet<string>): Promise<void> {
  const root = path.join(stateDir, 'plugins');
  for (const entry of await readdir(root).catch(() => [])) {
    const folder = path.join(root, entry);
    const isOurs = entry.startsWith('.staging-') || /@[0-9a-f]{12}$/.test(entry);
    if (isOurs && !kept.has(folder)) await rm(folder, { recursive: true, force: true });
  }
}

async function linkHost(root: string): Promise<void> {
  const modules = path.join(root, 'node_modules');
  const link = path.join(modules, 'mountkeeper');
  await makeFolder(modules);
  if ((await readlink(link).catch(() => '')) === packageDir) return;
  await rm(link, { recursive: true, force: true });
  await symlink(packageDir, link, 'dir');
}

function isStaged(name: string): boolean {
  return name !== AUTHORS_HOST && !SKIPPED.has(path.basename(name));
}

async function exists(file: string): Promise<boolean> {
  return lstat(file).then(() => true, () => false);
}

/** First 12 digits of a SHA-256 over all names and contents. */
export async function hashFolder(folder: string): Promise<string> {
  const hash = createHash('sha256');
  let files = 0;
  let bytes = 0;
  const walk = async (relative: string): Promise<void> => {
    const entries = await readdir(path.join(folder, relative), { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const name = path.join(relative, entry.name);
      if (!isStaged(name)) continue;
      if (entry.isDirectory()) await walk(name);
      else await add(name, entry.isSymbolicLink());
    }
  };
  const add = async (name: string, isLink: boolean): Promise<void> => {
    const file = path.join(folder, name);
    const { size } = await lstat(file);
    files += 1;
    bytes += size;
    if (files > MOST_FILES || bytes > MOST_BYTES) throw new Error('the folder is too large for a plugin (more than 20,000 files or 256 MiB)');
    const content = isLink ? Buffer.from(`-> ${await readlink(file)}`) : await readFile(file);
    hash.update(`${name}\0${String(content.length)}\0`).update(content);
  };
  await walk('');
  return hash.digest('hex').slice(0, 12);
}
