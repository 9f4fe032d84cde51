/**
 * A share's files on the remote, through the remote control of the rclone that mounts it: the same
 * connection, credentials and bandwidth, without a cache. Features of rclone that could lose data are
 * switched off: it skips files whose size and time are equal even when their content differs, and it
 * repeats a transfer without checking what the first attempt has done.
 */
import { createHash, randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { posix } from 'node:path';
import { unlessAborted } from 'mountkeeper';
import type { Clock, RemoteEntry, RemoteFiles, RemoteHash, RemoteRoot, RemoteVersion } from 'mountkeeper';
import { createRcClient } from './control/remote-control.ts';
import type { RcAddress, RcClient } from './control/remote-control.ts';
import type { RootCheck } from '../outage/root-check.ts';
import { callFailure } from './error-messages.ts';
import { FolderNumbers } from './folder-numbers.ts';
import { HAS_FOLDER_OBJECTS } from '../options/remote-config.ts';
import { Jobs } from './jobs.ts';
import { nameProblem, rclonePath } from './kept-names.ts';
import { Listings } from './listings.ts';
import { NOT_THERE } from './refresh.ts';
import { READ_GROUP } from '../stats/mount-stats.ts';
import type { ListItem } from './listings.ts';

/**
 * rclone's local backend, which converts file names only from rclone's own form (`rclonePath`). A file that
 * changes while it is read makes the upload fail. A link is followed: the uploader names a file that it holds open
 * by a link to its descriptor.
 */
const LOCAL = ':local,encoding=Raw,copy_links=true:/';
const ONCE = { IgnoreTimes: true, LowLevelRetries: 1 } as const;
/** Hashes that Node can compute for a local file, the cheapest first. */
const HASHES = ['md5', 'sha1', 'sha256'] as const;
const READ_BACK_HASH = 'md5';
/**
 * Backends that write an upload directly to its final name although they could rename: an interrupted
 * upload leaves a partial file there.
 */
const IN_PLACE: ReadonlySet<string> = new Set(['webdav']);
/**
 * Backends for which rclone finds out what is at the name right before it sends, a folder, too, and that refuse to
 * rename a file over a folder. A bucket has no folders to find, and plain WebDAV replaces one.
 */
const LEAVES_TAKEN: ReadonlySet<string> = new Set(['sftp', 'smb', 'local']);
/** An upload of at most so many bytes is over soon, however slow the line. */
const SHORT_UPLOAD_BYTES = 4 * 1_048_576;
/** Prefix of unfinished uploads; any other client may delete such a file when no upload is running. */
export const UPLOAD_PREFIX = '.mountkeeper-upload-';
const NANOSECONDS_PER_MS = 1e6;

interface FsInfo {
  readonly Precision: number;
  readonly Hashes: readonly string[] | null;
  readonly Features: Readonly<Record<string, boolean>>;
}

/** What rclone has to read again. */
export interface Outdated {
  /** Only the listings of these folders. */
  readonly folders: readonly string[];
  /** These folders with everything below: something else has taken their place. */
  readonly trees: readonly string[];
}

export interface RemoteFilesOptions {
  readonly address: RcAddress;
  /** The remote in rclone's notation, with the share's path. */
  readonly fs: string;
  /** The backend's name in rclone. */
  readonly type: string;
  readonly clock: Clock;
  /** Runs each `forget` of the listings of these folders, or rejects. */
  readonly around?: (folders: readonly string[], forget: () => Promise<void>) => Promise<void>;
  /** Asked before each call whether the share's folder is there; told what a change is about. Absent: it always is. */
  readonly root?: Pick<RootCheck, 'admit' | 'changing' | 'suspect'> & RemoteRoot;
  /** Runs each drop of listings, alone. */
  readonly dropping?: <T>(outdated: Outdated, drop: () => Promise<T>) => Promise<T>;
  /** Called after each `forget`. */
  readonly onForget?: (folders: readonly string[]) => void;
}

interface UploadOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: ((bytes: number) => void) | undefined;
}

interface Naming {
  readonly beforeNaming?: (() => Promise<void>) | undefined;
  readonly isReplacing?: boolean | undefined;
}

export class RcloneFiles implements RemoteFiles {
  readonly #rc: RcClient;
  readonly #jobs: Jobs;
  readonly #listings: Listings;
  readonly #numbers: FolderNumbers;
  readonly #options: RemoteFilesOptions;
  /** Suffix of rclone's unfinished uploads: identifies those of this machine and this share. */
  readonly #suffix: string;
  #info: FsInfo | undefined;

  constructor(options: RemoteFilesOptions) {
    this.#options = options;
    this.#rc = createRcClient(options.address);
    this.#suffix = partialSuffix(options.fs);
    this.#jobs = new Jobs(this.#rc, options.clock);
    this.#listings = new Listings(this.#rc, options.fs);
    this.#numbers = new FolderNumbers(this.#rc, options.clock, options.type);
  }

