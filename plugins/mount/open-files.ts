import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { readMeta } from './cache-meta.ts';
import type { CacheTrees } from './cache-meta.ts';
import type { DirtyOpenFile } from './guard.ts';

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

/**
 * Files open with changes are in no queue yet: rclone names them nowhere but in their documents on disk, and only those of
 * open files need to be read. `/proc` answers at once, whatever the mount does.
 */
export async function openFiles(pid: number, trees: CacheTrees): Promise<OpenFiles> {
  const paths = new Set<string>();
  const descriptors = readdirSync(`/proc/${pid}/fd`);
  for (let start = 0; start < descriptors.length; start += SLICE) {
    if (start > 0) await new Promise((resolve) => setImmediate(resolve));
    for (const fd of descriptors.slice(start, start + SLICE)) {
      const path = cachedPath(pid, fd, trees.data);
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

/** Open for reading only is rclone's own upload of the file, which its queue counts. */
function cachedPath(pid: number, fd: string, dataRoot: string): string | undefined {
  try {
    const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
    if (!target.startsWith(`${dataRoot}/`) || target.endsWith(' (deleted)')) return undefined;
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))?.[1] ?? '2';
    return (Number.parseInt(flags, 8) & ACCESS_MODE) === READ_ONLY ? undefined : target.slice(dataRoot.length + 1);
  } catch {
    return undefined;
  }
}
