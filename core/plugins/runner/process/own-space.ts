/**
 * How much plugins keep in their own folders: those lie in the state folder, and where its disk is full the daemon
 * itself can keep nothing any more. Looked at now and then while the process runs, the less often the longer it takes.
 */
import { lstat, readdir } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { openedFolder } from '../../../platform/files/give-tree.ts';

export interface SpaceLimit {
  /** On the disk. */
  readonly mostBytes: number;
  readonly mostFiles: number;
  readonly everyMs: number;
}

export const SPACE: SpaceLimit = { mostBytes: 512 * 1_048_576, mostFiles: 50_000, everyMs: 10_000 };
/** Looking takes no more than this part of the time. */
const PART = 50;
/** What `lstat` counts blocks in. */
const BLOCK_BYTES = 512;
const DEEPEST = 64;

export class OwnSpace {
  readonly #folders: readonly string[];
  readonly #limit: SpaceLimit;
  #nextMs: number | undefined;

  constructor(folders: readonly string[], limit = SPACE) {
    this.#folders = folders;
    this.#limit = limit;
  }

  /** The first folder that holds too much, with the sentence; undefined also where it is not yet time to look. */
  async problem(nowMs: number): Promise<{ readonly folder: string; readonly reason: string } | undefined> {
    this.#nextMs ??= nowMs + this.#limit.everyMs;
    if (nowMs < this.#nextMs) return undefined;
    const begunMs = performance.now();
    try {
      for (const folder of this.#folders) if (await isTooMuch(folder, this.#limit)) return this.#said(folder);
      return undefined;
    } finally {
      this.#nextMs = nowMs + Math.max(this.#limit.everyMs, PART * (performance.now() - begunMs));
    }
  }

  #said(folder: string): { readonly folder: string; readonly reason: string } {
    const { mostBytes, mostFiles } = this.#limit;
    const mebibytes = Math.round(mostBytes / 1_048_576);
    return {
      folder,
      reason:
        `it keeps more than ${mebibytes} MiB or ${mostFiles} files in ${folder}, ` +
        `or folders deeper than ${DEEPEST}; take some away`,
    };
  }
}

/** Stops where it is known. What goes meanwhile counts for nothing. */
async function isTooMuch(folder: string, { mostBytes, mostFiles }: SpaceLimit): Promise<boolean> {
  const found = { bytes: 0, files: 0 };
  const isOver = (): boolean => found.bytes > mostBytes || found.files > mostFiles;
  let isDeep = false;

  const look = async (handle: FileHandle, depth: number): Promise<void> => {
    if (depth > DEEPEST) return void (isDeep = true);
    const through = `/proc/self/fd/${String(handle.fd)}`;
    for (const name of await readdir(through)) {
      if (isOver() || isDeep) return;
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
  return isOver() || isDeep;
}
