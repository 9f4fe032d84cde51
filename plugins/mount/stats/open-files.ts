import { readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readMeta } from '../cache/metadata.ts';
import type { CacheTrees, FileMeta } from '../cache/metadata.ts';

/** A cached file that rclone holds open with changes. */
export interface DirtyOpenFile {
  /** Relative to the cache's trees. */
  readonly path: string;
  readonly meta: FileMeta | 'torn';
}

/** Content that rclone has deleted but not closed, which happens only by mistake. */
export interface DeletedFile {
  /** Relative to the cache's trees. */
  readonly path: string;
  readonly inode: bigint;
  /** Where it can still be read, until rclone closes it. */
  readonly file: string;
}

export interface OpenFiles {
  /** Number of cached files that rclone has open, for reading or writing. */
  readonly open: number;
  /** Those of them with changes. */
  readonly dirty: readonly DirtyOpenFile[];
}

/** Descriptors that are examined before other work gets its turn. */
const SLICE = 256;
const ACCESS_MODE = 0o3;
const READ_ONLY = 0;
const DELETED = ' (deleted)';
const FUSE = '/dev/fuse';
/** Input, output and log: never cached files. */
const STANDARD: ReadonlySet<string> = new Set(['0', '1', '2']);

/**
 * Finds the cached files that rclone has open. Files open with changes are in no queue yet: rclone names
 * them only in their metadata on disk, and only the metadata of open files has to be read. `/proc` answers
 * at once, whatever the mount does.
 */
export async function openFiles(pid: number, trees: CacheTrees): Promise<OpenFiles> {
  const paths = new Set<string>();
  const data = onceAsked(() => realFolder(trees.data));
  const descriptors = readdirSync(`/proc/${pid}/fd`).filter((fd) => !STANDARD.has(fd));
  for (let start = 0; start < descriptors.length; start += SLICE) {
    if (start > 0) await new Promise((resolve) => setImmediate(resolve));
    for (const fd of descriptors.slice(start, start + SLICE)) {
      const path = cachedPath(pid, fd, data);
      if (path !== undefined) paths.add(path);
    }
  }
  const dirty: DirtyOpenFile[] = [];
  for (const path of paths) {
    const meta = await readMeta(join(trees.meta, path));
    // Metadata that is being written means that the file is changing, so it counts as dirty.
    if (meta === 'torn' || meta?.Dirty === true) dirty.push({ path, meta });
  }
  return { open: paths.size, dirty };
}

/** `/proc` shows paths without symlinks, so a cache folder behind a symlink has another path there. */
export function realFolder(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    // Not there yet: nobody has a file of it open.
    return folder;
  }
}

/** Following the links of a folder costs a call for each part of its path, and an idle rclone has no file open. */
function onceAsked(find: () => string): () => string {
  let found: string | undefined;
  return () => (found ??= find());
}

/** A descriptor open only for reading is rclone's own upload of the file, which its queue counts. */
function cachedPath(pid: number, fd: string, dataRoot: () => string): string | undefined {
  try {
    const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
    if (!target.startsWith('/') || target === FUSE || target.endsWith(DELETED)) return undefined;
    if (!target.startsWith(`${dataRoot()}/`)) return undefined;
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))?.[1] ?? '2';
    return (Number.parseInt(flags, 8) & ACCESS_MODE) === READ_ONLY
      ? undefined
      : target.slice(dataRoot().length + 1);
  } catch {
    // Closed meanwhile.
    return undefined;
  }
}

/**
 * Call it only while nothing can go stale: then every file that is deleted but open is one whose write-back
 * failed.
 */
export function deletedFiles(pid: number, trees: CacheTrees): readonly DeletedFile[] {
  const found: DeletedFile[] = [];
  const data = realFolder(trees.data);
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const file = `/proc/${pid}/fd/${fd}`;
    try {
      const target = readlinkSync(file);
      if (!target.startsWith(`${data}/`) || !target.endsWith(DELETED)) continue;
      found.push({
        path: target.slice(data.length + 1, -DELETED.length),
        inode: statSync(file, { bigint: true }).ino,
        file,
      });
    } catch {
      // Closed meanwhile.
    }
  }
  return found;
}
