/** Whether an entry of the upper folder is as it was when the uploader looked at it. */
import { lstatSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { join, posix } from 'node:path';
import type { LeavingEntry } from 'mountkeeper';

export function isUnchanged(entry: LeavingEntry, upper: string): boolean {
  const stats = lookAt(join(upper, entry.path));
  return (
    stats !== undefined &&
    isStill(entry, stats) &&
    (entry.kind === 'whiteout' || stats.ctimeNs === entry.changedNs)
  );
}

function lookAt(path: string): BigIntStats | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false });
}

/** The same thing with the same content. Its time of change does not count: moving it changes that. */
export function isStill({ bytes, inode, kind, modifiedNs }: LeavingEntry, stats: BigIntStats): boolean {
  if (kind === 'whiteout') return stats.isCharacterDevice();
  if (stats.ino !== inode) return false;
  return kind === 'folder'
    ? stats.isDirectory()
    : stats.size === BigInt(bytes) && stats.mtimeNs === modifiedNs;
}

/** Folders in which the remote has changed something by moving these. */
export function placesOf(entries: readonly LeavingEntry[]): readonly string[] {
  return [
    ...new Set(
      entries.flatMap(({ path, movedFrom, nowAt }) => [path, movedFrom ?? path, nowAt ?? path].map(parentOf)),
    ),
  ];
}

/** As `find` prints it, with nine digits of a fraction. */
export function inSeconds(ns: bigint): string {
  return `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, '0')}`;
}

export function parentOf(path: string): string {
  return path.includes('/') ? posix.dirname(path) : '';
}
