import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Logger, RefreshResult } from 'mountkeeper';
import { createRcClient } from './remote-control.ts';
import type { RcAddress } from './remote-control.ts';
import { list, mapSome, refresh } from './refresh.ts';
import type { Call as RefreshCall } from './refresh.ts';

/**
 * rclone's own limit to the age of listings: the longest outage for which they last, and what holds when no
 * daemon runs.
 */
const UNATTENDED_MS = 3 * 86_400_000;
/** Listings that may be no older than this are left to rclone itself. */
const LEAST_MS = 10_000;
/** Of the permitted age, kept back for the renewal itself. */
const SPARE_PART = 0.1;
const LEAST_SPARE_MS = 5_000;
const TRY_AGAIN_AFTER_MS = 60_000;
const FOLDERS_AT_ONCE = 2;
const FORGOTTEN_AT_ONCE = 200;
/** With so many it is the remote that fails, not its folders. */
const FAILURES_IN_A_ROW = 8;

/**
 * What rclone is told: listings do not expire while the NAS is away, since then nothing better can be had.
 */
export function rcloneDirCacheMs(dirCacheMs: number): number {
  return dirCacheMs < LEAST_MS ? dirCacheMs : Math.max(dirCacheMs, UNATTENDED_MS);
}

export interface ListingAgeSource {
  readonly address: RcAddress;
  /** The remote as rclone names it. */
  readonly fs: string;
  /** Where the content of this share's files lies in the cache. */
  readonly dataRoot: string;
  readonly dirCacheMs: number;
  /** Listings of a mount that was taken over are of an age that nobody knows. */
  readonly isNew: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted with the mount. */
  readonly end: AbortSignal;
  /**
   * Of a mount below an overlay, which must not be given other numbers for folders that somebody uses: those
   * are read anew, not forgotten. Rclone lets no listing grow old by itself then.
   */
  readonly inUse?: (() => ReadonlySet<string>) | undefined;
  /** Carries out each renewal, or rejects. */
  readonly around?: (renew: () => Promise<void>) => Promise<void>;
}

type Folders = ReadonlySet<string>;
type Call = Omit<RefreshCall, 'signal'>;

/**
 * Lets no listing grow older than `dir_cache_time`, as rclone itself would, but only while the NAS answers.
 * Folders in which something is cached are read anew, so that they are there whenever an outage begins; all
 * others are forgotten. What has been read anew altogether within that time, by whomever, needs nothing.
 * Forgetting drops what rclone knows of a folder's files, and whatever is being changed lies in the cache, so
 * it is never done to those folders.
 */
export class ListingAge {
  readonly #source: ListingAgeSource;
  #freshSinceMs: number;
  #triedAtMs = -Infinity;
  #isRenewing = false;

  constructor(source: ListingAgeSource) {
    this.#source = source;
    this.#freshSinceMs = source.isNew ? source.clock.monotonic() : -Infinity;
  }

  /** Notes what `read` has read anew. */
  async during(isAll: boolean, read: () => Promise<RefreshResult>): Promise<RefreshResult> {
    const begunMs = this.#source.clock.monotonic();
    const result = await read();
    // A folder that cannot be read now could not be read in place of its old listing, either.
    if (isAll && result.ok > result.failed.length) this.#freshSinceMs = Math.max(this.#freshSinceMs, begunMs);
    return result;
  }

  /** Called whenever the remote has just answered. */
  remoteAnswered(): void {
    const { clock, dirCacheMs, end, log } = this.#source;
    const nowMs = clock.monotonic();
    const dueMs = this.#freshSinceMs + dirCacheMs - Math.max(LEAST_SPARE_MS, dirCacheMs * SPARE_PART);
    if ((dirCacheMs < LEAST_MS && !this.#source.inUse) || this.#isRenewing || end.aborted || nowMs < dueMs)
      return;
    if (nowMs - this.#triedAtMs < Math.min(TRY_AGAIN_AFTER_MS, dirCacheMs / 2)) return;
    this.#triedAtMs = nowMs;
    this.#isRenewing = true;
    const { around = (renew) => renew() } = this.#source;
    void around(() => this.#renew())
      .then(
        () => {
          this.#freshSinceMs = nowMs;
        },
        (error: unknown) => log.debug({ err: error }, 'listings not read anew'),
      )
      .finally(() => (this.#isRenewing = false));
  }

  async #renew(): Promise<void> {
    const { address, dataRoot, end, fs, inUse } = this.#source;
    const kept = new Set([...(await foldersBelow(dataRoot)), ...(inUse?.() ?? [])]);
    // A connection of its own: the figures never queue up behind it.
    const rc = createRcClient(address);
    let inARow = 0;
    // What cannot be read stays as it was.
    const visit = async (folder: string): Promise<readonly string[]> => {
      end.throwIfAborted();
      try {
        const children = await renewFolder(folder, kept, { rc, fs, end });
        inARow = 0;
        return children;
      } catch (error) {
        inARow += 1;
        if (folder === '' || inARow >= FAILURES_IN_A_ROW) throw error;
        return [];
      }
    };
    try {
      for (let level: readonly string[] = ['']; level.length > 0;)
        level = await mapSome(level, FOLDERS_AT_ONCE, visit);
    } finally {
      rc.close();
    }
  }
}

/**
 * The kept folders in it. The listing comes first, so that nothing is dropped for a NAS that does not answer.
 */
async function renewFolder(folder: string, kept: Folders, call: Call): Promise<readonly string[]> {
  const children = await list(folder, call);
  const others = children.filter((child) => !kept.has(child));
  for (let start = 0; start < others.length; start += FORGOTTEN_AT_ONCE) {
    const named = others
      .slice(start, start + FORGOTTEN_AT_ONCE)
      .map((path, index) => [`dir${index}`, path] as const);
    await call.rc.call('vfs/forget', { fs: call.fs, ...Object.fromEntries(named) }, call.end);
  }
  await refresh(folder, call);
  return children.filter((child) => kept.has(child));
}

async function foldersBelow(root: string): Promise<Folders> {
  const found = new Set<string>();
  const waiting = [''];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
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