  /** Infinity where the backend stores no times. Known once a call has been answered. */
  get precisionMs(): number {
    const ms = (this.#info?.Precision ?? Infinity) / NANOSECONDS_PER_MS;
    // rclone reports "a hundred years" for a backend that stores no times.
    return ms > 365 * 86_400_000 ? Infinity : ms;
  }

  get root(): RemoteRoot | undefined {
    return this.#options.root;
  }

  nameProblem(name: string): string | undefined {
    return nameProblem(this.#options.type, name);
  }

  async stat(
    path: string,
    { signal, hash = false }: { readonly signal: AbortSignal; readonly hash?: boolean },
  ): Promise<RemoteEntry | undefined> {
    return this.#asked(signal, async () => {
      const info = await this.#knowledge(signal);
      // When rclone is asked for a file or a folder at once, it treats every failure of the file lookup as
      // "not found".
      if (path !== '') {
        const { item } = await this.#rc.call<{ item: ListItem | null }>(
          'operations/stat',
          {
            fs: this.#options.fs,
            remote: path,
            opt: { filesOnly: true, noMimeType: true, ...hashOptions(info, hash) },
          },
          signal,
        );
        if (item) return entryOf(item);
      }
      return (
        (await this.#listings.list(path, signal, { noModTime: true })) && {
          name: posix.basename(path),
          kind: 'folder',
        }
      );
    });
  }

  async readBack(path: string, { signal }: { readonly signal: AbortSignal }): Promise<RemoteHash> {
    return this.#asked(signal, async () => {
      const { hash } = await this.#rc.call<{ hash: string }>(
        'operations/hashsumfile',
        // Counted with what is read through the mount: it comes over the same line.
        { fs: this.#options.fs, remote: path, hashType: READ_BACK_HASH, download: true, _group: READ_GROUP },
        signal,
      );
      if (hash === '') throw new Error('rclone gave no hash');
      return { kind: READ_BACK_HASH, value: hash };
    });
  }

  async list(
    folder: string,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<readonly RemoteEntry[] | undefined> {
    return this.#asked(signal, async () => {
      await this.#knowledge(signal);
      return (await this.#listings.list(folder, signal, {}))?.map(entryOf);
    });
  }

  /** Brings a file of the remote to the local path, with its time. */
  async download(path: string, local: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const to = { dstFs: LOCAL, dstRemote: rclonePath(local.replace(/^\/+/, '')) };
    await this.#asked(signal, () =>
      this.#jobs.run(
        'operations/copyfile',
        { srcFs: this.#options.fs, srcRemote: path, ...to, _config: ONCE },
        { signal },
      ),
    );
  }

  get leavesTaken(): boolean {
    return LEAVES_TAKEN.has(this.#options.type);
  }

  /** rclone looks for the name itself, right before it sends, and skips what it finds. */
  async uploadNew(local: string, path: string, { signal, onProgress }: UploadOptions): Promise<boolean> {
    return this.#changed([path], signal, async () => {
      const group = await this.#copy(local, path, { signal, onProgress, _config: { IgnoreExisting: true } });
      const stats = await this.#rc.call<{ transfers?: number }>('core/stats', { group, short: true }, signal);
      return (stats.transfers ?? 0) > 0;
    });
  }

  /** Resolves with the group of the job. */
  async #copy(
    local: string,
    path: string,
    {
      signal,
      onProgress,
      _config = {},
    }: UploadOptions & { readonly _config?: Readonly<Record<string, unknown>> },
  ): Promise<string> {
    return this.#jobs.run(
      'operations/copyfile',
      {
        srcFs: LOCAL,
        srcRemote: rclonePath(local.replace(/^\/+/, '')),
        dstFs: this.#options.fs,
        dstRemote: path,
        _config: { ...ONCE, PartialSuffix: this.#suffix, ..._config },
      },
      { signal, onProgress, isShort: (await stat(local)).size <= SHORT_UPLOAD_BYTES },
    );
  }

  async upload(local: string, path: string, options: UploadOptions & Naming): Promise<void> {
    const { signal, onProgress, beforeNaming, isReplacing = false } = options;
    const { Features } = await this.#asked(signal, () => this.#knowledge(signal));
    // A backend for which rclone itself renames what it has sent replaces a file by a rename. To another one a rename
    // to a name that is taken may be refused, or give it a second file of that name.
    const isNamedLater = Features[isReplacing ? 'PartialUploads' : 'Move'] === true;
    if (!isNamedLater && !IN_PLACE.has(this.#options.type)) {
      await this.#changed([path], signal, () => this.#copy(local, path, { signal, onProgress }));
      return;
    }
    const beside = posix.join(
      posix.dirname(path),
      `${this.#besideOf(path)}${randomBytes(6).toString('hex')}`,
    );
    try {
      const _config = { Inplace: true, NoCheckDest: true };
      await this.#changed([beside], signal, () => this.#copy(local, beside, { signal, onProgress, _config }));
      await beforeNaming?.();
      await this.#changed([path], signal, () => this.#move(beside, path, { signal, isReplacing }));
    } catch (error) {
      // A failed upload's remains do no harm; the error to report is the failure itself.
      await this.#delete(beside, this.#options.clock.deadline(5_000)).catch(() => undefined);
      throw error;
    }
  }

  async clearLeftovers(path: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#asked(signal, async () => {
      const folder = posix.dirname(path);
      const [name, beside] = [posix.basename(path), this.#besideOf(path)];
      // Between the name, which it may shorten, and the suffix, rclone inserts a checksum.
      const isOurs = (one: string): boolean =>
        one.startsWith(beside) ||
        (one.startsWith(`${name}.`) &&
          one.endsWith(this.#suffix) &&
          /^\.[0-9a-f]{1,8}$/.test(one.slice(name.length, -this.#suffix.length)));
      for (const { Name: one, IsDir: isFolder } of (await this.#listings.list(
        folder === '.' ? '' : folder,
        signal,
        {
          noModTime: true,
        },
      )) ?? []) {
        if (!isFolder && isOurs(one)) await this.#delete(posix.join(folder, one), signal);
      }
    });
  }

  /** The temporary name of an upload of this machine and share to the path, without its random part. */
  #besideOf(path: string): string {
    const name = `${this.#suffix} ${path}`;
    return `${UPLOAD_PREFIX}${createHash('sha256').update(name).digest('hex').slice(0, 8)}-`;
  }

  async moveFile(from: string, to: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#changed([from, to], signal, async () => {
      await this.#keepFolderOf(from, signal);
      await this.#move(from, to, { signal });
    });
  }

  /** Where something is at the new place by then, rclone moves one file after the other: what it finds stays there. */
  async moveFolder(from: string, to: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { fs } = this.#options;
    await this.#changed([from, to], signal, async () => {
      await this.#keepFolderOf(from, signal);
      await this.#jobs
        .run(
          'sync/move',
          {
            srcFs: below(fs, from),
            dstFs: below(fs, to),
            createEmptySrcDirs: true,
            deleteEmptySrcDirs: true,
            _config: { ...ONCE, IgnoreExisting: true },
          },
          { signal },
        )
        .finally(() => this.#numbers.moved());
      await this.#moveFolderObject(from, to, signal);
    });
  }

  async deleteFile(path: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#changed([path], signal, async () => {
      await this.#keepFolderOf(path, signal);
      await this.#delete(path, signal);
    });
  }

  async makeFolder(path: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#changed([path], signal, () => this.#change('mkdir', path, signal));
  }

  async removeFolder(path: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#changed([path], signal, () => unlessMissing(this.#change('rmdir', path, signal)));
  }

  /**
   * `change` runs right before the listings are dropped, once the remote is known to answer; it returns
   * which ones.
   */
  async forget(
    folders: readonly string[],
    {
      signal,
      change,
    }: { readonly signal: AbortSignal; readonly change?: (() => Promise<Outdated>) | undefined },
  ): Promise<void> {
    if (folders.length === 0) return;
    // A listing dropped while the remote is away could not be read again: nobody could open the folder.
    await this.#asked(signal, () => this.#listings.list(folders[0] ?? '', signal, { noModTime: true }));
    const { around = (_, forget) => forget(), dropping = (_, drop) => drop() } = this.#options;
    let dropped: readonly string[] = [];
    // The change and the drop together: between them, folders that were moved show empty.
    await around(folders, async () => {
      if (change === undefined) {
        dropped = folders;
        await this.#asked(signal, () =>
          dropping({ folders, trees: [] }, () => this.#listings.readAgain(folders, signal)),
        );
        return;
      }
      const outdated = await change();
      const { folders: going, trees } = outdated;
      if (going.length + trees.length === 0) return;
      await this.#asked(signal, () => dropping(outdated, () => this.#listings.drop(going, trees, signal)));
      dropped = [...going, ...trees];
    });
    if (dropped.length > 0) this.#options.onForget?.(dropped);
  }

  close(): void {
    this.#rc.close();
  }

  /** In a bucket, a folder that others have made is gone with the last thing in it: it gets an object of its own. */
  async #keepFolderOf(path: string, signal: AbortSignal): Promise<void> {
    const remote = posix.dirname(path);
    if (remote === '.' || !HAS_FOLDER_OBJECTS.has(this.#options.type)) return;
    await this.#change('mkdir', remote, signal);
  }

  /** rclone has moved what is in the folder; its own object, if it has one, is where it was. */
  async #moveFolderObject(from: string, to: string, signal: AbortSignal): Promise<void> {
    if (!HAS_FOLDER_OBJECTS.has(this.#options.type)) return;
    await this.#change('mkdir', to, signal);
    if ((await this.#listings.list(from, signal, { noModTime: true }))?.length !== 0) return;
    await unlessMissing(this.#change('rmdir', from, signal));
  }

  /**
   * rclone deletes what it finds at the target first, and there is neither file until it has renamed the other. So it
   * does not look where something is to be replaced, which the rename itself does; elsewhere it leaves what is there.
   */
  async #move(
    from: string,
    to: string,
    { signal, isReplacing = false }: { readonly signal: AbortSignal; readonly isReplacing?: boolean },
  ): Promise<void> {
    const { fs } = this.#options;
    const { Features } = await this.#knowledge(signal);
    const _config = { ...ONCE, ...(isReplacing ? { NoCheckDest: true } : { IgnoreExisting: true }) };
    const group = await this.#jobs.run(
      'operations/movefile',
      { srcFs: fs, srcRemote: from, dstFs: fs, dstRemote: to, _config },
      // A bucket copies the whole file.
      { signal, isShort: Features['Move'] === true },
    );
    if (isReplacing) return;
    const { renames = 0 } = await this.#rc.call<{ renames?: number }>(
      'core/stats',
      { group, short: true },
      signal,
    );
    if (renames === 0) throw new Error('something else has been put there meanwhile');
  }

  #delete(path: string, signal: AbortSignal): Promise<void> {
    return unlessMissing(this.#change('deletefile', path, signal));
  }

  async #change(what: 'mkdir' | 'rmdir' | 'deletefile', remote: string, signal: AbortSignal): Promise<void> {
    await this.#jobs.run(`operations/${what}`, { fs: this.#options.fs, remote }, { signal, isShort: true });
  }

  /**
   * The backend's features; rclone may have to ask the remote for them. Asked once. What comes after it goes by paths
   * as the remote has them now.
   */
  async #knowledge(signal: AbortSignal): Promise<FsInfo> {
    this.#info ??= await this.#rc.call<FsInfo>('operations/fsinfo', { fs: this.#options.fs }, signal);
    // The answer would be another one in a moment, and a folder that such a job moves would have another number.
    await unlessAborted(signal, this.#jobs.endAbandoned());
    await this.#numbers.renew(this.#info.Features);
    return this.#info;
  }

  /**
   * Turns failures into plain sentences, with what they show about the remote. While the share's folder is not
   * there, nothing is asked: that nothing is in it would be believed.
   */
  async #asked<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    const { root } = this.#options;
    await root?.admit(signal);
    try {
      return await ask();
    } catch (error) {
      if (NOT_THERE.test((error as Error).message)) root?.suspect();
      throw callFailure(error as Error, signal);
    }
  }

  /** As `#asked`, where it changes what is at these paths. */
  #changed<T>(paths: readonly string[], signal: AbortSignal, change: () => Promise<T>): Promise<T> {
    const { root } = this.#options;
    return this.#asked(signal, async () => {
      await this.#knowledge(signal);
      return root ? root.changing(paths, change) : change();
    });
  }
}

