/** Files of one folder that are not on the remote yet, by the cache's records and rclone's queue. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { UnsavedFile } from 'mountkeeper';
import { eachOf, readMeta } from './metadata.ts';

const READ_AT_ONCE = 16;

/** As rclone's call `vfs/queue` gives it; `name` is the path in the share. */
export interface QueuedFile {
  readonly name: string;
  readonly tries?: number;
  readonly uploading?: boolean;
}

/** In the order in which the folder lists them. `meta`: where the metadata of the share's files is. */
export async function unsavedIn(
  meta: string,
  folder: string,
  queue: readonly QueuedFile[],
): Promise<readonly UnsavedFile[]> {
  const queued = new Map(queue.map((file) => [file.name, file]));
  const found: UnsavedFile[] = [];
  await eachOf(await filesOf(join(meta, folder)), READ_AT_ONCE, async (name) => {
    const read = await readMeta(join(meta, folder, name));
    if (read === undefined || read === 'torn' || !read.Dirty) return;
    const state = stateOf(queued.get(folder === '' ? name : `${folder}/${name}`));
    found.push({
      name,
      bytes: read.Size,
      modifiedMs: Date.parse(read.ModTime),
      state,
    });
  });
  return found;
}

async function filesOf(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    // Nothing of this folder is in the cache, or a file has taken its name.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

function stateOf(queued: QueuedFile | undefined): UnsavedFile['state'] {
  if (queued?.uploading === true) return 'uploading';
  return (queued?.tries ?? 0) > 0 ? 'failed' : 'waiting';
}
