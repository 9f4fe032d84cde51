/** Checks whether an entry of the upper folder is unchanged since the uploader's scan. */
import type { BigIntStats } from 'node:fs';
import { join, posix } from 'node:path';
import { lstatIfThere } from 'mountkeeper';
import type { LeavingEntry } from 'mountkeeper';

export function isUnchanged(entry: LeavingEntry, upper: string): boolean {
  const stats = lstatIfThere(join(upper, entry.path));
  return (
    stats !== undefined &&
    isStill(entry, stats) &&
    (entry.kind === 'whiteout' || stats.ctimeNs === entry.changedNs)
  );
}

/** Whether a folder and those that are shown with it have not changed since the scan. */
export function areUnchanged(folder: LeavingEntry, upper: string): boolean {
  return [folder, ...(folder.shownWith ?? [])].every((one) => isUnchanged(one, upper));
}

/** Whether nothing has been made, removed or renamed in these folders since the scan. Their own marks do not count. */
export function haveSameNames(folder: LeavingEntry, upper: string): boolean {
  return [folder, ...(folder.shownWith ?? [])].every(({ path, inode, modifiedNs }) => {
    const stats = lstatIfThere(join(upper, path));
    return stats?.ino === inode && stats.mtimeNs === modifiedNs;
  });
}

/** The same inode with the same content. The ctime does not count, because moving the entry changes it. */
export function isStill({ bytes, inode, kind, modifiedNs }: LeavingEntry, stats: BigIntStats): boolean {
  if (kind === 'whiteout') return stats.isCharacterDevice();
  if (stats.ino !== inode) return false;
  return kind === 'folder'
    ? stats.isDirectory()
    : stats.size === BigInt(bytes) && stats.mtimeNs === modifiedNs;
}

/** Folders whose listing on the remote has changed by moving these entries. */
export function placesOf(entries: readonly LeavingEntry[]): readonly string[] {
  return [
    ...new Set(
      entries.flatMap(({ path, movedFrom, nowAt }) => [path, movedFrom ?? path, nowAt ?? path].map(parentOf)),
    ),
  ];
}

/** In the format of `find`: seconds with nine decimal digits. */
export function inSeconds(ns: bigint): string {
  return `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, '0')}`;
}

export function parentOf(path: string): string {
  return path.includes('/') ? posix.dirname(path) : '';
}
