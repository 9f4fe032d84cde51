/**
 * What the lower layer showed before its listings were read again. A change by users that is first seen
 * afterwards may have been made on that, and must not replace what others put there. Two kinds are held: the
 * entries of the folders that are read again, until all changes from before are on record; and the versions
 * of files that somebody has open, for longer, since overlayfs copies a file up whole when it is opened for
 * writing: what arrives in the upper folder then may be the version from minutes before.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { join, posix } from 'node:path';
import { logIgnored } from 'mountkeeper';
import type { Clock, Logger, LookBelow, RemoteEntry } from 'mountkeeper';
import { Timelines } from './upper/timelines.ts';

const LOOK_MS = 30_000;
/** How long is kept what no look of the uploader has made needless. */
const KEEP_MS = 600_000;
const FOLDERS_AT_ONCE = 50;
/** Most names that are held at a time for folders that nobody named. */
const MOST_NAMES = 50_000;

type Look<T> = (paths: readonly string[], options: { readonly signal: AbortSignal }) => Promise<LookBelow<T>>;

export interface HeldVersionsOptions {
  /** Process that opens each file of the lower layer for the overlay. */
  readonly pid: number;
  /** Where it finds the lower layer. */
  readonly place: string;
  readonly below: Look<RemoteEntry>;
  readonly listBelow: Look<readonly RemoteEntry[]>;
  /** Folders in which people are at work, by their paths in the lower layer. */
  readonly active: () => Promise<readonly string[]>;
  readonly clock: Clock;
  readonly log: Logger;
  /** For tests. */
  readonly proc?: string;
}

type Listing = ReadonlyMap<string, RemoteEntry>;

export class HeldVersions {
  readonly #options: HeldVersionsOptions;
  readonly #files = new Timelines<RemoteEntry>(isSameEntry);
  readonly #folders = new Timelines<Listing>(isSameListing);
  /** From when on listings tell what users saw at a place and in it, in milliseconds since the epoch. */
  readonly #own = new Map<string, number>();
  #learntMs = 0;
  #sinceMs: number;

  constructor(options: HeldVersionsOptions) {
    this.#options = options;
    this.#sinceMs = options.clock.now();
  }

  /** How much is remembered, over all paths. */
  get size(): number {
    return this.#files.size + this.#folders.size + this.#own.size;
  }

  /** As `WriteLayer.heldSinceMs`. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Another rclone shows the remote from now on: what the former one showed died with it. */
  begin(): void {
    this.#sinceMs = this.#options.clock.now();
  }

  /** As `WriteLayer.held`. */
  of(path: string, bornMs?: number): RemoteEntry | null | undefined {
    const file = this.#files.at(path, bornMs ?? this.#learntMs);
    if (file !== undefined) return file;
    const listing = this.#folders.at(
      folderOf(path),
      Math.max(bornMs ?? 0, this.#learntMs, this.#ownSince(path)),
    );
    return listing && (listing.get(posix.basename(path)) ?? null);
  }

  /** As `WriteLayer.learnt`. */
  learnt(beforeMs: number): void {
    this.#learntMs = beforeMs;
    this.#folders.drop(beforeMs);
    this.#dropOwn(beforeMs);
  }

  /**
   * From now on the lower layer shows at these places, and in them, what users saw above it until now. Listings from
   * before tell of something else: what was there before their own change, or nothing, while it was on its way.
   */
  shown(paths: readonly string[]): void {
    this.#forget();
    // What ended in this very millisecond is from before, too.
    for (const path of paths) this.#own.set(path, this.#options.clock.now() + 1);
  }

  /**
   * Users see nothing of what the lower layer has in these folders, from before the call until the returned function is
   * called: what they make there is over nothing.
   */
  overNothing(folders: readonly string[]): () => void {
    this.#forget();
    const ends = folders.map((folder) => this.#folders.hold(folder, new Map()));
    return () => {
      const nowMs = this.#options.clock.now();
      for (const end of ends) end(nowMs);
    };
  }

  /** What no look of the uploader has made needless in time: a change that is never found out is to fill nothing. */
  #forget(): void {
    const beforeMs = this.#options.clock.now() - KEEP_MS;
    this.#folders.drop(beforeMs);
    this.#files.drop(beforeMs, this.#open());
    this.#dropOwn(beforeMs);
  }

