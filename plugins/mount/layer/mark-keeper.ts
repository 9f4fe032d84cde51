/** Marks of folders in the upper layer of a mounted overlay: where what lies below them is, and whether it shows. */
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { LeavingEntry } from 'mountkeeper';
import { foldersInUse } from './open-for-writing.ts';
import type { TakeOutOptions } from './take-out.ts';
import { inSeconds, isUnchanged, parentOf, placesOf } from './upper-look.ts';

const MARK_TIMEOUT_MS = 10_000;
const LOOK_TIMEOUT_MS = 20_000;
/** The folder, and its time of change: a rename by its user changes that. One that has no such mark is no failure. */
const BARE = `
[ "$(stat -L -c %.9Z -- "$1")" = "$2" ] || exit 3
setfattr -x trusted.overlay.opaque -- "$1" 2>/dev/null
exit 0`;
const REWRITE = `
[ "$(stat -L -c %.9Z -- "$1")" = "$2" ] || exit 3
setfattr -n trusted.overlay.redirect -v "$3" -- "$1"`;
export class MarkKeeper {
  readonly #options: Omit<TakeOutOptions, 'marks' | 'precisionMs'>;

  constructor(options: Omit<TakeOutOptions, 'marks' | 'precisionMs'>) {
    this.#options = options;
  }

  /**
   * The marks of folders (and of files without data) that the remote has moved are written anew. They are never removed: overlayfs keeps the former one in
   * memory, and a folder without any would lose what lies below it at its user's next rename. Between the mark and the listings
   * there must be no time: a folder whose mark leads nowhere shows empty, and its user may remove it.
   */
  async rewrite(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    if (entries.length === 0) return [];
    const { dropNames, forget } = this.#options;
    const done: LeavingEntry[] = [];
    await forget(placesOf(entries), async () => {
      for (const entry of entries) if (await this.#onEntry(entry, REWRITE, `/${entry.nowAt ?? ''}`)) done.push(entry);
      // Of one that its user has just renamed, the former mark is to lead to something until the next try.
      return { folders: placesOf(done), trees: treesOf(done) };
    });
    await dropNames();
    const shown: string[] = [];
    for (const entry of done) if (await this.#isShown(entry)) shown.push(entry.path);
    return shown;
  }

  /** As the overlay sees it by now; a folder with what is in it. */
  async #isShown({ kind, path }: LeavingEntry): Promise<boolean> {
    const { mountPoint, processes } = this.#options;
    const { code, stdout } = await processes.run({ command: 'find', args: [join(mountPoint, path), '-maxdepth', '1', '-printf', '%y'], timeoutMs: LOOK_TIMEOUT_MS });
    return code === 0 && stdout.startsWith(kind === 'folder' ? 'd' : 'f');
  }

  /** Folders that users made hide nothing any more; what is in them is taken out another time. */
  async bare(folders: readonly LeavingEntry[]): Promise<readonly string[]> {
    const { dropNames } = this.#options;
    const done: string[] = [];
    for (const entry of [...folders].sort((a, b) => a.path.length - b.path.length)) {
      if ((await this.#mayBeBare(entry)) && (await this.#onEntry(entry, BARE))) done.push(entry.path);
    }
    if (done.length > 0) await dropNames();
    return done;
  }

  /** This very entry, wherever its user moves it meanwhile; when he has changed it by that, nothing is done. */
  async #onEntry(entry: LeavingEntry, script: string, value = ''): Promise<boolean> {
    const { paths, processes } = this.#options;
    const place = join(paths.upper, entry.path);
    if (!isUnchanged(entry, this.#options.paths.upper)) return false;
    const handle = openSync(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = fstatSync(handle, { bigint: true });
      if (stats.ino !== entry.inode || stats.ctimeNs !== entry.changedNs) return false;
      const args = ['-c', script, 'sh', `/proc/${process.pid}/fd/${handle}`, inSeconds(entry.changedNs), value];
      const { code } = await processes.run({ command: 'sh', args, env: { LC_ALL: 'C' }, timeoutMs: MARK_TIMEOUT_MS });
      return code === 0;
    } finally {
      closeSync(handle);
    }
  }

  async #mayBeBare(entry: LeavingEntry): Promise<boolean> {
    const { listLower, mountPoint } = this.#options;
    if (foldersInUse(mountPoint).has(entry.path) || !isUnchanged(entry, this.#options.paths.upper)) return false;
    const parent = await listLower(parentOf(entry.path));
    if (parent?.find(({ name }) => name === posix.basename(entry.path))?.kind !== 'folder') return false;
    return this.#hidesNothing(entry.path);
  }

  /** All that lies below in the folder of this name lies in the upper folder, too. */
  async #hidesNothing(folder: string): Promise<boolean> {
    const { listLower, paths } = this.#options;
    const here = await readdir(join(paths.upper, folder));
    return ((await listLower(folder)) ?? []).every(({ name }) => here.includes(name));
  }
}

/** rclone keeps what it knows of a folder when another one has taken its place in the meantime. */
function treesOf(entries: readonly LeavingEntry[]): readonly string[] {
  const folders = entries.filter(({ kind }) => kind === 'folder');
  return [...new Set(folders.flatMap(({ movedFrom, nowAt }) => [movedFrom, nowAt].filter((path) => path !== undefined)))];
}
