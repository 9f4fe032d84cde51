/**
 * What a killed rclone of a former version left half-done in its write cache. The next one would throw it away: it
 * deletes content without readable metadata, and completes a dirty file from the remote where the metadata does not
 * list yet what was written. What cannot be told is kept for a person.
 */
import { link, mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Clock, Logger, Processes } from 'mountkeeper';
import { blocksOf, writtenZeros } from '../cache/disk-blocks.ts';
import { dataFile, eachOf, filesBelow, readMeta, treesOf, writeMeta } from '../cache/metadata.ts';
import type { CacheTrees, FileMeta } from '../cache/metadata.ts';
import { covers, presentRanges } from '../cache/ranges.ts';
import { recoveredPath } from '../recovery/recovered.ts';
import { heldFiles, SECOND_LINKS } from '../recovery/held-files.ts';

const FILES_AT_ONCE = 16;

export interface FormerFiles {
  readonly cacheDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
}

type At = FormerFiles & { readonly trees: CacheTrees };

/** Call it while no rclone uses the cache; again after each kill of one that sends from it. */
export async function mendFormer(files: FormerFiles): Promise<void> {
  const at = { ...files, trees: treesOf(files.cacheDir) };
  await putBack(at);
  await eachOf(filesBelow(at.trees.meta), FILES_AT_ONCE, (path) => mend(path, at));
  await eachOf(filesBelow(at.trees.data), FILES_AT_ONCE, async (path) => {
    if ((await readMeta(join(at.trees.meta, path))) === undefined) await keepAside(path, at);
  });
}

/**
 * Changes that rclone had given up in an outage: the newest version of a file goes back into the cache, unless there
 * is one already.
 */
async function putBack(at: At): Promise<void> {
  for (const held of (await heldFiles(at.cacheDir)).toReversed()) {
    const [data, meta] = [join(at.trees.data, held.path), join(at.trees.meta, held.path)];
    const [here, there] = await Promise.all([inode(data), inode(held.data)]);
    if (here === there) continue;
    const record = await readMeta(held.meta);
    if (here !== undefined || record === undefined || record === 'torn' || !record.Dirty) {
      await keep(held.data, held.path, at);
      continue;
    }
    for (const file of [data, meta]) await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    // Metadata first, because rclone deletes content that has none.
    await rename(held.meta, meta);
    await rename(held.data, data);
    at.log.warn({ path: held.path }, 'changes that rclone gave up are in the cache again and go up');
  }
  for (const folder of SECOND_LINKS) await rm(join(at.cacheDir, folder), { recursive: true, force: true });
}

async function inode(file: string): Promise<bigint | undefined> {
  return (await stat(file, { bigint: true }).catch(undefinedWhenMissing))?.ino;
}

async function mend(path: string, at: At): Promise<void> {
  const file = join(at.trees.meta, path);
  const meta = await readMeta(file);
  if (meta === undefined || (meta !== 'torn' && !meta.Dirty)) return;
  const content = await dataFile(join(at.trees.data, path));
  if (content === undefined || meta === 'torn') {
    if (content) await keepAside(path, at);
    else if (!file.endsWith('.mountkeeper-new'))
      at.log.error({ path }, 'content of a dirty file is missing: look into the folder `recovered`');
    await rm(file, { force: true });
  } else if (!covers(meta.Rs, content.bytes)) await mendRanges(path, meta, content.bytes, at);
}

async function mendRanges(path: string, meta: FileMeta, bytes: number, at: At): Promise<void> {
  const ranges = await presentRanges(meta, join(at.trees.data, path), bytes, async (file, content) =>
    writtenZeros(await blocksOf(file, at.processes), content),
  );
  await writeMeta(join(at.trees.meta, path), {
    ...meta,
    Size: bytes,
    Rs: ranges,
  });
}

/** Empty files and files that are only holes had just been opened; anything else is kept. */
async function keepAside(path: string, at: At): Promise<void> {
  const file = join(at.trees.data, path);
  const found = await stat(file).catch(undefinedWhenMissing);
  if (found && found.size > 0 && (found.blocks > 0 || found.size <= 4_096)) await keep(file, path, at);
  await rm(file, { force: true });
}

/** By a link, so that nothing is lost when this is broken off. */
async function keep(file: string, path: string, at: At): Promise<void> {
  const kept = await recoveredPath(path, at);
  await link(file, kept);
  at.log.warn({ path, kept }, 'content that cannot be told is kept aside');
}