  #dropOwn(beforeMs: number): void {
    for (const [path, sinceMs] of this.#own) if (sinceMs < beforeMs) this.#own.delete(path);
  }

  #ownSince(path: string): number {
    let sinceMs = 0;
    for (let at = path; at !== ''; at = folderOf(at)) sinceMs = Math.max(sinceMs, this.#own.get(at) ?? 0);
    return sinceMs;
  }

  /**
   * Runs a change of what the lower layer shows in these folders, or anywhere: then only folders in which
   * people are at work are held. Rejects without it when the version of an open file cannot be found out.
   */
  async during<T>(folders: readonly string[] | 'anywhere', change: () => Promise<T>): Promise<T> {
    this.#forget();
    const listed =
      folders === 'anywhere'
        ? await this.#list(await this.#options.active(), MOST_NAMES)
        : await this.#list(folders, Infinity);
    const ends = [...listed].map(([folder, listing]) => this.#folders.hold(folder, listing));
    try {
      const open = await this.#versionsOf(this.#open());
      for (const [path, entry] of open) ends.push(this.#files.hold(path, entry));
      return await change();
    } finally {
      // What was opened meanwhile may be from before the change, too.
      for (const path of this.#open()) {
        const entry = listed.get(folderOf(path))?.get(posix.basename(path));
        if (entry?.kind === 'file') ends.push(this.#files.hold(path, entry));
      }
      const nowMs = this.#options.clock.now();
      for (const end of ends) end(nowMs);
    }
  }

  /**
   * rclone answers from memory for what it has shown: a folder whose listing cannot be read now, or not in time,
   * showed nothing that users could have changed.
   */
  async #list(folders: readonly string[], most: number): Promise<ReadonlyMap<string, Listing>> {
    const { clock, listBelow, log } = this.#options;
    const listed = new Map<string, Listing>();
    const signal = clock.deadline(LOOK_MS);
    let names = 0;
    for (let start = 0; start < folders.length && names < most; start += FOLDERS_AT_ONCE) {
      const some = folders.slice(start, start + FOLDERS_AT_ONCE);
      // The NAS is away or the time is over: what is not listed is not held, as said above.
      const looked = await listBelow(some, { signal }).catch(
        logIgnored(log, 'list what the lower layer shows'),
      );
      if (looked === undefined) break;
      for (const [folder, entries] of looked.found) {
        if (entries === undefined) continue;
        listed.set(folder, new Map(entries.map((entry) => [entry.name, entry])));
        names += entries.length;
      }
    }
    return listed;
  }

  async #versionsOf(paths: ReadonlySet<string>): Promise<readonly (readonly [string, RemoteEntry])[]> {
    const { below, clock } = this.#options;
    if (paths.size === 0) return [];
    const { found, failed } = await below([...paths], {
      signal: clock.deadline(LOOK_MS),
    });
    const [why] = failed.values();
    if (why !== undefined) throw new Error(`the version of a file that is open cannot be found out: ${why}`);
    return [...found].flatMap(([path, entry]) => (entry?.kind === 'file' ? [[path, entry] as const] : []));
  }

  /** Paths in the lower layer that are open. Follows none of them. */
  #open(): ReadonlySet<string> {
    const { pid, place, proc = '/proc' } = this.#options;
    const folder = join(proc, String(pid), 'fd');
    const found = new Set<string>();
    for (const fd of attempt(() => readdirSync(folder)) ?? []) {
      const target = attempt(() => readlinkSync(join(folder, fd)));
      if (target?.startsWith(`${place}/`) === true)
        found.add(target.slice(place.length + 1).replace(/ \(deleted\)$/, ''));
    }
    return found;
  }
}

function folderOf(path: string): string {
  const folder = posix.dirname(path);
  return folder === '.' ? '' : folder;
}

function isSameEntry(a: RemoteEntry, b: RemoteEntry): boolean {
  if (a.kind !== 'file' || b.kind !== 'file') return a.kind === b.kind;
  return a.version.bytes === b.version.bytes && a.version.modifiedMs === b.version.modifiedMs;
}

function isSameListing(a: Listing, b: Listing): boolean {
  return (
    a.size === b.size &&
    [...a].every(([name, entry]) => {
      const other = b.get(name);
      return other !== undefined && isSameEntry(entry, other);
    })
  );
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    // A descriptor that was closed meanwhile, or a process that has ended.
    return undefined;
  }
}
