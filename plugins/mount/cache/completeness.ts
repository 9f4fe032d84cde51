import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from '../rclone/kept-names.ts';
import type { CacheTrees, FileMeta } from './metadata.ts';
import { covers, unite } from './ranges.ts';

/** What the remote reports about a file. */
export interface RemoteFile {
  readonly bytes: number;
  readonly modifiedMs: number;
}

/**
 * Whether the whole file is in the cache and is the remote's current version: judged by its cache metadata
 * and the size of its content, without any call into the mount. Synchronous, because a hundred thousand
 * small reads are five times as fast that way; never call it in the daemon. `path`: as rclone shows it.
 */
export function isWholeInCache(trees: CacheTrees, path: string, remote: RemoteFile): boolean {
  // An empty file is always complete.
  if (remote.bytes === 0) return true;
  const meta = currentMeta(trees, path, remote);
  return meta !== undefined && covers(meta.Rs, meta.Size);
}

/**
 * How much of the remote's current version is in the cache, by the same records: they lag behind while the file is
 * open. Never call it in the daemon.
 */
export function bytesInCache(trees: CacheTrees, path: string, remote: RemoteFile): number {
  const meta = currentMeta(trees, path, remote);
  return unite(meta?.Rs ?? [], meta?.Size ?? 0).reduce((sum, { Size }) => sum + Size, 0);
}

/** Undefined where the cache holds nothing of the file, or another version of it. */
function currentMeta(trees: CacheTrees, path: string, remote: RemoteFile): FileMeta | undefined {
  const onDisk = cachePath(path);
  const meta = metaOf(join(trees.meta, onDisk));
  if (meta === undefined || sizeOf(join(trees.data, onDisk)) !== meta.Size) return undefined;
  // Changed here and not uploaded yet: it is newer than the remote's version.
  return meta.Dirty || (meta.Size === remote.bytes && isSame(meta, remote)) ? meta : undefined;
}

/** A content file has its full size from the start, with holes where nothing was fetched yet. */
export function holdsContent(trees: CacheTrees, path: string, bytes: number): boolean {
  const found = statSync(join(trees.data, cachePath(path)), { throwIfNoEntry: false });
  return found?.size === bytes && found.blocks * 512 >= bytes;
}

/**
 * Compares a file with rclone's fingerprint: the size, then the modification time where the backend gives
 * one cheaply, or a hash. The time is compared where there is one.
 */
export function isSame(
  { Fingerprint }: Pick<FileMeta, 'Fingerprint'>,
  { bytes, modifiedMs }: RemoteFile,
): boolean {
  const [size, ...rest] = Fingerprint.split(',');
  if (Number(size) !== bytes) return false;
  const time = rest.map(timeOf).find((found) => found !== undefined);
  return time === undefined || Math.trunc(time) === Math.trunc(modifiedMs);
}

/** `2026-11-21 08:56:23.25 +0000 UTC` */
export function timeOf(part: string): number | undefined {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) \+0000 UTC$/.exec(part);
  return match === null ? undefined : Date.parse(`${match[1] ?? ''}T${match[2] ?? ''}Z`);
}

function metaOf(file: string): FileMeta | undefined {
  try {
    const meta = JSON.parse(readFileSync(file, 'utf8')) as FileMeta;
    return typeof meta.Dirty === 'boolean' && typeof meta.Fingerprint === 'string' ? meta : undefined;
  } catch {
    // Missing, or being written at this moment.
    return undefined;
  }
}

function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}
