/** The local half of a share: its upper folder, its lower layer, and which files are open for writing. */
import { createSerialQueue } from 'mountkeeper';
import type { Clock, LeavingEntry, Logger, LookBelow, Processes, RemoteEntry, WriteLayer } from 'mountkeeper';
import { listBelow, lookBelow } from './look-below.ts';
import { foldersInUse, recentlyOpenForWriting } from './open-for-writing.ts';
import type { Outdated } from '../../rclone/remote-files.ts';
import type { Move, MovedAtNs } from '../overlay.ts';
import type { LayerPaths } from '../paths.ts';
import { TakeOut } from './take-out.ts';
import { UpperMarks } from './overlay-attributes.ts';
import { waitingCalls } from './waiting-calls.ts';

export interface LocalLayerOptions {
  readonly shareName: string;
  readonly paths: LayerPaths;
  /** Where rclone is mounted: not through bindfs, so that looks go on while users' calls wait. */
  readonly lower: string;
  readonly mountPoint: string;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: Logger;
  /** Makes rclone read these folders again. `change` runs right before and returns which ones. */
  readonly forget: (folders: readonly string[], change?: () => Promise<Outdated>) => Promise<void>;
  /** What the lower layer showed before its listings were read again. */
  readonly versions: Required<Pick<WriteLayer, 'held' | 'heldSinceMs' | 'learnt'>> & {
    /** The lower layer shows at these places now what users saw here until then. */
    readonly shown: (paths: readonly string[]) => void;
    /** Until the returned function is called, users see nothing of what the lower layer has in these folders. */
    readonly overNothing: (folders: readonly string[]) => () => void;
  };
  /** As `WriteLayer.onDisk`. */
  readonly onDisk: () => Promise<void>;
  /** Makes the kernel drop the names that it caches for the overlay. */
  readonly dropNames: () => Promise<void>;
  /** Renames entries of the upper folder, and drops the names at once. Resolves with when each was renamed. */
  readonly moveAside: (moves: readonly Move[], begin: () => Promise<void>) => Promise<readonly MovedAtNs[]>;
  /** Lets calls that ask the lower layer wait until what it returns is called. */
  readonly holdCalls: () => () => void;
  /** The same for one of several changes: what it returns ends the wait when it was the last of them. */
  readonly holdForOne: () => () => void;
  /** While calls wait: resolves when what had begun before is answered, or after a second. */
  readonly settleCalls: () => Promise<void>;
  /** Two times of one file that differ by at most this many milliseconds count as equal. */
  readonly precisionMs: () => number;
  /** Whether rclone has content of a file of that size in its own cache, or may have. */
  readonly isCached: (path: string, bytes: number) => boolean;
}

export class LocalLayer implements WriteLayer {
  readonly shareName: string;
  readonly upper: string;
  readonly aside: string;
  readonly records: string;
  readonly discarded: string;
  readonly #options: LocalLayerOptions;
  readonly #takeOut: TakeOut;
  readonly #taking = createSerialQueue();

  constructor(options: LocalLayerOptions) {
    this.shareName = options.shareName;
    this.upper = options.paths.upper;
    this.aside = options.paths.aside;
    this.records = options.paths.records;
    this.discarded = options.paths.discarded;
    this.#options = options;
    this.#takeOut = new TakeOut({
      ...options,
      marks: new UpperMarks(this.upper, options.processes),
      listLower: (folders) => this.#listLower(folders),
      overNothing: (folders) => options.versions.overNothing(folders),
    });
  }

  openForWriting(): Promise<ReadonlySet<string>> {
    const { mountPoint, clock } = this.#options;
    return recentlyOpenForWriting({ mountPoint, upper: this.upper }, clock);
  }

  inUse(): Promise<ReadonlySet<string>> {
    return Promise.resolve(foldersInUse(this.#options.mountPoint));
  }

  below(
    paths: readonly string[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<LookBelow<RemoteEntry>> {
    return lookBelow(paths, { root: this.#options.lower, processes: this.#options.processes, signal });
  }

  held(path: string, bornMs?: number): RemoteEntry | null | undefined {
    return this.#options.versions.held(path, bornMs);
  }

  heldSinceMs(): number {
    return this.#options.versions.heldSinceMs();
  }

  onDisk(): Promise<void> {
    return this.#options.onDisk();
  }

  learnt(beforeMs: number): void {
    this.#options.versions.learnt(beforeMs);
  }

  listBelow(
    folders: readonly string[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<LookBelow<readonly RemoteEntry[]>> {
    return listBelow(folders, { root: this.#options.lower, processes: this.#options.processes, signal });
  }

  /**
   * Makes rclone read the listings that it does not have cached. One that fails is read when it is next
   * asked for.
   */
  async readListings(folders: readonly string[], signal: AbortSignal): Promise<void> {
    await this.listBelow(folders, { signal });
  }

  rewriteMarks(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    return this.#takeOut.rewriteMarks(entries);
  }

  async takeOut(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    const taken = await this.#taking.run(() => this.#takeOut.take(entries));
    const gone = new Set(taken);
    // In a folder that has hidden what the lower layer has, users saw nothing of it until now.
    const isOurs = ({ path, isOpaque, nowAt }: LeavingEntry): boolean =>
      gone.has(path) && (!isOpaque || nowAt !== undefined);
    this.#options.versions.shown(entries.filter(isOurs).map(({ path, nowAt }) => nowAt ?? path));
    return taken;
  }

  async holdCalls(): Promise<() => void> {
    const { holdForOne, settleCalls } = this.#options;
    const { begin, release } = waitingCalls({ holdCalls: holdForOne, settleCalls });
    await begin();
    return release;
  }

  unrestored(): ReadonlySet<string> {
    return this.#takeOut.unrestored();
  }

  resting(): Promise<ReadonlySet<string>> {
    return this.#takeOut.resting();
  }

  /** Rejects when one cannot be read. */
  async #listLower(
    folders: readonly string[],
  ): Promise<ReadonlyMap<string, readonly RemoteEntry[] | undefined>> {
    await this.#options.forget(folders);
    const { lower, processes } = this.#options;
    const { found, failed } = await listBelow(folders, { root: lower, processes });
    for (const reason of failed.values()) throw new Error(reason);
    return found;
  }
}
