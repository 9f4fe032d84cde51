/**
 * All files of a plugin's folder, in a fixed order. Each file is checked through the descriptor that it is
 * read from, so exactly what was checked is returned, whatever happens to names meanwhile.
 */
import { constants, lstat, open, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { devPackages } from './dev-packages.ts';
import { judgeContent, judgeOwner, resolveTrusted } from '../../platform/files/ownership.ts';

const MOST_FILES = 20_000;
const MOST_BYTES = 256 * 1024 ** 2;
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
  /** For messages: the folder that is to be repaired as a whole. */
  readonly folder: string;
  readonly seen: { files: number; bytes: number };
  /** Paths below the plugin's folder that are left out. */
  readonly skipped: ReadonlySet<string>;
}

/**
 * Symlinks that stay inside the folder are returned as symlinks; those that lead out are replaced by their
 * target. Leaves out what only the author needs. Throws Untrusted where somebody else could write, and a
 * sentence for entries that cannot be part of a plugin.
 */
export async function* pluginFiles(folder: string): AsyncGenerator<PluginFile> {
  const real = await resolveTrusted(folder);
  const dev = [...(await devPackages(real))].map((name) => path.join('node_modules', name));
  const walk = {
    folder: real,
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
    judgeContent(real, await handle.stat(), walk.folder);
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
  if (staysInside(place.inner, target)) {
    count(walk, target.length);
    yield { name, kind: 'link', content: Buffer.from(target), isExecutable: false };
    return;
  }
  const end = await resolveTrusted(
    path.isAbsolute(target) ? target : `${path.dirname(real)}/${target}`,
  ).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(`the link ${real} leads to ${target}, which is not there; take it away`, {
      cause: error,
    });
  });
  yield* entryAt({ via: end, real: end, name, inner: '', depth }, { ...walk, folder: end });
}

function staysInside(inner: string, target: string): boolean {
  return !path.isAbsolute(target) && path.join(path.dirname(inner), target).split('/')[0] !== '..';
}

async function fileAt({ via, real, name }: Place, walk: Walk): Promise<PluginFile> {
  const handle = await open(via, OPEN_FILE);
  try {
    const stats = await handle.stat();
    judgeContent(real, stats, walk.folder);
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
