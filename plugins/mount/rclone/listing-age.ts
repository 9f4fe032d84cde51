import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Logger, RefreshResult } from 'mountkeeper';
import { createRcClient } from './control/remote-control.ts';
import type { RcAddress } from './control/remote-control.ts';
import { hasCheapTimes, KnownListings } from './known-listings.ts';
import { mapSome } from './refresh.ts';
import { renewFolder } from './renew-folder.ts';
import type { Outdated } from './remote-files.ts';

/**
 * rclone's own limit for the age of listings: it must cover the longest outage, and is all that applies
 * while no daemon is running.
 */
const UNATTENDED_MS = 3 * 86_400_000;
/** With a shorter limit than this, the age of listings is left to rclone itself. */
const LEAST_MS = 10_000;
/** Fraction of the permitted age that is reserved for the renewal itself. */
const SPARE_PART = 0.1;
const LEAST_SPARE_MS = 5_000;
const TRY_AGAIN_AFTER_MS = 60_000;
/** While the cache of a new rclone cannot be reached without the NAS. */
const TRY_FIRST_AGAIN_AFTER_MS = 5_000;
const FOLDERS_AT_ONCE = 2;
/** After so many failures the remote itself must be failing, not its folders. */
const FAILURES_IN_A_ROW = 8;
/** Folders that are not kept and yet listed in one renewal; where more are kept, as many as those. */
const LOOKS_ALWAYS = 200;

/**
 * The value for rclone's dir-cache-time: listings must not expire while the NAS is away, because nothing
 * better is available then.
 */
export function rcloneDirCacheMs(dirCacheMs: number): number {
  return dirCacheMs < LEAST_MS ? dirCacheMs : Math.max(dirCacheMs, UNATTENDED_MS);
}

export interface ListingAgeSource {
  readonly address: RcAddress;
  /** The remote in rclone's notation. */
  readonly fs: string;
  /** Folders on the local disk whose subfolders keep their listings: rclone's cache, and what users wrote. */
  readonly keptRoots: readonly string[];
  readonly dirCacheMs: number;
  /** False for a mount that was adopted: the age of its listings is unknown. */
  readonly isNew: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted with the mount. */
  readonly end: AbortSignal;
  /**
   * For a mount below an overlay: folders in use must keep their inode numbers, so they are read again
   * instead of forgotten. rclone itself then expires no listing.
   */
  readonly inUse?: (() => ReadonlySet<string>) | undefined;
  /** Wraps each renewal, or rejects. */
  readonly around?: <T>(renew: () => Promise<T>) => Promise<T>;
}

type Folders = ReadonlySet<string>;

/**
 * Keeps every listing younger than `dir_cache_time`, as rclone itself would, but only while the NAS
 * answers. Folders with cached files, or with files that users wrote, are compared with what the NAS lists, and read
 * again where they differ, so that their listings exist whenever an outage begins; all others are forgotten. When
 * everything was refreshed within that time, by anybody, nothing is done. Forgetting drops what rclone knows about a
 * folder's files, so folders with cached files are never forgotten.
 *
 * A new rclone has no listings at all, and a cached file in a folder without one cannot be opened during an outage: so
 * the same folders are read at the first answer of the remote. They are read from the top down, two at a time, which
 * leaves the remote to readers; there is no limit, since what is not read could not be promised.
 *
 * Each folder that is kept costs two listings where it is read again: 2,041 with 42,000 files take 6 s, 0.6 s of the
 * daemon's processor time and 2.4 s of rclone's (1.75.2, SFTP on the same machine). One that is as it was costs one:
 * three quarters of the time, nine tenths of rclone's processor time, three fifths of the NAS's, and a quarter more of
 * the daemon's, since it gets the names of files as well. So the others are not kept as well: nothing tells which ones
 * rclone holds, and all of them would be 300 listings a minute for each share (docs/decisions/0021).
 */
export class ListingAge {
  readonly #source: ListingAgeSource;
  #freshSinceMs: number;
  #triedAtMs = -Infinity;
  #isRenewing = false;
  /** Since when listings may be wrong that are not old. */
  #distrustedAtMs: number | undefined;
  /** Of a new rclone, until its first reading has ended, however it did: there is nothing yet that could be old. */
  #isEmpty: boolean;
  /** Of a new rclone, until a reading came to its end: without the NAS its cache cannot be reached. */
  #isUnlisted: boolean;
  #hasUnread = true;
  #known: KnownListings;
  #isTimed: boolean | undefined;

  constructor(source: ListingAgeSource) {
    this.#source = source;
    this.#isEmpty = source.isNew;
    this.#isUnlisted = source.isNew;
    this.#freshSinceMs = -Infinity;
    this.#known = new KnownListings(source.clock);
  }

  /**
   * True until each folder with cached files has been read through this rclone. Of an adopted one nobody knows what
   * the former daemon has read.
   */
  get hasUnread(): boolean {
    return this.#hasUnread;
  }

