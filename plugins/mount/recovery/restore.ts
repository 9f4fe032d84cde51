import { mkdir, open, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock, Logger } from 'mountkeeper';
import { dataFile, readMeta, writeMeta } from '../cache/metadata.ts';
import type { CacheTrees, FileMeta } from '../cache/metadata.ts';
import { covers, missingRanges, presentRanges, remoteBytes, unite } from '../cache/ranges.ts';
import type { ByteRange } from '../cache/ranges.ts';
import { QUARANTINE, quarantinedFiles } from './quarantine.ts';
import { recoveredPath } from './recovered.ts';

const PIECE_BYTES = 1_048_576;

export interface Restore {
  readonly cacheDir: string;
  readonly trees: CacheTrees;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Version {
  readonly data: string;
  readonly meta: FileMeta;
  readonly bytes: number;
  readonly ranges: readonly ByteRange[];
}

/**
 * Restores quarantined versions to the cache as dirty files, which rclone completes and uploads. Later
 * changes are laid over earlier ones; when there are several versions of a file, the older ones are kept
 * for a person, too.
 */
export async function restoreQuarantined(at: Restore): Promise<void> {
  const byPath = new Map<string, { data: string; meta: string }[]>();
  for await (const quarantined of quarantinedFiles(at.cacheDir))
    byPath.set(quarantined.path, [...(byPath.get(quarantined.path) ?? []), quarantined]);
  for (const [path, quarantined] of byPath) {
    const files = [...quarantined, { data: join(at.trees.data, path), meta: join(at.trees.meta, path) }];
    const versions = (await Promise.all(files.map(read))).filter((version) => version !== undefined);
    await lay(path, versions, at);
  }
  // What is left has no readable metadata.
  for await (const { path, data } of quarantinedFiles(at.cacheDir))
    await rename(data, await recoveredPath(path, at));
  await rm(join(at.cacheDir, QUARANTINE), { recursive: true, force: true });
}

/** Undefined when there is nothing to upload. */
async function read(file: { readonly data: string; readonly meta: string }): Promise<Version | undefined> {
  const meta = await readMeta(file.meta);
  const content = await dataFile(file.data);
  if (meta === undefined || meta === 'torn' || !meta.Dirty || content === undefined) return undefined;
  return {
    data: file.data,
    meta,
    bytes: content.bytes,
    ranges: await presentRanges(meta, file.data, content.bytes),
  };
}

async function lay(path: string, versions: readonly Version[], at: Restore): Promise<void> {
  const newest = versions.at(-1);
  const oldest = versions[0];
  if (!newest || !oldest) return;
  let { bytes, ranges } = newest;
  for (const version of versions.slice(0, -1).reverse()) {
    const missing = missingRanges(version.ranges, ranges).filter(() => !covers(newest.ranges, newest.bytes));
    // A version shorter than the remote file was truncated on purpose.
    if (newest.bytes >= remoteBytes(newest.meta) && missing.length > 0)
      bytes = Math.max(bytes, version.bytes);
    const wanted = unite(missing, bytes);
    await copy(version.data, newest.data, wanted);
    ranges = unite([...ranges, ...wanted], bytes);
    await rename(version.data, await recoveredPath(path, at));
  }
  const data = join(at.trees.data, path);
  await mkdir(dirname(data), { recursive: true, mode: 0o700 });
  // Metadata first, because rclone deletes content that has none.
  await writeMeta(join(at.trees.meta, path), {
    ...newest.meta,
    Fingerprint: oldest.meta.Fingerprint,
    ModTime: new Date(newest.meta.ModTime).toISOString(),
    Size: bytes,
    Rs: ranges,
    Dirty: true,
  });
  if (newest.data !== data) await rename(newest.data, data);
  await utimes(data, new Date(newest.meta.ModTime), new Date(newest.meta.ModTime));
  at.log.warn(
    { path, versions: versions.length, bytes },
    'changes that rclone gave up are in the cache again and go up',
  );
}

async function copy(from: string, to: string, ranges: readonly ByteRange[]): Promise<void> {
  const source = await open(from, 'r');
  const target = await open(to, 'r+');
  try {
    for (const piece of ranges.flatMap(pieces)) {
      const { bytesRead, buffer } = await source.read(Buffer.alloc(piece.Size), 0, piece.Size, piece.Pos);
      await target.write(buffer, 0, bytesRead, piece.Pos);
    }
    await target.sync();
  } finally {
    await source.close();
    await target.close();
  }
}

function pieces({ Pos, Size }: ByteRange): readonly ByteRange[] {
  return Array.from({ length: Math.ceil(Size / PIECE_BYTES) }, (_, index) => {
    const done = index * PIECE_BYTES;
    return { Pos: Pos + done, Size: Math.min(PIECE_BYTES, Size - done) };
  });
}

/** True while quarantined versions wait to be restored. */
export async function hasQuarantined(cacheDir: string): Promise<boolean> {
  return stat(join(cacheDir, QUARANTINE)).then(
    () => true,
    () => false,
  );
}
