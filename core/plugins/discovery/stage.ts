/**
 * Staging of third-party plugins: each content gets a folder of its own,
 * `<state>/plugins/<name>@<sha256-12>/`, since a module that was imported once is never read again from the
 * same place. `mountkeeper` resolves to the host from there.
 */
import { createHash, randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, readlink, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { judgeContent, resolveTrusted } from '../../platform/files/ownership.ts';
import { pluginFiles } from './plugin-files.ts';
import type { PluginFile } from './plugin-files.ts';

/** Folder of the host package, seen from the compiled file. */
export const packageDir = fileURLToPath(new URL('../../../..', import.meta.url)).replace(/\/$/, '');

const HASH_DIGITS = 12;
/** Contents of one plugin that are kept: the one in use, and those to go back to. */
const KEPT_CONTENTS = 3;

const COPY = /@[0-9a-f]{12}$/;

export interface StagedPlugin {
  readonly folder: string;
  readonly hash: string;
}

/** What all plugins share; to be done once before several are staged side by side. */
export async function prepareStage(stateDir: string): Promise<void> {
  await linkHost(path.join(stateDir, 'plugins'));
}

/**
 * Copies the plugin unless this content is there already. Rejects with Untrusted where somebody else could
 * change what is copied, or the copy.
 */
export async function stagePlugin(source: string, name: string, stateDir: string): Promise<StagedPlugin> {
  const root = path.join(stateDir, 'plugins');
  await linkHost(root);
  const known = path.join(root, `${name}@${await hashOf(source)}`);
  if (await exists(known)) {
    // The latest used are the last to go.
    await utimes(known, new Date(), new Date());
    return { folder: known, hash: known.slice(-HASH_DIGITS) };
  }

  const draft = path.join(root, `.staging-${randomBytes(6).toString('hex')}`);
  try {
    // The hash of what was copied, not of what was there a moment ago.
    const hash = await hashOf(source, draft);
    const folder = path.join(root, `${name}@${hash}`);
    if (!(await exists(folder))) await rename(draft, folder);
    await utimes(folder, new Date(), new Date());
    await forgetOlder(root, name);
    return { folder, hash };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * First digits of a SHA-256 over all names and contents, which are copied to `draft` on the way if it is
 * given.
 */
async function hashOf(source: string, draft?: string): Promise<string> {
  const hash = createHash('sha256');
  if (draft !== undefined) await mkdir(draft, { mode: 0o700 });
  for await (const file of pluginFiles(source)) {
    const { name, kind, content, isExecutable } = file;
    hash.update(`${name}\0${kind}\0${String(isExecutable)}\0${String(content.length)}\0`).update(content);
    if (draft !== undefined) await put(file, path.join(draft, name));
  }
  return hash.digest('hex').slice(0, HASH_DIGITS);
}

async function put({ kind, content, isExecutable }: PluginFile, target: string): Promise<void> {
  if (kind === 'folder') await mkdir(target, { mode: 0o700 });
  else if (kind === 'link') await symlink(content, target);
  else await writeFile(target, content, { flag: 'wx', mode: isExecutable ? 0o700 : 0o600 });
}

async function forgetOlder(root: string, name: string): Promise<void> {
  const copies = (await readdir(root)).filter((entry) => entry.startsWith(`${name}@`) && COPY.test(entry));
  const ages = await Promise.all(
    copies.map(async (entry) => ({ entry, usedMs: (await lstat(path.join(root, entry))).mtimeMs })),
  );
  const older = ages.sort((a, b) => b.usedMs - a.usedMs).slice(KEPT_CONTENTS);
  for (const { entry } of older) await rm(path.join(root, entry), { recursive: true, force: true });
}

/**
 * Removes copies that are not in `kept`. Only at the start: modules that are loaded may still import from
 * theirs.
 */
export async function sweepStage(stateDir: string, kept: ReadonlySet<string>): Promise<void> {
  const root = path.join(stateDir, 'plugins');
  for (const entry of await readdir(root).catch(() => [])) {
    const folder = path.join(root, entry);
    const isOurs = entry.startsWith('.staging-') || COPY.test(entry);
    if (isOurs && !kept.has(folder)) await rm(folder, { recursive: true, force: true });
  }
}

async function linkHost(root: string): Promise<void> {
  const modules = path.join(root, 'node_modules');
  const link = path.join(modules, 'mountkeeper');
  await makeFolder(modules);
  // Whoever could swap the copies would be asked for nothing more.
  const real = await resolveTrusted(modules);
  judgeContent(real, await lstat(real));
  if ((await readlink(link).catch(() => '')) === packageDir) return;
  await rm(link, { recursive: true, force: true });
  await symlink(packageDir, link, 'dir');
}

async function exists(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    () => false,
  );
}