  /** Records what `read` has refreshed. */
  async during(isAll: boolean, read: () => Promise<RefreshResult>): Promise<RefreshResult> {
    const begunMs = this.#source.clock.monotonic();
    const result = await read();
    // A folder that cannot be read now could not have been refreshed in place either.
    if (isAll && result.ok > result.failed.length) {
      this.#freshSinceMs = Math.max(this.#freshSinceMs, begunMs);
      this.#isRead(result.failed.length);
      this.#trust(begunMs);
    }
    return result;
  }

  /** Runs what has rclone drop or read these listings; what they are then is unknown. */
  async changing<T>({ folders, trees }: Outdated, change: () => Promise<T>): Promise<T> {
    this.#known.drop(folders, trees);
    try {
      return await change();
    } finally {
      this.#known.drop(folders, trees);
    }
  }

  /** What was read until now may be wrong: all of it is read again at the next answer. */
  distrust(): void {
    if (this.#isLeftToRclone) return;
    this.#distrustedAtMs = this.#source.clock.monotonic();
    // A renewal that is under way goes on with the former ones.
    this.#known = new KnownListings(this.#source.clock);
    this.#isEmpty = false;
    this.#freshSinceMs = -Infinity;
    this.#triedAtMs = -Infinity;
  }

  /** True until what may be wrong has been read again, or could not be. */
  get isDistrusted(): boolean {
    return this.#distrustedAtMs !== undefined;
  }

  #isRead(failed: number): void {
    this.#isEmpty = false;
    this.#isUnlisted = false;
    // Read once, a folder keeps its listing when it cannot be read later.
    if (failed === 0) this.#hasUnread = false;
  }

  #trust(begunMs: number): void {
    if (this.#distrustedAtMs !== undefined && begunMs >= this.#distrustedAtMs)
      this.#distrustedAtMs = undefined;
  }

  get #isLeftToRclone(): boolean {
    return this.#source.dirCacheMs < LEAST_MS && !this.#source.inUse;
  }

  /** Called whenever the remote has just answered. */
  remoteAnswered(): void {
    const { clock, dirCacheMs, end, log } = this.#source;
    const nowMs = clock.monotonic();
    const dueMs = this.#freshSinceMs + dirCacheMs - Math.max(LEAST_SPARE_MS, dirCacheMs * SPARE_PART);
    if (this.#isLeftToRclone || this.#isRenewing || end.aborted || nowMs < dueMs) return;
    const againMs = this.#isUnlisted ? TRY_FIRST_AGAIN_AFTER_MS : TRY_AGAIN_AFTER_MS;
    if (nowMs - this.#triedAtMs < Math.min(againMs, dirCacheMs / 2)) return;
    this.#triedAtMs = nowMs;
    this.#isRenewing = true;
    const { around = <T>(renew: () => Promise<T>) => renew() } = this.#source;
    void around(() => this.#renew())
      .then(
        ({ failed, read }) => {
          const isFirst = this.#isUnlisted;
          this.#isRead(failed);
          if (isFirst) log.info({ folders: read, failed }, 'folders with cached files listed');
          if ((this.#distrustedAtMs ?? nowMs) <= nowMs) this.#freshSinceMs = nowMs;
        },
        (error: unknown) => {
          this.#isEmpty = false;
          log.debug({ err: error }, 'listings could not be refreshed');
        },
      )
      .finally(() => {
        this.#isRenewing = false;
        this.#trust(nowMs);
      });
  }

  /** How many folders were read, and how many could not be. */
  async #renew(): Promise<{ readonly read: number; readonly failed: number }> {
    const { address, keptRoots, end, fs, inUse } = this.#source;
    const onDisk = await Promise.all(keptRoots.map(foldersBelow));
    const kept = new Set([...onDisk.flatMap((folders) => [...folders]), ...(inUse?.() ?? [])]);
    // Its own connection, so that the figures never wait behind it.
    const rc = createRcClient(address);
    let [inARow, failed] = [0, 0];
    const seen = new Set<string>();
    const known = this.#known;
    try {
      const isEmpty = this.#isEmpty;
      const renewing = {
        kept,
        isEmpty,
        known,
        isTimed: !isEmpty && (this.#isTimed ??= await hasCheapTimes({ rc, fs, end })),
        looks: { left: Math.max(LOOKS_ALWAYS, kept.size) },
        call: { rc, fs, end },
      };
      // A folder that cannot be read keeps its listing.
      const visit = async (folder: string): Promise<readonly string[]> => {
        end.throwIfAborted();
        try {
          const children = await renewFolder(folder, renewing);
          inARow = 0;
          seen.add(folder);
          return children;
        } catch (error) {
          inARow += 1;
          failed += 1;
          if (folder === '' || inARow >= FAILURES_IN_A_ROW) throw error;
          return [];
        }
      };
      for (let level: readonly string[] = ['']; level.length > 0;)
        level = await mapSome(level, FOLDERS_AT_ONCE, visit);
      return { read: seen.size, failed };
    } finally {
      known.keepOnly(seen);
      rc.close();
    }
  }
}

async function foldersBelow(root: string): Promise<Folders> {
  const found = new Set<string>();
  const waiting = [''];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    // Gone meanwhile.
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (!entry.isDirectory()) continue;
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      found.add(path);
      waiting.push(path);
    }
  }
  return found;
}
