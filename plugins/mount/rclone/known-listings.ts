/** Which listings of the remote a mount is known to hold, so that only what differs is read again. */
import { createHash } from 'node:crypto';
import type { Clock } from 'mountkeeper';
import { inWords, list } from './refresh.ts';
import type { Call as RefreshCall } from './refresh.ts';

export type Call = Omit<RefreshCall, 'signal'>;

/**
 * After this time a listing counts as unknown: a comparison sees neither another content of the same name, size, time
 * and ID, nor what others undo in the moment between a listing and the mount's reading.
 */
export const KNOWN_FOR_MS = 6 * 3_600_000;

export interface FolderListing {
  /** Paths of the folders in it. */
  readonly folders: readonly string[];
  /** The same as long as nothing in the folder changes; undefined where that costs the backend too much. */
  readonly digest: string | undefined;
}

interface Item {
  readonly Path: string;
  readonly Name: string;
  readonly Size: number;
  readonly ModTime: string;
  readonly IsDir: boolean;
  readonly ID?: string;
}

interface Known {
  readonly digest: string;
  readonly atMs: number;
}

/**
 * One digest for each folder whose listing in the mount is the one that has it, or a newer one. A newer one differs
 * from what the remote lists next, unless others have undone the change that the mount has seen: so whatever has the
 * mount read or drop listings tells it here (`drop`), before and after.
 */
export class KnownListings {
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  holds(folder: string, digest: string | undefined): boolean {
    const known = this.#known.get(folder);
    return (
      known !== undefined && known.digest === digest && this.#clock.monotonic() - known.atMs < KNOWN_FOR_MS
    );
  }

  /**
   * A listing that was made before the mount reads the folder, as it will now. Noted before that, so that a `drop`
   * meanwhile is not undone; where the reading fails, `keepOnly` leaves it out.
   */
  note(folder: string, digest: string | undefined): void {
    if (digest === undefined) this.#known.delete(folder);
    else this.#known.set(folder, { digest, atMs: this.#clock.monotonic() });
  }

  drop(folders: readonly string[], trees: readonly string[]): void {
    for (const folder of folders) this.#known.delete(folder);
    for (const tree of trees)
      for (const folder of this.#known.keys())
        if (tree === '' || folder === tree || folder.startsWith(`${tree}/`)) this.#known.delete(folder);
  }

  /** The mount may have lost all others, or holds what nobody knows. */
  keepOnly(folders: ReadonlySet<string>): void {
    for (const folder of this.#known.keys()) if (!folders.has(folder)) this.#known.delete(folder);
  }
}

/** Asked of the remote, not of the mount. `isTimed`: the backend lists the times of files at no further cost. */
export async function listAll(folder: string, call: Call, isTimed: boolean): Promise<FolderListing> {
  if (!isTimed) return { folders: await list(folder, call), digest: undefined };
  const { rc, fs, end } = call;
  const answer = await rc
    .call<{ list?: Item[] | null }>('operations/list', { fs, remote: folder, opt: { noMimeType: true } }, end)
    .catch((error: unknown) => {
      throw inWords(error as Error);
    });
  const items = answer.list ?? [];
  return { folders: items.filter(({ IsDir }) => IsDir).map(({ Path }) => Path), digest: digestOf(items) };
}

/** rclone lists by name. A folder's size is none, or that of all below it. */
function digestOf(items: readonly Item[]): string {
  const hash = createHash('sha256');
  for (const { Name, IsDir, Size, ModTime, ID = '' } of items)
    hash.update(JSON.stringify([Name, IsDir ? 'folder' : Size, ModTime, ID]));
  return hash.digest('base64url');
}

/**
 * Whether a listing has the times of files. In some buckets each costs a request of its own, over FTP with some servers
 * as well: there nothing is compared.
 */
export async function hasCheapTimes({ rc, fs, end }: Call): Promise<boolean> {
  const { Features } = await rc.call<{ Features?: Readonly<Record<string, boolean>> }>(
    'operations/fsinfo',
    { fs },
    end,
  );
  return Features?.['SlowModTime'] !== true;
}
