import { rename, rm, stat } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Clock, Logger, Processes } from 'mountkeeper';
import { bootIdNow, readBootNote } from './boot-note.ts';
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
 * Removes files from a cache whose content was lost in a power cut: metadata reaches the disk before the
 * content it describes, so rclone would upload an empty file over a good one, or show zeros for what was
 * once read. Does nothing, and resolves with false, unless the machine has been rebooted since rclone used
 * the folder: killing a process loses nothing that was written.
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
  /** Whether each is known to be on the disk in its present state. */
  readonly isOnDisk: { readonly record: boolean; readonly content: boolean };
}

async function isThere(path: string, { meta, content, isOnDisk }: Found, at: PowerCut): Promise<boolean> {
  // Incomplete metadata says nothing, so only the content counts.
  if (meta === 'torn') return isOnDisk.content;
  const isSettled = isOnDisk.record && isOnDisk.content;
  // Later writes may be there in part, while the metadata does not mention them.
  if (!meta.Dirty) return isSettled && content.size >= meta.Size;
  // A program has truncated it, and has not closed it.
  if (content.size < meta.Size) return isSettled;
  // Everything that the metadata lists was written before the metadata.
  return isOnDisk.record || isWholly(path, { meta, content }, at);
}

/**
 * Whether the content matches its metadata, for metadata that is newer than what is known to be on the
 * disk.
 */
async function isWholly(
  path: string,
  { meta, content }: { readonly meta: FileMeta; readonly content: Stats },
  { processes, trees }: PowerCut,
): Promise<boolean> {
  const file = join(trees.data, path);
  // Not closed, or the last metadata is lost.
  if (!(await isExact(meta, file))) return false;
  if (content.blocks === 0) return content.size <= BLOCK;
  const blocks = await blocksOf(file, processes);
  // Some file systems do not report blocks.
  return blocks.length === 0 || missingRanges(meta.Rs ?? [], blocks).length === 0;
}

/** Keeps what there is of the changes for a person. The NAS keeps its version, and the share shows that. */
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

/**
 * Content first: content without metadata would be treated as litter; metadata of a clean file without
 * content is harmless.
 */
async function forget(path: string, { trees }: PowerCut): Promise<void> {
  await rm(join(trees.data, path), { force: true });
  await rm(join(trees.meta, path), { force: true });
}

async function found(file: string): Promise<Stats | undefined> {
  return stat(file).catch(undefinedWhenMissing);
}
