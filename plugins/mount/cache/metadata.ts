import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { REMOTE } from '../options/remote-config.ts';
import { createSerialQueue, writeWhole } from 'mountkeeper/sdk';

/** rclone's metadata of one cached file. */
export interface FileMeta {
  readonly Size: number;
  /** Byte ranges that are present; null for none. */
  readonly Rs: readonly { readonly Pos: number; readonly Size: number }[] | null;
  readonly Fingerprint: string;
  readonly Dirty: boolean;
  readonly ModTime: string;
  readonly ATime: string;
}

/** The two folder trees of rclone's cache: the content of files, and one JSON metadata file for each. */
export interface CacheTrees {
  readonly data: string;
  readonly meta: string;
}

export function treesOf(cacheDir: string): CacheTrees {
  return {
    data: join(cacheDir, 'vfs', REMOTE),
    meta: join(cacheDir, 'vfsMeta', REMOTE),
  };
}

/** Undefined when the file does not exist; `'torn'` when it is incomplete. */
export async function readMeta(file: string): Promise<FileMeta | 'torn' | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // A folder may have taken the file's name.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'EISDIR') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    const meta = JSON.parse(text) as FileMeta;
    return typeof meta.Dirty === 'boolean' ? meta : 'torn';
  } catch {
    // Half-written.
    return 'torn';
  }
}

/** Writes it atomically and, unless `inHurry`, syncs it to disk before the rename. */
export async function writeMeta(file: string, meta: FileMeta, { inHurry = false } = {}): Promise<void> {
  const text = `${JSON.stringify(meta, undefined, '\t')}\n`;
  // `<file>.new` may be the record of another file.
  await writeWhole(file, text, {
    beside: `${file}.mountkeeper-new`,
    isDurable: !inHurry,
  });
}

/**
 * Relative paths of all files below a folder, one folder at a time. A folder that vanishes meanwhile is
 * skipped.
 */
export async function* filesBelow(root: string): AsyncGenerator<string> {
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await readdir(join(root, folder), {
      withFileTypes: true,
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
      throw error;
    });
    for (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) yield path;
    }
  }
}

/**
 * Runs `work` on every item, at most `places` at once. Rejects with the first error, once the others have ended
 * what they were at: nothing of it goes on beside whoever tries again.
 */
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
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    for (let item = await pull(); item.done !== true && !hasFailed; item = await pull())
      await work(item.value).catch((error: unknown) => {
        hasFailed = true;
        throw error;
      });
  };
  const ends = await Promise.allSettled(Array.from({ length: places }, worker));
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
}

/** Size and space on disk of a data file; undefined when it is not there. */
export async function dataFile(file: string): Promise<
  | {
      readonly bytes: number;
      readonly isWhole: boolean;
      readonly modifiedMs: number;
    }
  | undefined
> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  return found?.isFile() === true
    ? {
        bytes: found.size,
        isWhole: found.blocks * 512 >= found.size,
        modifiedMs: found.mtimeMs,
      }
    : undefined;
}
