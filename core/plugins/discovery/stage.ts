/**
 * Copies third-party plugins: each version of the content gets its own folder,
 * `<state>/plugins/<name>@<sha256-12>/`, because Node never reads an imported module again from the same
 * path. `mountkeeper` resolves to the host from there.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  constants,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { syncFolder } from '../../platform/files/atomic-file.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { syncTree } from '../../platform/files/sync-tree.ts';
import { judgeContent, resolveTrusted } from '../../platform/files/ownership.ts';
import { pluginFiles } from './plugin-files.ts';
import type { PluginFile } from './plugin-files.ts';
import { stripTypes } from './strip-types.ts';

/** Folder of the host package, seen from the compiled file. */
export const packageDir = fileURLToPath(new URL('../../../..', import.meta.url)).replace(/\/$/, '');

const HASH_DIGITS = 12;
/** Hashed in one turn: about 10 ms, in which nothing else runs. */
const PIECE_BYTES = 4 * 1024 ** 2;
/** Versions of one plugin that are kept beside those in use: the newest, and older ones to go back to. */
export const KEPT_CONTENTS = 3;

const COPY = /@[0-9a-f]{12}$/;

export interface StagedPlugin {
  readonly folder: string;
  readonly hash: string;
}

export interface StageOptions {
  /** Asked of the copy: whether its entry is TypeScript, so that it loses its types. Default: no. */
  readonly hasTypes?: (copy: string) => Promise<boolean>;
  /** Copies that something runs from, or may be brought back from, however old they are. Default: none. */
  readonly inUse?: (() => ReadonlySet<string>) | undefined;
}

const NONE: ReadonlySet<string> = new Set();

/** Prepares what all plugins share; call it once before staging several concurrently. */
export async function prepareStage(stateDir: string): Promise<void> {
  await linkHost(path.join(stateDir, 'plugins'));
}

/**
 * Copies the plugin unless this content is there already. Rejects with Untrusted where somebody else could
 * change the source or the copy.
 */
export async function stagePlugin(
  source: string,
  name: string,
  stateDir: string,
  { hasTypes = () => Promise.resolve(false), inUse = () => NONE }: StageOptions = {},
): Promise<StagedPlugin> {
  const root = path.join(stateDir, 'plugins');
  await linkHost(root);
  const known = path.join(root, `${name}@${await hashOf(source)}`);
  if (await exists(known)) {
    // The most recently used copies are removed last.
    await utimes(known, new Date(), new Date());
    return { folder: known, hash: known.slice(-HASH_DIGITS) };
  }

  const draft = draftIn(root);
  try {
    // Hash what was copied, because the source may have changed since.
    const hash = await hashOf(source, { draft, former: await newestCopy(root, name) });
    if (await hasTypes(draft))
      await stripTypes(draft).catch((error: Error) => {
        throw new Error(error.message.replaceAll(draft, source), { cause: error });
      });
    const folder = path.join(root, `${name}@${hash}`);
    if (!(await exists(folder))) {
      // Whatever has this name is taken for whole from now on, and never looked into.
      await syncTree(draft);
      await rename(draft, folder);
      await syncFolder(root);
    }
    await utimes(folder, new Date(), new Date());
    await forgetOlder(root, name, inUse);
    return { folder, hash };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

interface Target {
  readonly draft: string;
  /** A copy of another content of the plugin. */
  readonly former: string | undefined;
}

/** First digits of a SHA-256 over all names and contents. Copies them to the draft, if there is one. */
async function hashOf(source: string, target?: Target): Promise<string> {
  const hash = createHash('sha256');
  if (target) await mkdir(target.draft, { mode: 0o700 });
  for await (const file of pluginFiles(source)) {
    const { name, kind, content, isExecutable } = file;
    hash.update(`${name}\0${kind}\0${String(isExecutable)}\0${String(content.length)}\0`);
    for (const piece of piecesOf(content)) {
      hash.update(piece);
      // Others have their turn.
      if (content.length > PIECE_BYTES) await new Promise((resolve) => setImmediate(resolve));
    }
    if (target && !(await linked(file, target))) await put(file, path.join(target.draft, name));
  }
  return hash.digest('hex').slice(0, HASH_DIGITS);
}

function* piecesOf(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += PIECE_BYTES) yield content.subarray(at, at + PIECE_BYTES);
}

async function put({ kind, content, isExecutable }: PluginFile, target: string): Promise<void> {
  if (kind === 'folder') await mkdir(target, { mode: 0o700 });
  else if (kind === 'link') await symlink(content, target);
  else await writeFile(target, content, { flag: 'wx', mode: modeOf(isExecutable) });
}

/**
 * A file of a package is the same in most versions of a plugin: then it is a second name of the former copy's. Never
 * one of the source's, which its author changes in place. False where it must be copied.
 */
async function linked(
  { name, kind, content, isExecutable }: PluginFile,
  { draft, former }: Target,
): Promise<boolean> {
  if (kind !== 'file' || former === undefined || !name.startsWith('node_modules/')) return false;
  const file = path.join(former, name);
  try {
    const stats = await lstat(file);
    // By what its owner may: the group of runners was given the former copy to read since.
    const isLike =
      stats.isFile() && stats.size === content.length && (stats.mode & 0o700) === modeOf(isExecutable);
    if (!isLike || !(await holds(file, content))) return false;
    await link(file, path.join(draft, name));
    return true;
  } catch {
    // It is new, or its file system takes no more names.
    return false;
  }
}

/** Read piece by piece: a package may have a file of 200 MB, and half the memory is enough. */
async function holds(file: string, content: Buffer): Promise<boolean> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const held = Buffer.allocUnsafe(Math.min(content.length, PIECE_BYTES));
    for (const piece of piecesOf(content)) {
      const { bytesRead } = await handle.read(held, 0, piece.length);
      if (bytesRead !== piece.length || !piece.equals(held.subarray(0, bytesRead))) return false;
    }
    return true;
  } finally {
    await handle.close();
  }
}

