/**
 * Files that are equal on the remote. They stay in the upper folder, as a cache of what was written here,
 * until others have replaced or deleted them on the remote (users must see that), until the disk is short
 * of space or the cache has reached its limit (oldest first), or until nobody has changed them for as long as the
 * cache keeps anything.
 */
import { statfs } from 'node:fs/promises';
import type { CleanRules, Clock, LeavingEntry, Logger, RemoteEntry, RemoteFiles } from 'mountkeeper';
import { isAtOrInside, nameOf, parentOf } from '../../compare/paths.ts';
import type { CleanFile } from '../../compare/plan-types.ts';
import type { Thing } from '../../compare/records.ts';
import { thingOf } from '../../compare/learn.ts';
import { isSameThing } from '../../proof/versions.ts';

/** Folders that are listed on the remote in one round. */
const FOLDERS_AT_ONCE = 20;
const LOOK_EVERY_MS = 10_000;
const PAUSE_AFTER_FAILURE_MS = 30_000;
/**
 * A NAS may show nothing for a while, for example while one of its disks is being mounted: a file counts as
 * deleted only when it is missing twice.
 */
const GONE_AGAIN_MS = 60_000;
/** Frees more than is missing, because otherwise the next file would start it again. */
const SPARE = 1.25;

export interface CleanFilesOptions {
  readonly upper: string;
  readonly remote: Pick<RemoteFiles, 'list' | 'precisionMs' | 'root'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug'>;
  /** Undefined: all of them stay. */
  readonly rules: CleanRules | undefined;
}

/** Why a file is to be removed here. */
interface Reason {
  readonly inode: bigint;
  readonly changedNs: bigint;
  /** Others have replaced it; without an entry they have deleted it. */
  readonly theirs?: { readonly entry?: RemoteEntry };
}

export class CleanFiles {
  readonly #options: CleanFilesOptions;
  #clean: readonly CleanFile[] = [];
  #localBytes = 0;
  /** When each folder was last compared with the remote, in monotonic milliseconds. */
  readonly #checkedAt = new Map<string, number>();
  readonly #goneSince = new Map<string, number>();
  readonly #reasons = new Map<string, Reason>();
  #nextAt = 0;
  #isChecking = false;

  constructor(options: CleanFilesOptions) {
    this.#options = options;
  }

