/**
 * All files of a plugin's folder, in a fixed order. Each file is checked through the descriptor that it is
 * read from, so exactly what was checked is returned, whatever happens to names meanwhile.
 */
import type { Stats } from 'node:fs';
import { constants, lstat, open, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { devPackages } from './dev-packages.ts';
import { judgeContent, judgeOwner, readTrusted, resolveTrusted } from '../../platform/files/ownership.ts';

export const MOST_FILES = 20_000;
export const MOST_BYTES = 256 * 1024 ** 2;
/** Deeper than any plugin; ends a loop of symlinks. */
const MOST_DEPTH = 64;
const SKIPPED = new Set(['.git', '.DS_Store']);
/** The copy of Mountkeeper that an author's tests use: in the daemon it would be loaded a second time. */
const AUTHORS_HOST = path.join('node_modules', 'mountkeeper');
/** Files of package managers and build tools, which no module imports. */
const TOOLS = ['.bin', '.cache', '.package-lock.json'].map((name) => path.join('node_modules', name));
const OPEN_FOLDER = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY;
const OPEN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** `content` is a file's bytes or a symlink's target; a folder has none and comes before its entries. */
export interface PluginFile {
  /** Relative to the plugin's folder. */
  readonly name: string;
  readonly kind: 'folder' | 'file' | 'link';
  readonly content: Buffer;
  readonly isExecutable: boolean;
}

/** A position in the walk: `via` is the path through descriptors, `real` is the path that people know. */
interface Place {
  readonly via: string;
  readonly real: string;
  readonly name: string;
  /** Path below the folder that symlinks must stay in to be kept as symlinks. */
  readonly inner: string;
  readonly depth: number;
}

interface Walk {
  /** The plugin's folder, or what the last link led out to. For messages, too: it is to be repaired as a whole. */
  readonly folder: string;
  /** The plugin's folder, whatever was led out to. */
  readonly plugin: string;
  /** The link that has led out of the plugin's folder, if one has. */
  readonly outBy?: string;
  readonly seen: { files: number; bytes: number };
  /** Paths below the plugin's folder that are left out. */
  readonly skipped: ReadonlySet<string>;
}

/**
 * Symlinks that stay inside the folder are returned as symlinks; those that lead out are replaced by their
 * target. Leaves out what only the author needs, and links inside that lead to nothing. Throws Untrusted where
 * somebody else could write, and a sentence for entries that cannot be part of a plugin. What lies outside is the
 * plugin's to read without the permission `files`, so it must be everybody's to read.
 */
export async function* pluginFiles(folder: string): AsyncGenerator<PluginFile> {
  const real = await resolveTrusted(folder);
  const dev = [...(await devPackages(real))].map((name) => path.join('node_modules', name));
  const walk = {
    folder: real,
    plugin: real,
    seen: { files: 0, bytes: 0 },
    skipped: new Set([AUTHORS_HOST, ...TOOLS, ...dev]),
  };
  yield* folderAt({ via: real, real, name: '', inner: '', depth: 0 }, walk);
}

async function* folderAt(place: Place, walk: Walk): AsyncGenerator<PluginFile> {
  const { real, name, depth } = place;
  if (depth > MOST_DEPTH) throw new Error(`${real} lies deeper than ${String(MOST_DEPTH)} folders`);
  const handle = await open(place.via, OPEN_FOLDER);
  try {
    const stats = await handle.stat();
    judgeContent(real, stats, walk.folder);
    judgePublic(real, stats, walk);
    if (name !== '') yield { name, kind: 'folder', content: Buffer.alloc(0), isExecutable: true };
    const through = `/proc/self/fd/${String(handle.fd)}`;
    for (const entry of (await readdir(through)).sort()) {
      const below = within(place, entry, through);
      if (!isSkipped(below.name, walk)) yield* entryAt(below, walk);
    }
  } finally {
    await handle.close();
  }
}

function within({ real, name, inner, depth }: Place, entry: string, through: string): Place {
  return {
    via: `${through}/${entry}`,
    real: path.join(real, entry),
    name: path.join(name, entry),
    inner: path.join(inner, entry),
    depth: depth + 1,
  };
}

function isSkipped(name: string, { skipped }: Walk): boolean {
  return skipped.has(name) || SKIPPED.has(path.basename(name));
}

async function* entryAt(place: Place, walk: Walk): AsyncGenerator<PluginFile> {
  const stats = await lstat(place.via);
  if (stats.isSymbolicLink()) {
    judgeOwner(place.real, stats, walk.folder);
    yield* linkAt(place, walk);
  } else if (stats.isDirectory()) yield* folderAt(place, walk);
  else if (stats.isFile()) yield await fileAt(place, walk);
  else throw new Error(`${place.real} is neither a file nor a folder; take it away`);
}

async function* linkAt(place: Place, walk: Walk): AsyncGenerator<PluginFile> {
  const { real, name, depth } = place;
  const target = await readlink(place.via);
  const isInText = staysInside(place.inner, target);
  const end = await endOf(real, target, isInText);
  if (end === undefined) return;
  // Behind a link, `..` is the parent of where that leads, so the text alone says nothing.
  if (isInText && isWithin(end, walk.folder)) {
    count(walk, target.length);
    yield { name, kind: 'link', content: Buffer.from(target), isExecutable: false };
    return;
  }
  const { outBy: _, ...own } = { ...walk, folder: end };
  const isOutside = !isWithin(end, walk.plugin);
  if (isOutside && !(await isLinkedPackage(name, end))) await judgeWay(real, end);
  yield* entryAt({ via: end, real: end, name, inner: '', depth }, isOutside ? { ...own, outBy: real } : own);
}

/** Where the link leads. Undefined for one that would stay inside, and leads to nothing. */
async function endOf(link: string, target: string, isInText: boolean): Promise<string | undefined> {
  try {
    return await resolveTrusted(path.isAbsolute(target) ? target : `${path.dirname(link)}/${target}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    if (isInText) return undefined;
    throw new Error(`the link ${link} leads to ${target}, which is not there; take it away`, {
      cause: error,
    });
  }
}

function staysInside(inner: string, target: string): boolean {
  return !path.isAbsolute(target) && path.join(path.dirname(inner), target).split('/')[0] !== '..';
}

function isWithin(file: string, folder: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}

const LINKED = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/;
const MOST_MANIFEST_BYTES = 1_048_576;

/** As `npm link` makes it: the package may lie where only its author enters. */
async function isLinkedPackage(name: string, end: string): Promise<boolean> {
  const wanted = LINKED.exec(name)?.[1];
  if (wanted === undefined) return false;
  try {
    const text = await readTrusted(path.join(end, 'package.json'), MOST_MANIFEST_BYTES);
    return (JSON.parse(text) as { name?: unknown } | null)?.name === wanted;
  } catch {
    // It is no package.
    return false;
  }
}

const ALL_ENTER = 0o001;
const ALL_READ = 0o004;

/** Throws a sentence where not everybody may come to `end`. */
async function judgeWay(link: string, end: string): Promise<void> {
  for (let at = path.dirname(end); at !== path.dirname(at); at = path.dirname(at))
    if (((await lstat(at)).mode & ALL_ENTER) === 0) throw isPrivate(link, end);
}

/** Throws a sentence where a link has led out to what not everybody may read. */
function judgePublic(file: string, stats: Stats, { outBy }: Walk): void {
  if (outBy === undefined) return;
  const needed = stats.isDirectory() ? ALL_READ | ALL_ENTER : ALL_READ;
  if ((stats.mode & needed) !== needed) throw isPrivate(outBy, file);
}

function isPrivate(link: string, file: string): Error {
  return new Error(
    `the link ${link} leads out of the plugin's folder to ${file}, which not everybody may read; ` +
      "copy what is needed into the plugin's folder",
  );
}

async function fileAt({ via, real, name }: Place, walk: Walk): Promise<PluginFile> {
  const handle = await open(via, OPEN_FILE);
  try {
    const stats = await handle.stat();
    judgeContent(real, stats, walk.folder);
    judgePublic(real, stats, walk);
    if (!stats.isFile()) throw new Error(`${real} is not a file any more`);
    count(walk, stats.size);
    return { name, kind: 'file', content: await handle.readFile(), isExecutable: (stats.mode & 0o100) !== 0 };
  } finally {
    await handle.close();
  }
}

function count({ seen }: Walk, bytes: number): void {
  seen.files += 1;
  seen.bytes += bytes;
  if (seen.files > MOST_FILES || seen.bytes > MOST_BYTES) {
    throw new Error('the folder is too large for a plugin (more than 20,000 files or 256 MiB)');
  }
}
