/** One entry of an upper folder, as an uploader sees it. */
import { execFileSync } from 'node:child_process';
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { UpperEntry } from 'mountkeeper';

function mark(file: string, name: string): string | undefined {
  try {
    return execFileSync(
      'getfattr',
      ['-h', '--absolute-names', '--only-values', '-n', `trusted.overlay.${name}`, file],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
    );
  } catch {
    // It has none.
    return undefined;
  }
}

/** Reads the entry and its overlay attributes. Rejects when it is not there. */
export async function upperEntry(upper: string, path: string): Promise<UpperEntry> {
  const file = join(upper, path);
  const stats = await lstat(file, { bigint: true });
  const kind = stats.isDirectory()
    ? 'folder'
    : stats.isCharacterDevice()
      ? 'whiteout'
      : stats.isFile()
        ? 'file'
        : 'other';
  const movedFrom = kind === 'folder' ? mark(file, 'redirect') : undefined;
  return {
    path,
    kind,
    inode: stats.ino,
    bytes: Number(stats.size),
    modifiedNs: stats.mtimeNs,
    changedNs: stats.ctimeNs,
    isOpaque: kind === 'folder' && mark(file, 'opaque') === 'y',
    ...(movedFrom !== undefined && { movedFrom }),
  };
}
