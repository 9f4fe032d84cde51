import { readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readMeta } from '../cache/metadata.ts';
import type { CacheTrees, FileMeta } from '../cache/metadata.ts';

/** A cached file that rclone holds open with changes. */
export interface DirtyOpenFile {
  /** Below the cache's trees. */
  readonly path: string;
  readonly meta: FileMeta | 'torn';
}

/** Content that rclone has deleted and, as it does by mistake only, not closed. */
export interface DeletedFile {
  /** Below the cache's trees. */
  readonly path: string;
  readonly inode: bigint;
  /** Where it can still be read, as long as rclone has not collected it. */
  readonly file: string;
}

export interface OpenFiles {
  /** Cached files that rclone holds open, for reading or writing. */
  readonly open: number;
  /** Those among them that hold changes. */
  readonly dirty: readonly DirtyOpenFile[];
}

/** Descriptors looked at before other work gets its turn. */
const SLICE = 256;
const ACCESS_MODE = 0o3;
const READ_ONLY = 0;
const DELETED = ' (deleted)';
/** Input, output and log: never of the cache. */
const STANDARD: ReadonlySet<string> = new Set(['0', '1', '2']);

/**
 * Files open with changes are in no queue yet: rclone names them nowhere but in their documents on disk, and
 * only those of open files need to be read. `/proc` answers at once, whatever the mount does.
 */
export async function openFiles(pid: number, trees: CacheTrees): Promise<OpenFiles> {
  const paths = new Set<string>();
  const data = realFolder(trees.data);
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
    // Half-written this very moment: it changes, so it counts until it can be read.
    if (meta === 'torn' || meta?.Dirty === true) dirty.push({ path, meta });
  }
  return { open: paths.size, dirty };
}

/** `/proc` shows no links: a cache folder that one leads to has another name there. */
export function realFolder(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    return folder;
  }
}

/** Open for reading only is rclone's own upload of the file, which its queue counts. */
function cachedPath(pid: number, fd: string, dataRoot: string): string | undefined {
  try {
    const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
    if (!target.startsWith(`${dataRoot}/`) || target.endsWith(DELETED)) return undefined;
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))?.[1] ?? '2';
    return (Number.parseInt(flags, 8) & ACCESS_MODE) === READ_ONLY
      ? undefined
      : target.slice(dataRoot.length + 1);
  } catch {
    return undefined;
  }
}

/**
 * Looked for only while nothing can go stale: then every file that is deleted but open is one that rclone
 * gave up.
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