  /** `localBytes`: what all files in the upper folder hold. */
  adopt(clean: readonly CleanFile[], localBytes: number): void {
    this.#clean = clean;
    this.#localBytes = localBytes;
    if (this.#options.rules === undefined) return;
    const now = this.#options.clock.monotonic();
    const folders = new Set(clean.map(({ entry }) => parentOf(entry.path)));
    // They were just uploaded, so nobody can have changed them yet.
    for (const folder of folders) if (!this.#checkedAt.has(folder)) this.#checkedAt.set(folder, now);
    for (const folder of this.#checkedAt.keys()) if (!folders.has(folder)) this.#checkedAt.delete(folder);
    this.#forgetOthers(clean);
  }

  /** Drops decisions about files that have changed or disappeared since. */
  #forgetOthers(clean: readonly CleanFile[]): void {
    const here = new Map(clean.map(({ entry }) => [entry.path, entry]));
    for (const [path, { inode, changedNs }] of this.#reasons) {
      const entry = here.get(path);
      if (entry?.inode !== inode || entry.changedNs !== changedNs) this.#reasons.delete(path);
    }
    for (const path of this.#goneSince.keys()) if (!here.has(path)) this.#goneSince.delete(path);
  }

  /** The share refreshed these listings: changes by others in them must become visible. */
  refreshed(folder: string, isDeep: boolean): void {
    for (const one of this.#checkedAt.keys()) {
      if (one === folder || (isDeep && isAtOrInside(one, folder)) || (isDeep && folder === ''))
        this.#checkedAt.set(one, -Infinity);
    }
    this.#nextAt = 0;
  }

  /** Files that are to be removed from the upper folder now. */
  leaving(): LeavingEntry[] {
    return this.#clean.flatMap(({ entry }) => {
      const reason = this.#reasons.get(entry.path);
      return reason === undefined ? [] : [{ ...entry, ...(reason.theirs && { theirs: reason.theirs }) }];
    });
  }

  get isDue(): boolean {
    return (
      !this.#isChecking &&
      this.#options.rules !== undefined &&
      this.#clean.length > 0 &&
      this.#options.clock.monotonic() >= this.#nextAt
    );
  }

  /**
   * Resolves with true when more files are to be removed than before. A remote that does not answer is
   * asked again later.
   */
  async check(signal: AbortSignal): Promise<boolean> {
    const { clock, log, rules } = this.#options;
    if (rules === undefined) return false;
    this.#isChecking = true;
    const before = this.#reasons.size;
    try {
      this.#chooseOld(rules);
      await this.#chooseForRoom(rules);
      await this.#askRemote(rules, signal);
      this.#nextAt = clock.monotonic() + LOOK_EVERY_MS;
    } catch (error) {
      this.#nextAt = clock.monotonic() + PAUSE_AFTER_FAILURE_MS;
      log.debug({ err: error }, 'what others changed on the remote is not known');
    } finally {
      this.#isChecking = false;
    }
    return this.#reasons.size > before;
  }

  #chooseOld({ keepMs }: CleanRules): void {
    const since = BigInt(Math.trunc(this.#options.clock.now() - keepMs())) * 1_000_000n;
    for (const file of this.#roomy()) if (file.entry.changedNs < since) this.#leave(file);
  }

  #roomy(): CleanFile[] {
    return this.#clean.filter(({ mayMakeRoom }) => mayMakeRoom);
  }

  async #chooseForRoom({ minFreeBytes, mostBytes }: CleanRules): Promise<void> {
    const { bavail, bsize } = await statfs(this.#options.upper);
    const shortOnDisk = minFreeBytes() > bavail * bsize ? minFreeBytes() * SPARE - bavail * bsize : 0;
    const most = mostBytes?.() ?? Infinity;
    let short = Math.max(shortOnDisk, this.#localBytes > most ? this.#localBytes - most / SPARE : 0);
    if (short <= 0) return;
    for (const file of this.#roomy().sort((a, b) => Number(a.entry.changedNs - b.entry.changedNs))) {
      if (short <= 0) return;
      this.#leave(file);
      short -= file.entry.bytes;
    }
  }

  async #askRemote({ listingAgeMs }: CleanRules, signal: AbortSignal): Promise<void> {
    const { clock, remote } = this.#options;
    const isOld = ([, at]: [string, number]): boolean => clock.monotonic() - at >= listingAgeMs();
    const due = [...this.#checkedAt]
      .filter(isOld)
      .slice(0, FOLDERS_AT_ONCE)
      .map(([folder]) => folder);
    if (due.length === 0) return;
    // Its first answers come before it is known that it may have lost power, and with it what was brought there last.
    if (remote.root?.silentSinceMs !== undefined) return;
    // When a share's root looks empty, the NAS has another problem than deleted files.
    const isThere = ((await remote.list('', { signal })) ?? []).length > 0;
    for (const folder of due) {
      const entries = (await remote.list(folder, { signal })) ?? [];
      this.#checkedAt.set(folder, clock.monotonic());
      const byName = new Map(entries.map((entry) => [entry.name, entry]));
      for (const file of this.#clean.filter(({ entry }) => parentOf(entry.path) === folder)) {
        this.#compare(file, byName.get(nameOf(file.entry.path)), { isThere, listingAgeMs });
      }
    }
  }

  #compare(
    file: CleanFile,
    now: RemoteEntry | undefined,
    { isThere, listingAgeMs }: { readonly isThere: boolean; readonly listingAgeMs: () => number },
  ): void {
    const { clock, remote } = this.#options;
    const { path } = file.entry;
    const brought: Thing = { kind: 'file', version: file.version };
    if (now !== undefined) this.#goneSince.delete(path);
    if (now !== undefined && isSameThing(thingOf(now), brought, remote.precisionMs)) return;
    if (now !== undefined) return this.#leave(file, { entry: now });
    if (!isThere) return;
    const since = this.#goneSince.get(path);
    if (since === undefined) this.#goneSince.set(path, clock.monotonic());
    if (since !== undefined && clock.monotonic() - since >= GONE_AGAIN_MS) return this.#leave(file, {});
    this.#checkedAt.set(parentOf(path), clock.monotonic() - listingAgeMs() + GONE_AGAIN_MS);
  }

  #leave({ entry: { path, inode, changedNs } }: CleanFile, theirs?: { readonly entry?: RemoteEntry }): void {
    this.#reasons.set(path, { inode, changedNs, ...(theirs && { theirs }) });
  }
}