/** rclone allows at most 16 characters. */
export function partialSuffix(fs: string): string {
  return `.mk${createHash('sha256').update(`${hostname()} ${fs}`).digest('hex').slice(0, 8)}`;
}

async function unlessMissing(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!NOT_THERE.test((error as Error).message)) throw error;
  }
}

function hashOptions({ Hashes }: FsInfo, isWanted: boolean): Record<string, unknown> {
  const kind = HASHES.find((one) => Hashes?.includes(one));
  return isWanted && kind !== undefined ? { showHash: true, hashTypes: [kind] } : {};
}

function entryOf(item: ListItem): RemoteEntry {
  return item.IsDir
    ? { name: item.Name, kind: 'folder' }
    : { name: item.Name, kind: 'file', version: versionOf(item) };
}

function versionOf({ Size, ModTime, Hashes }: ListItem): RemoteVersion {
  const [kind, value] = Object.entries(Hashes ?? {}).find(([, one]) => one !== '') ?? [];
  return {
    bytes: Size,
    modifiedMs: Date.parse(ModTime),
    ...(kind !== undefined && value !== undefined && { hash: { kind, value } }),
  };
}

/** `nas:photos` and `2024` → `nas:photos/2024`. */
function below(fs: string, folder: string): string {
  return /[:/]$/.test(fs) ? `${fs}${folder}` : `${fs}/${folder}`;
}
