import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { readMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';

export interface OpenFiles {
  /** Number of cached files that rclone has open, for reading or writing. */
  readonly open: number;
  /** How many of them have changes, in a mount that a former version made. */
  readonly dirty: number;
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
  let dirty = 0;
  for (const path of paths) {
    const meta = await readMeta(join(trees.meta, path));
    // Metadata that is being written means that the file is changing, so it counts as dirty.
    if (meta === 'torn' || meta?.Dirty === true) dirty += 1;
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
