import { rename, rm, stat } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Clock, Logger } from 'mountkeeper';
import { bootIdNow, readBootNote } from './boot-note.ts';
import { eachOf, filesBelow, readMeta } from '../cache/metadata.ts';
import type { CacheTrees, FileMeta } from '../cache/metadata.ts';
import { recoveredPath } from './recovered.ts';
import { isReadOnlyCache } from '../former/read-only-cache.ts';

const FILES_AT_ONCE = 16;

export interface PowerCut {
  readonly cacheDir: string;
  readonly trees: CacheTrees;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Removes files from a cache whose content may be lost in a power cut: metadata reaches the disk before the
 * content it describes, so rclone would show zeros for what was once read, and a copy of them would go up with
 * the next change. Does nothing, and resolves with false, unless the machine has been rebooted since rclone
 * used the folder: killing a process loses nothing that was written.
 */
export async function clearAfterPowerCut(at: PowerCut): Promise<boolean> {
  const note = await readBootNote(at.cacheDir);
  if (note === undefined || note.bootId === (await bootIdNow())) return false;
  const wasOnlyRead = await isReadOnlyCache(at.cacheDir);
  await eachOf(filesBelow(at.trees.meta), FILES_AT_ONCE, async (path) => {
    at.signal.throwIfAborted();
    await attend(path, { onDiskUntilMs: note.onDiskUntilMs, wasOnlyRead }, at);
  });
  return true;
}

async function attend(
  path: string,
  { onDiskUntilMs, wasOnlyRead }: { readonly onDiskUntilMs: number; readonly wasOnlyRead: boolean },
  at: PowerCut,
): Promise<void> {
  const [meta, record, content] = await Promise.all([
    readMeta(join(at.trees.meta, path)),
    found(join(at.trees.meta, path)),
    found(join(at.trees.data, path)),
  ]);
  if (meta === undefined || !record || !content) return;
  const isOnDisk = {
    record: record.ctimeMs < onDiskUntilMs,
    content: content.ctimeMs < onDiskUntilMs,
  };
  if (isThere({ meta, content, isOnDisk })) return;
  if (wasOnlyRead || (meta !== 'torn' && !meta.Dirty)) await forget(path, at);
  else await setAside(path, content, at);
}

interface Found {
  readonly meta: FileMeta | 'torn';
  readonly content: Stats;
  /** Whether each is known to be on the disk in its present state. */
  readonly isOnDisk: { readonly record: boolean; readonly content: boolean };
}

/** Dirty ones are a former version's: everything that such a record lists was written before the record. */
function isThere({ meta, content, isOnDisk }: Found): boolean {
  if (meta === 'torn') return isOnDisk.content;
  const isSettled = isOnDisk.record && isOnDisk.content;
  if (!meta.Dirty) return isSettled && content.size >= meta.Size;
  // A program had truncated it, and not closed it.
  return content.size < meta.Size ? isSettled : isOnDisk.record;
}

/** Keeps what there is of the changes for a person. The NAS keeps its version, and the share shows that. */
async function setAside(path: string, content: Stats, at: PowerCut): Promise<void> {
  const data = join(at.trees.data, path);
  const kept = content.size > 0 ? await recoveredPath(path, at) : undefined;
  if (kept !== undefined) await rename(data, kept);
  await forget(path, at);
  at.log.error(
    { path, kept: kept ?? null },
    'changes of the last seconds before a power cut may be lost; the NAS keeps what it has of the file',
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
