import { open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { mkdir } from 'node:fs/promises';
import { REMOTE } from '../options/remote-config.ts';
import { createSerialQueue } from 'mountkeeper/sdk';

/** What rclone keeps about one cached file. */
export interface FileMeta {
  readonly Size: number;
  /** Byte ranges that are present; null for none. */
  readonly Rs: readonly { readonly Pos: number; readonly Size: number }[] | null;
  readonly Fingerprint: string;
  readonly Dirty: boolean;
  readonly ModTime: string;
  readonly ATime: string;
}

/**
 * The two trees that rclone keeps below a cache folder: the files' content, and one JSON document for each.
 */
export interface CacheTrees {
  readonly data: string;
  readonly meta: string;
}

export function treesOf(cacheDir: string): CacheTrees {
  return { data: join(cacheDir, 'vfs', REMOTE), meta: join(cacheDir, 'vfsMeta', REMOTE) };
}

/** Undefined when the file is not there; `'torn'` when it is half-written. */
export async function readMeta(file: string): Promise<FileMeta | 'torn' | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // A folder may have taken the name of a file.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'EISDIR') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    const meta = JSON.parse(text) as FileMeta;
    return typeof meta.Dirty === 'boolean' ? meta : 'torn';
  } catch {
    return 'torn';
  }
}

/** Whole and, unless it is in a hurry, on the disk before the name points to it. */
export async function writeMeta(file: string, meta: FileMeta, { inHurry = false } = {}): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const beside = `${file}.mountkeeper-new`;
  const handle = await open(beside, 'w', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(meta, undefined, '\t')}\n`);
    if (!inHurry) await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(beside, file).catch(async (error: unknown) => {
    await unlink(beside).catch(() => undefined);
    throw error;
  });
}

/**
 * Paths of all files below a folder, relative to it, a folder at a time. A folder that vanishes meanwhile is
 * left out.
 */
export async function* filesBelow(root: string): AsyncGenerator<string> {
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
        throw error;
      },
    );
    for (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) yield path;
    }
  }
}

/** Runs `work` on every item, at most `places` at once. */
export async function eachOf<T>(
  items: AsyncIterable<T> | Iterable<T>,
  places: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = (async function* () {
    yield* items;
  })();
  const pulling = createSerialQueue();
  const pull = (): Promise<IteratorResult<T>> => pulling.run(() => iterator.next());
  const worker = async (): Promise<void> => {
    for (let item = await pull(); item.done !== true; item = await pull()) await work(item.value);
  };
  await Promise.all(Array.from({ length: places }, worker));
}

/** Size and space on disk of a data file; undefined when it is not there. */
export async function dataFile(
  file: string,
): Promise<{ readonly bytes: number; readonly isWhole: boolean; readonly modifiedMs: number } | undefined> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  return found?.isFile() === true
    ? { bytes: found.size, isWhole: found.blocks * 512 >= found.size, modifiedMs: found.mtimeMs }
    : undefined;
}
