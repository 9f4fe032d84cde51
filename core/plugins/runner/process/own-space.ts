/**
 * How much plugins keep on the disk of the state folder, where the daemon itself can keep nothing any more once it is
 * full: what lies in their own folders, and what their processes hold open there that has no name any more. Looked at
 * now and then while the process runs, the less often the longer it takes; at once where the disk has lost as much as
 * they may still take. How much the disk has free is asked more often, which costs next to nothing.
 */
import { lstat, readdir, statfs } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { openedFolder } from '../../../platform/files/give-tree.ts';
import type { ProcessIdentity } from '../../../platform/processes/proc-stat.ts';
import { namelessFiles } from './nameless-files.ts';
import type { Nameless } from './nameless-files.ts';

export interface SpaceLimit {
  /** On the disk. */
  readonly mostBytes: number;
  readonly mostFiles: number;
  /** Where the disk does not fill. */
  readonly everyMs: number;
}

export const SPACE: SpaceLimit = { mostBytes: 512 * 1_048_576, mostFiles: 50_000, everyMs: 10_000 };
/** Looking takes no more than this part of the time. */
const PART = 50;
/** The same while the disk fills. */
const PART_FILLING = 5;
/** Of the limit: a disk that has lost less does not fill, however little is left of the limit. */
const LEAST_LOSS = 1 / 16;
/** What `lstat` counts blocks in. */
const BLOCK_BYTES = 512;
const DEEPEST = 64;
const MIB = 1_048_576;

interface Kept {
  readonly bytes: number;
  readonly files: number;
  readonly isDeep: boolean;
}

export interface SpaceProblem {
  readonly folder: string;
  /** A sentence. */
  readonly reason: string;
}

export class OwnSpace {
  readonly #folders: readonly string[];
  readonly #limit: SpaceLimit;
  #nextMs: number | undefined;
  /** Not before, also where the disk fills. */
  #soonestMs = 0;
  /** What was free on the disk of each folder, at most since it was last looked at. */
  #freeBytes: readonly number[] = [];
  /** As much as the disk may lose before it is looked at. */
  #lossBytes: number;

  constructor(folders: readonly string[], limit = SPACE) {
    this.#folders = folders;
    this.#limit = limit;
    this.#lossBytes = limit.mostBytes * LEAST_LOSS;
  }

  /** The first folder for which it is too much; undefined also where it is not yet time to look. */
  async problem(
    nowMs: number,
    processes: () => Promise<readonly ProcessIdentity[]>,
  ): Promise<SpaceProblem | undefined> {
    this.#nextMs ??= nowMs + this.#limit.everyMs;
    const freeBytes = await Promise.all(this.#folders.map(freeAround));
    this.#freeBytes = freeBytes.map((free, index) => Math.max(free, this.#freeBytes[index] ?? 0));
    const isFilling = this.#freeBytes.some((most, index) => most - freeBytes[index]! >= this.#lossBytes);
    if (nowMs < (isFilling ? this.#soonestMs : this.#nextMs)) return undefined;
    this.#freeBytes = freeBytes;
    const begunMs = performance.now();
    try {
      return await this.#look(await namelessFiles(this.#folders, await processes()));
    } finally {
      const tookMs = performance.now() - begunMs;
      this.#nextMs = nowMs + Math.max(this.#limit.everyMs, PART * tookMs);
      this.#soonestMs = nowMs + PART_FILLING * tookMs;
    }
  }

  async #look(nameless: readonly Nameless[]): Promise<SpaceProblem | undefined> {
    const { mostBytes } = this.#limit;
    let most = 0;
    for (const folder of this.#folders) {
      const without = this.#namelessOf(folder, nameless);
      const kept = await keptIn(folder, without, this.#limit);
      const reason = tooMuch(folder, kept, without.bytes, this.#limit);
      if (reason !== undefined) return { folder, reason };
      most = Math.max(most, kept.bytes);
    }
    this.#lossBytes = Math.max(mostBytes - most, mostBytes * LEAST_LOSS);
    return undefined;
  }

  /** What was elsewhere on its disk counts as well: of several plugins in a process, nobody knows whose it is. */
  #namelessOf(folder: string, nameless: readonly Nameless[]): Pick<Kept, 'bytes' | 'files'> {
    const others = this.#folders.filter((other) => other !== folder);
    const own = nameless.filter(({ file }) => !others.some((other) => file.startsWith(`${other}/`)));
    return { bytes: own.reduce((sum, { bytes }) => sum + bytes, 0), files: own.length };
  }
}

/** Why a plugin must not be started: each time it would fill the disk a bit more before it is ended. */
export async function noRoom(folder: string, limit = SPACE): Promise<string | undefined> {
  return tooMuch(folder, await keptIn(folder, { bytes: 0, files: 0 }, limit), 0, limit);
}

function tooMuch(
  folder: string,
  kept: Kept,
  namelessBytes: number,
  { mostBytes, mostFiles }: SpaceLimit,
): string | undefined {
  if (!isOver(kept, { mostBytes, mostFiles }) && !kept.isDeep) return undefined;
  const mebibytes = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
  const nameless =
    namelessBytes > 0 ? ` (${mebibytes(namelessBytes)} in open files that have no name any more)` : '';
  return (
    `it keeps more than ${mebibytes(mostBytes)} or ${mostFiles} files in ${folder}${nameless}, ` +
    `or folders deeper than ${DEEPEST}; take some away`
  );
}

type Counted = Pick<Kept, 'bytes' | 'files'>;

function isOver({ bytes, files }: Counted, { mostBytes, mostFiles }: Omit<SpaceLimit, 'everyMs'>): boolean {
  return bytes > mostBytes || files > mostFiles;
}

/** 0 where there is no such folder. */
function freeAround(folder: string): Promise<number> {
  return statfs(folder).then(
    ({ bsize, bfree }) => bsize * bfree,
    () => 0,
  );
}

/** With what there is `already`. Stops where it is too much. What goes meanwhile counts for nothing. */
async function keptIn(folder: string, already: Counted, limit: SpaceLimit): Promise<Kept> {
  const found = { ...already, isDeep: false };

  const look = async (handle: FileHandle, depth: number): Promise<void> => {
    if (depth > DEEPEST) return void (found.isDeep = true);
    const through = `/proc/self/fd/${String(handle.fd)}`;
    for (const name of await readdir(through)) {
      if (isOver(found, limit) || found.isDeep) return;
      // It has gone meanwhile, or a link is in its place.
      await add(`${through}/${name}`, depth).catch(() => undefined);
    }
  };
  const add = async (file: string, depth: number): Promise<void> => {
    const stats = await lstat(file);
    found.files += 1;
    found.bytes += stats.blocks * BLOCK_BYTES;
    if (stats.isDirectory()) await openedFolder(file, (handle) => look(handle, depth + 1));
  };

  // It keeps nothing: there is no such folder.
  await openedFolder(folder, (handle) => look(handle, 0)).catch(() => undefined);
  return found;
}
