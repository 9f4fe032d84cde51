/**
 * Decides whether the lower layer, or the overlay, shows what users should see once an entry leaves the
 * upper folder.
 */
import type { BigIntStats } from 'node:fs';
import type { LeavingEntry, RemoteEntry, RemoteVersion } from 'mountkeeper';
import type { Seen } from './find-many.ts';
import { inSeconds } from './entry-check.ts';

export interface BelowRules {
  /** Two times of one file that differ by at most this many milliseconds count as equal. */
  readonly precisionMs: () => number;
  /** Whether rclone has content of a file of that size in its own cache, or may have. */
  readonly isCached: (path: string, bytes: number) => boolean;
}

/** `below`: the lower layer's entry. */
export function isShownBelow(
  entry: LeavingEntry,
  below: RemoteEntry | undefined,
  rules: BelowRules,
): boolean {
  if (entry.kind === 'whiteout') return below === undefined;
  if (entry.kind !== 'file') return false;
  const wanted = wantedBelow(entry);
  const isPair = wanted?.kind === 'file' && below?.kind === 'file';
  return isPair
    ? isVersionShown(entry, { wanted: wanted.version, below: below.version }, rules)
    : wanted?.kind === below?.kind;
}

interface Pair {
  readonly wanted: RemoteVersion;
  readonly below: RemoteVersion;
}

function isVersionShown({ copy, path }: LeavingEntry, { wanted, below }: Pair, rules: BelowRules): boolean {
  if (below.bytes !== wanted.bytes) return false;
  const precisionMs = rules.precisionMs();
  if (Number.isFinite(precisionMs)) {
    return Math.abs(below.modifiedMs - wanted.modifiedMs) <= Math.max(precisionMs, 1);
  }
  // rclone identifies versions in its own cache by size and time: without times it might show a former
  // content.
  return copy !== undefined || !rules.isCached(path, below.bytes);
}

function wantedBelow({ bytes, modifiedNs, theirs }: LeavingEntry): RemoteEntry | undefined {
  if (theirs !== undefined) return theirs.entry;
  return { name: '', kind: 'file', version: { bytes, modifiedMs: Number(modifiedNs / 1_000_000n) } };
}

/** `stats`: of the file in the aside folder. `shown`: what the overlay shows at its path. */
export function isInPlace(entry: LeavingEntry, stats: BigIntStats, shown: Seen | undefined): boolean {
  // The overlay still shows the file itself, because the kernel caches its name.
  if (shown?.changed.startsWith(inSeconds(stats.ctimeNs)) === true) return false;
  const { bytes, copy, hasNoData, theirs } = entry;
  if (theirs !== undefined)
    return theirs.entry?.kind !== 'file' || isFileOf(shown, theirs.entry.version.bytes);
  return copy !== undefined || hasNoData === true || isFileOf(shown, bytes);
}

function isFileOf(shown: Seen | undefined, bytes: number): boolean {
  return shown?.type === 'f' && shown.bytes === bytes;
}
