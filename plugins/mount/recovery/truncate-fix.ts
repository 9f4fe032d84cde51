import { join } from 'node:path';
import type { Logger } from 'mountkeeper';
import { dataFile, readMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import { covers, remoteBytes } from '../cache/ranges.ts';
import type { RcClient } from '../rclone/control/remote-control.ts';

export interface TruncateFixOptions {
  readonly rc: RcClient;
  readonly trees: CacheTrees;
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly log: Logger;
  /** Truncates a file of the mount to at most this size. The name is relative to the mount. */
  readonly cut: (name: string, bytes: number) => Promise<unknown>;
}

interface Transferred {
  readonly name?: string;
  readonly completed_at?: string;
  readonly error?: string;
}

/**
 * Checks without uploads after which the list is read anyway: an upload may have begun and ended in
 * between.
 */
const IDLE_LOOKS = 15;
/** Attempts per file. A mount that is being unmounted accepts no changes. */
const TRIES = 3;

interface Attempts {
  failed: number;
  /** Settles with the attempt under way, and never rejects. */
  cutting: Promise<void> | undefined;
}

/**
 * A file that is in the cache only in part and is made shorter gets its old end back from rclone, in both
 * versions: when it is closed, or read before, the missing parts are fetched in pieces that reach past the
 * new end, and go up with the rest. The record says how long the file was when it was closed, until somebody
 * opens it again. So what has just gone up is compared with its record, and what is longer is cut anew: all
 * of it is in the cache then, and nothing is fetched.
 */
export class TruncateFix {
  readonly #options: TruncateFixOptions;
  readonly #waiting = new Map<string, Attempts>();
  #known = new Set<string>();
  #worked = false;
  #idleLooks = 0;

  constructor(options: TruncateFixOptions) {
    this.#options = options;
  }

  /** Counts the files that are longer than they should be, and remembers them. Changes no file. */
  async look(works: boolean, signal: AbortSignal): Promise<number> {
    const isDue = works || this.#worked || this.#waiting.size > 0 || this.#idleLooks >= IDLE_LOOKS;
    this.#idleLooks = isDue ? 0 : this.#idleLooks + 1;
    this.#worked = works;
    if (!isDue) return 0;
    const before = new Set(this.#waiting.keys());
    const now = await transfersNow(this.#options.rc, signal);
    for (const [key, name] of now)
      if (!this.#known.has(key)) this.#waiting.set(name, { failed: 0, cutting: undefined });
    this.#known = new Set(now.keys());
    const justMended = await this.#dropMended(before);
    return this.#waiting.size + justMended;
  }

  /** How many of those found before are in order now: cut while other figures were read, which may lack them. */
  async #dropMended(before: ReadonlySet<string>): Promise<number> {
    let justMended = 0;
    for (const [name, { cutting }] of this.#waiting) {
      if (cutting !== undefined || (await lengthOf(name, this.#options)) !== undefined) continue;
      this.#waiting.delete(name);
      if (before.has(name)) justMended += 1;
    }
    return justMended;
  }

  /** Begins to cut what was found; whether that was of use the next look tells. */
  async mend(): Promise<void> {
    for (const [name, attempts] of this.#waiting) {
      const bytes = attempts.cutting === undefined ? await lengthOf(name, this.#options) : undefined;
      if (bytes !== undefined) this.#cut(name, bytes, attempts);
    }
  }

  /** Cuts what was found, and resolves when that is over: afterwards the mount may take no changes. */
  async settle(): Promise<void> {
    await this.mend();
    for (const { cutting } of this.#waiting.values()) await cutting;
  }

  #cut(name: string, bytes: number, attempts: Attempts): void {
    const { cut, log } = this.#options;
    if (attempts.failed >= TRIES) {
      log.error(
        { path: name, bytes },
        'a file that was truncated keeps its old end on the NAS: it could not be truncated again',
      );
      this.#waiting.delete(name);
      return;
    }
    log.warn({ path: name, bytes }, 'a file that was truncated had its old end again; it is truncated again');
    attempts.cutting = cut(name, bytes)
      .then(() => undefined)
      .catch((error: unknown) => {
        attempts.failed += 1;
        log.warn({ path: name, err: error }, 'a file could not be truncated again');
      })
      .finally(() => (attempts.cutting = undefined));
  }
}

/** The file's intended length, if it is longer than that; otherwise undefined. */
async function lengthOf(name: string, { trees, fs }: TruncateFixOptions): Promise<number | undefined> {
  const root = fs.slice(fs.indexOf(':') + 1);
  const meta = await readMeta(join(trees.meta, root, name));
  if (meta === undefined || meta === 'torn' || meta.Dirty || remoteBytes(meta) <= meta.Size) return undefined;
  const content = await dataFile(join(trees.data, root, name));
  return content?.bytes === remoteBytes(meta) && covers(meta.Rs, content.bytes) ? meta.Size : undefined;
}

/**
 * The last transfers that ended well, at most 100: unique key → file name. An error is ignored: it does not
 * mean that the mount is broken.
 */
async function transfersNow(rc: RcClient, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  // As said above; but an end is passed on.
  const { transferred } = await rc
    .call<{ transferred?: readonly Transferred[] | null }>('core/transferred', {}, signal)
    .catch(() => {
      signal.throwIfAborted();
      return { transferred: [] };
    });
  const done = (transferred ?? []).filter(({ name, error }) => name !== undefined && (error ?? '') === '');
  return new Map(done.map(({ name = '', completed_at = '' }) => [`${name}\0${completed_at}`, name]));
}
