/** Listings of a remote: asked of it past every cache, and read again by the rclone that mounts it. */
import { posix } from 'node:path';
import type { RcClient } from './control/remote-control.ts';
import { callFailure } from './error-messages.ts';
import { mapSome, NO_FOLDER, NOT_THERE, saidOfRefresh } from './refresh.ts';

/** Folders that are read at the same time. */
const FOLDERS_AT_ONCE = 4;

export interface ListItem {
  readonly Name: string;
  readonly Size: number;
  readonly ModTime: string;
  readonly IsDir: boolean;
  readonly Hashes?: Readonly<Record<string, string>>;
}

export class Listings {
  readonly #rc: RcClient;
  readonly #fs: string;

  constructor(rc: RcClient, fs: string) {
    this.#rc = rc;
    this.#fs = fs;
  }

  /** Undefined when there is no such folder. */
  async list(
    folder: string,
    signal: AbortSignal,
    opt: Readonly<Record<string, boolean>>,
  ): Promise<readonly ListItem[] | undefined> {
    try {
      const { list } = await this.#rc.call<{ list: ListItem[] | null }>(
        'operations/list',
        { fs: this.#fs, remote: folder, opt: { noMimeType: true, ...opt } },
        signal,
      );
      return list ?? [];
    } catch (error) {
      if (NOT_THERE.test((error as Error).message)) return undefined;
      throw error;
    }
  }

  /** Of these folders alone, and of these with all below; read again when somebody asks. */
  drop(folders: readonly string[], trees: readonly string[], signal: AbortSignal): Promise<unknown> {
    return this.#rc.call('vfs/forget', namesToForget(this.#fs, folders, trees), signal);
  }

  /**
   * rclone reads a folder without folders in it before it drops what it had: nothing is missing when the remote goes
   * away meanwhile. Another one, whose whole tree it would read so, it reads right after.
   */
  async readAgain(folders: readonly string[], signal: AbortSignal): Promise<void> {
    const dropped: string[] = [];
    const replace = async (folder: string): Promise<readonly string[]> => {
      const isRead = await this.#readLeaf(folder, signal).catch((error: unknown) => {
        // It may be a file by now, or may not be read: then it is dropped, as long as there is a NAS to read it from.
        if (signal.aborted || callFailure(error as Error, signal).remote === 'silent') throw error;
        return false;
      });
      if (!isRead) dropped.push(folder);
      return [];
    };
    await mapSome(folders, FOLDERS_AT_ONCE, replace);
    if (dropped.length === 0) return;
    await this.drop(dropped, [], signal);
    const read = async (folder: string): Promise<readonly string[]> => {
      // What cannot be read now is read when it is next asked for.
      await this.#refresh(folder, signal).catch(() => false);
      return [];
    };
    await mapSome(dropped, FOLDERS_AT_ONCE, read);
  }

  /** False where there are folders in it, and where the remote or the mount has no such folder. */
  async #readLeaf(folder: string, signal: AbortSignal): Promise<boolean> {
    const listed = await this.list(folder, signal, { noModTime: true });
    const isLeaf = listed !== undefined && listed.every(({ IsDir: isFolder }) => !isFolder);
    return isLeaf && this.#refresh(folder, signal, { recursive: 'true' });
  }

  /** False for a folder that the mount does not have, or as a file. */
  async #refresh(
    folder: string,
    signal: AbortSignal,
    options: { readonly recursive?: 'true' } = {},
  ): Promise<boolean> {
    const said = await saidOfRefresh(folder, { rc: this.#rc, fs: this.#fs, end: signal }, options);
    if (said !== 'OK' && !NOT_THERE.test(said) && said !== NO_FOLDER) throw new Error(said);
    return said === 'OK';
  }
}

/** A file's name drops only its folder's listing, a folder's name everything below it. */
function namesToForget(
  fs: string,
  folders: readonly string[],
  trees: readonly string[],
): Readonly<Record<string, string>> {
  const files = folders.map((folder, index) => [`file${index}`, posix.join(folder, 'any')] as const);
  const dirs = trees.map((folder, index) => [`dir${index}`, folder] as const);
  return { fs, ...Object.fromEntries([...files, ...dirs]) };
}