function modeOf(isExecutable: boolean): number {
  return isExecutable ? 0o700 : 0o600;
}

/** Copies of the plugin, the last used one first. */
async function copiesOf(root: string, name: string): Promise<readonly string[]> {
  const copies = (await readdir(root)).filter((entry) => entry.startsWith(`${name}@`) && COPY.test(entry));
  const ages = await Promise.all(
    copies.map(async (entry) => ({ entry, usedMs: (await lstat(path.join(root, entry))).mtimeMs })),
  );
  return ages.sort((a, b) => b.usedMs - a.usedMs).map(({ entry }) => path.join(root, entry));
}

async function newestCopy(root: string, name: string): Promise<string | undefined> {
  return (await copiesOf(root, name))[0];
}

async function forgetOlder(root: string, name: string, inUse: () => ReadonlySet<string>): Promise<void> {
  for (const copy of (await copiesOf(root, name)).slice(KEPT_CONTENTS))
    if (!inUse().has(copy)) await removeCopy(copy);
}

function draftIn(root: string): string {
  return path.join(root, `.staging-${randomBytes(6).toString('hex')}`);
}

/** By another name: one that is left half removed must not be taken for whole. */
async function removeCopy(copy: string): Promise<void> {
  const draft = draftIn(path.dirname(copy));
  await rename(copy, draft);
  await rm(draft, { recursive: true, force: true });
}

/**
 * Removes copies that are not in `kept`. Only at the start, because loaded modules may still import from
 * their copy.
 */
export async function sweepStage(stateDir: string, kept: ReadonlySet<string>): Promise<void> {
  const root = path.join(stateDir, 'plugins');
  // There is no stage yet.
  for (const entry of await readdir(root).catch(() => [])) {
    const folder = path.join(root, entry);
    if (entry.startsWith('.staging-')) await rm(folder, { recursive: true, force: true });
    else if (COPY.test(entry) && !kept.has(folder)) await removeCopy(folder);
  }
}

async function linkHost(root: string): Promise<void> {
  const modules = path.join(root, 'node_modules');
  const link = path.join(modules, 'mountkeeper');
  await makeFolder(modules);
  // Whoever can change this folder can swap the copies.
  const real = await resolveTrusted(modules);
  judgeContent(real, await lstat(real));
  // No link, or something else: it is replaced.
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
