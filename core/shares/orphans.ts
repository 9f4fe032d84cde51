/**
 * Dirty files that lie in the cache on disk though no mount carries them: of shares that failed, left the
 * configuration or have not been mounted yet. As long as the disk has not been read, they count as unknown.
 */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';
import type { Mounter, PendingFiles } from '../contract/mount.ts';

/**
 * Nothing writes into the cache of a share that is not mounted: this only notices what people do there by
 * hand.
 */
const EVERY_MS = 300_000;
const RETRY_MS = 10_000;

export interface OrphanScanOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly mounter: () => Mounter | undefined;
  readonly isMounted: (share: string) => boolean;
  /** A scan has ended. */
  readonly onScanned: () => void;
}

export class OrphanScan {
  readonly #options: OrphanScanOptions;
  /** By share; undefined for a cache that could not be read. */
  #found: ReadonlyMap<string, PendingFiles | undefined> = new Map();
  #isCurrent = false;
  #nextAtMs = -Infinity;
  #changes = 0;
  #scanning: Promise<void> | undefined;

  constructor(options: OrphanScanOptions) {
    this.#options = options;
  }

  /** Undefined while the disk has not been read since the last change, or not all of it. */
  get total(): number | undefined {
    if (!this.#isCurrent) return undefined;
    const counts = [...this.#found]
      .filter(([share]) => !this.#options.isMounted(share))
      .map(([, pending]) => pending?.count);
    return counts.reduce(
      (sum, count) => (sum === undefined || count === undefined ? undefined : sum + count),
      0,
    );
  }

  /** Undefined while it is not known. */
  count(share: string): number | undefined {
    return this.#isCurrent && (this.#found.get(share) || !this.#found.has(share))
      ? (this.#found.get(share)?.count ?? 0)
      : undefined;
  }

  /** Shares with orphaned files, as last seen. */
  list(): readonly (readonly [string, PendingFiles])[] {
    return [...this.#found].flatMap(([share, pending]) =>
      pending && pending.count > 0 && !this.#options.isMounted(share) ? [[share, pending] as const] : [],
    );
  }

  /** Something was unmounted: what is known is no longer sure. */
  invalidate(): void {
    this.#isCurrent = false;
    this.#changes += 1;
    this.#nextAtMs = -Infinity;
  }

  /** Reads the disk when due. Never rejects, never two at once. */
  async scanWhenDue(): Promise<void> {
    if (this.#options.clock.monotonic() < this.#nextAtMs) return;
    this.#scanning ??= this.#scan().finally(() => {
      this.#scanning = undefined;
    });
    await this.#scanning;
  }

  /**
   * Reads the disk now, after a scan that is under way. False when not all of it could be read; never
   * rejects.
   */
  async scanNow(): Promise<boolean> {
    await this.#scanning;
    this.invalidate();
    await this.scanWhenDue();
    return this.total !== undefined;
  }

  async #scan(): Promise<void> {
    const { clock, log, mounter, onScanned } = this.#options;
    const changes = this.#changes;
    this.#nextAtMs = clock.monotonic() + RETRY_MS;
    try {
      const current = mounter();
      if (!current) throw new Error('no mounter is active');
      this.#found = await this.#read(current);
      if (changes !== this.#changes) return;
      this.#isCurrent = true;
      if (![...this.#found.values()].includes(undefined)) this.#nextAtMs = clock.monotonic() + EVERY_MS;
    } catch (error) {
      this.#isCurrent = false;
      log.warn({ err: error }, 'cache on disk not read, its dirty files are unknown');
    } finally {
      onScanned();
    }
  }

  async #read(mounter: Mounter): Promise<Map<string, PendingFiles | undefined>> {
    const names = (await mounter.cached()).filter((share) => !this.#options.isMounted(share));
    const entries = await Promise.all(
      names.map(async (share) => [share, await this.#pending(mounter, share)] as const),
    );
    return new Map(entries);
  }

  async #pending(mounter: Mounter, share: string): Promise<PendingFiles | undefined> {
    try {
      return await mounter.pending(share);
    } catch (error) {
      this.#options.log.warn({ share, err: error }, 'cache on disk not read, its dirty files are unknown');
      return undefined;
    }
  }
}
