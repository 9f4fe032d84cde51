/**
 * What was written right before a power cut. Names and sizes can be on the disk then without the content: such a file
 * is empty, short, or full of zeros, and must not replace what the remote has before somebody has looked at it. It is
 * told by its inode, size and modification time, so it counts again once it is written again.
 */
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing, writeWhole, withReserve } from 'mountkeeper';
import type { LateWritesOptions, Processes, UpperEntry, WriteLayer } from 'mountkeeper';
import { parentOf } from './paths.ts';
import { identityOf, isSameWriting, mayBeThere, Records } from './records.ts';
import type { Identity } from './records.ts';
import { createScanner } from './scan.ts';
import type { Scan } from './scan.ts';

const FILE = 'late-writes.json';

/** No power cut. */
export const NOTHING_LATE = { isTorn: () => false, wasRemoved: () => false };

interface Kept {
  /** Identifies the upper folder. */
  readonly upper: string;
  readonly files: readonly Identity[];
  /** Paths that were removed late: each may be what one of the files was renamed from. */
  readonly removed: readonly string[];
}

export class LateWrites {
  readonly #files: ReadonlyMap<string, Identity>;
  readonly #removed: ReadonlySet<string>;

  constructor({ files, removed }: Pick<Kept, 'files' | 'removed'>) {
    this.#files = new Map(files.map((file) => [file.inode, file]));
    this.#removed = new Set(removed);
  }

  /** Rejects when it cannot be read: what it lists would be sent. */
  static async read({ upper, records }: Pick<WriteLayer, 'upper' | 'records'>): Promise<LateWrites> {
    return new LateWrites(await keptIn(records, await idOf(upper)));
  }

  /** Whether the content of this file may be missing. */
  isTorn(entry: Parameters<typeof identityOf>[0]): boolean {
    return this.#files.size > 0 && isSameWriting(this.#files.get(String(entry.inode)), identityOf(entry));
  }

  wasRemoved(path: string): boolean {
    return this.#removed.has(path);
  }
}

/**
 * Call it after a power cut, before anything is done with the upper folder. Resolves with the number of files whose
 * content may be missing, once they are on record for good. What a former power cut left stays on record.
 */
export async function noteLateWrites(
  { upper: folder, records, sinceMs, signal }: LateWritesOptions,
  processes: Pick<Processes, 'run'>,
): Promise<number> {
  const upper = await idOf(folder).catch(undefinedWhenMissing);
  if (upper === undefined) return 0;
  const [former, { places }, scan] = [
    await keptIn(records, upper),
    await Records.peek(records, upper),
    await createScanner(folder, processes).scan(signal),
  ];
  const earlier = new LateWrites(former);
  const sinceNs = BigInt(Math.trunc(sinceMs * 1_000)) * 1_000n;
  const entries = [...scan.entries.values()];
  const torn = entries.filter(
    (entry) => isWritten(entry) && (entry.changedNs >= sinceNs || earlier.isTorn(entry)),
  );
  if (torn.length === 0) return 0;
  const gone = [
    ...entries.filter(({ kind }) => kind === 'whiteout').map(({ path }) => path),
    ...[...places].filter(([place, one]) => mayBeThere(one) && !scan.entries.has(place)).map(([one]) => one),
  ];
  const removed = gone.filter((path) => earlier.wasRemoved(path) || isFolderLate(path, scan, sinceNs));
  const kept: Kept = { upper, files: torn.map(identityOf), removed };
  await withReserve(records, () => writeWhole(join(records, FILE), JSON.stringify(kept)));
  return torn.length;
}

function isWritten({ kind, hasNoData }: Pick<UpperEntry, 'kind' | 'hasNoData'>): boolean {
  return kind === 'file' && hasNoData !== true;
}

/** Whether a name may have left the path's folder so late. */
function isFolderLate(path: string, { folders }: Scan, sinceNs: bigint): boolean {
  const [, modifiedNs] = folders.get(parentOf(path))?.split(' ') ?? [];
  return modifiedNs === undefined || BigInt(modifiedNs) >= sinceNs;
}

async function idOf(upper: string): Promise<string> {
  const { ino, birthtimeNs } = await lstat(upper, { bigint: true });
  return `${ino} ${birthtimeNs}`;
}

async function keptIn(records: string, upper: string): Promise<Pick<Kept, 'files' | 'removed'>> {
  const text = await readFile(join(records, FILE), 'utf8').catch(undefinedWhenMissing);
  const kept = text === undefined ? undefined : (JSON.parse(text) as Kept);
  return kept?.upper === upper ? kept : { files: [], removed: [] };
}
