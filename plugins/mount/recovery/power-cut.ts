import { rename, rm, stat } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Logger, Processes } from 'mountkeeper';
import { bootIdNow, readBootNote } from './boot-record.ts';
import { blocksOf } from '../cache/disk-blocks.ts';
import { eachOf, filesBelow, readMeta } from '../cache/metadata.ts';
import type { CacheTrees, FileMeta } from '../cache/metadata.ts';
import { BLOCK, isExact, missingRanges } from '../cache/ranges.ts';
import { recoveredPath } from './recovered.ts';

const FILES_AT_ONCE = 16;

export interface PowerCut {
  readonly cacheDir: string;
  readonly trees: CacheTrees;
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  readonly signal: AbortSignal;
}

/**
 * Takes out of a cache what a power cut has left without its content: records reach the disk before what they
 * tell of, and rclone would send up an empty file in place of a good one, and show zeros for what was once
 * read. Does nothing where the machine has not been started anew since rclone worked on the folder: a kill
 * takes nothing that was written. True where it has been.
 */
export async function clearAfterPowerCut(at: PowerCut): Promise<boolean> {
  const note = await readBootNote(at.cacheDir);
  if (note === undefined || note.bootId === (await bootIdNow())) return false;
  await eachOf(filesBelow(at.trees.meta), FILES_AT_ONCE, async (path) => {
    at.signal.throwIfAborted();
    await attend(path, note.onDiskUntilMs, at);
  });
  return true;
}

async function attend(path: string, onDiskUntilMs: number, at: PowerCut): Promise<void> {
  const [meta, record, content] = await Promise.all([
    readMeta(join(at.trees.meta, path)),
    found(join(at.trees.meta, path)),
    found(join(at.trees.data, path)),
  ]);
  if (meta === undefined || !record || !content) return;
  const isOnDisk = { record: record.ctimeMs < onDiskUntilMs, content: content.ctimeMs < onDiskUntilMs };
  if (await isThere(path, { meta, content, isOnDisk }, at)) return;
  if (meta !== 'torn' && !meta.Dirty) await forget(path, at);
  else await setAside(path, content, at);
}

interface Found {
  readonly meta: FileMeta | 'torn';
  readonly content: Stats;
  /** Known to be, as they are now. */
  readonly isOnDisk: { readonly record: boolean; readonly content: boolean };
}

async function isThere(path: string, { meta, content, isOnDisk }: Found, at: PowerCut): Promise<boolean> {
  // It tells nothing, and the content speaks for itself.
  if (meta === 'torn') return isOnDisk.content;
  const isSettled = isOnDisk.record && isOnDisk.content;
  // What was written to it since may be there in part, with a record that knows nothing of it.
  if (!meta.Dirty) return isSettled && content.size >= meta.Size;
  // A program has made it shorter, and has not closed it.
  if (content.size < meta.Size) return isSettled;
  // Whatever a record tells of was written before it.
  return isOnDisk.record || isWholly(path, { meta, content }, at);
}

/**
 * Whether content of a record that is younger than what is known to be on the disk is there as the record
 * tells.
 */
async function isWholly(
  path: string,
  { meta, content }: { readonly meta: FileMeta; readonly content: Stats },
  { processes, trees }: PowerCut,
): Promise<boolean> {
  const file = join(trees.data, path);
  // Not closed, or the last record is lost.
  if (!(await isExact(meta, file))) return false;
  if (content.blocks === 0) return content.size <= BLOCK;
  const blocks = await blocksOf(file, processes);
  // Some file systems do not tell.
  return blocks.length === 0 || missingRanges(meta.Rs ?? [], blocks).length === 0;
}

/** What there is of the changes is kept for a person. The NAS keeps what it has, and the share shows that. */
async function setAside(path: string, content: Stats, at: PowerCut): Promise<void> {
  const data = join(at.trees.data, path);
  const kept = content.size > 0 ? await recoveredPath(path, at) : undefined;
  if (kept !== undefined) await rename(data, kept);
  await forget(path, at);
  at.log.error(
    { path, kept: kept ?? null },
    'changes of the last seconds before a power cut are lost; the NAS keeps what it has of the file',
  );
}

/** Content first: without a record it counts as litter, a record without content of a clean file is none. */
async function forget(path: string, { trees }: PowerCut): Promise<void> {
  await rm(join(trees.data, path), { force: true });
  await rm(join(trees.meta, path), { force: true });
}

async function found(file: string): Promise<Stats | undefined> {
  return stat(file).catch(() => undefined);
}
