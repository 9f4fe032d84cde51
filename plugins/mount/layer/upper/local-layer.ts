/** The local half of a share: its upper folder, its lower layer, and which files are open for writing. */
import { createSerialQueue } from 'mountkeeper';
import { join } from 'node:path';
import type {
  Clock,
  LeavingEntry,
  Logger,
  LookBelow,
  Processes,
  RemoteEntry,
  RemoteVersion,
  WriteLayer,
} from 'mountkeeper';
import { findMany } from './find-many.ts';
import type { FoundAt, Seen } from './find-many.ts';
import { foldersInUse, openForWriting } from './open-for-writing.ts';
import type { Outdated } from '../../rclone/remote-files.ts';
import type { LayerPaths } from '../paths.ts';
import { TakeOut } from './take-out.ts';
import { UpperMarks } from './overlay-attributes.ts';

/** A lookup in the lower layer may wait for a listing of the remote, never for content. */
const LOOK_TIMEOUT_MS = 30_000;

export interface LocalLayerOptions {
  readonly shareName: string;
  readonly paths: LayerPaths;
  /** Where rclone is mounted. */
  readonly lower: string;
  readonly mountPoint: string;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: Logger;
  /** Makes rclone read these folders again. `change` runs right before and returns which ones. */
  readonly forget: (folders: readonly string[], change?: () => Promise<Outdated>) => Promise<void>;
  /** Versions of files that were open when their listings were read again. */
  readonly heldVersion: (path: string, openedAtMs: number) => RemoteVersion | undefined;
  /** Makes the kernel drop the names that it caches for the overlay. */
  readonly dropNames: () => Promise<void>;
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
  readonly #options: LocalLayerOptions;
  readonly #takeOut: TakeOut;
  readonly #taking = createSerialQueue();

  constructor(options: LocalLayerOptions) {
    this.shareName = options.shareName;
    this.upper = options.paths.upper;
    this.aside = options.paths.aside;
    this.records = options.paths.records;
    this.#options = options;
    this.#takeOut = new TakeOut({
      ...options,
      marks: new UpperMarks(this.upper, options.processes),
      listLower: (folders) => this.#listLower(folders),
    });
  }

  openForWriting(): Promise<ReadonlySet<string>> {
    return Promise.resolve(openForWriting({ mountPoint: this.#options.mountPoint, upper: this.upper }));
  }

  inUse(): Promise<ReadonlySet<string>> {
    return Promise.resolve(foldersInUse(this.#options.mountPoint));
  }

  below(
    paths: readonly string[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<LookBelow<RemoteEntry>> {
    return this.#look(paths, { isInside: false, signal, read: ({ self }) => entryOf(self) });
  }

  heldVersion(path: string, openedAtMs: number): RemoteVersion | undefined {
    return this.#options.heldVersion(path, openedAtMs);
  }

  listBelow(
    folders: readonly string[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<LookBelow<readonly RemoteEntry[]>> {
    return this.#look(folders, { isInside: true, signal, read: entriesOf });
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

  takeOut(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    return this.#taking.run(() => this.#takeOut.take(entries));
  }

  /** Rejects when one cannot be read. */
  async #listLower(
    folders: readonly string[],
  ): Promise<ReadonlyMap<string, readonly RemoteEntry[] | undefined>> {
    await this.#options.forget(folders);
    const { found, failed } = await this.#look(folders, { isInside: true, read: entriesOf });
    for (const reason of failed.values()) throw new Error(reason);
    return found;
  }

  async #look<T>(
    paths: readonly string[],
    { isInside, signal, read }: LookOptions<T>,
  ): Promise<LookBelow<T>> {
    const { lower, processes } = this.#options;
    const whole = new Map(paths.map((path) => [path, path === '' ? lower : join(lower, path)]));
    const looked = await findMany([...whole.values()], {
      processes,
      isInside,
      timeoutMs: LOOK_TIMEOUT_MS,
      signal,
    });
    const found = new Map<string, T | undefined>();
    const failed = new Map<string, string>();
    for (const [path, one] of whole) {
      const reason = looked.failed.get(one);
      const at = looked.found.get(one);
      if (reason === undefined) found.set(path, at && read(at));
      else failed.set(path, `what lies below cannot be looked at: ${reason}`);
    }
    return { found, failed };
  }
}

interface LookOptions<T> {
  readonly isInside: boolean;
  readonly signal?: AbortSignal;
  readonly read: (at: FoundAt) => T | undefined;
}

function entriesOf({ self, inside }: FoundAt): readonly RemoteEntry[] | undefined {
  return self.type === 'd' ? inside.map(entryOf).filter((entry) => entry !== undefined) : undefined;
}

function entryOf({ type, bytes, modified, name }: Seen): RemoteEntry | undefined {
  if (type === 'd') return { name, kind: 'folder' };
  return type === 'f'
    ? { name, kind: 'file', version: { bytes, modifiedMs: Number(modified) * 1000 } }
    : undefined;
}
