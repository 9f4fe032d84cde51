/**
 * Dirty files in the cache on disk that no mount uploads. `OrphanScan` finds those of shares that failed,
 * left the configuration or have not been mounted yet; `StrandedFiles` those that a mounted share wrote
 * while it had other settings. Until the disk has been read, their number counts as unknown.
 */
import type { Logger } from 'pino';
import type { Clock } from '../contract/platform.ts';
import type { Mounter, PendingFiles } from '../contract/mount.ts';

/**
 * Nothing writes into the cache of a share that is not mounted: this interval only matters for what people
 * change there by hand.
 */
const EVERY_MS = 300_000;
const RETRY_MS = 10_000;

export interface OrphanScanOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly mounter: () => Mounter | undefined;
  readonly isMounted: (share: string) => boolean;
  /** Called when a scan has ended. */
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

  /** Undefined while the disk has not been read completely since the last change. */
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

  /** Undefined while it is unknown. */
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

  /** A share was unmounted: what is known is out of date. */
  invalidate(): void {
    this.#isCurrent = false;
    this.#changes += 1;
    this.#nextAtMs = -Infinity;
  }

  /** Scans the disk when that is due. Never rejects, never runs twice at once. */
  async scanWhenDue(): Promise<void> {
    if (this.#options.clock.monotonic() < this.#nextAtMs) return;
    this.#scanning ??= this.#scan().finally(() => {
      this.#scanning = undefined;
    });
    await this.#scanning;
  }

  /** Scans the disk now, after a running scan. False when it could not be read completely; never rejects. */
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

const LOOK_AGAIN_MS = 5_000;
const KNOWN_EVERY_MS = 60_000;

export interface StrandedFilesOptions {
  readonly share: string;
  /** Dirty files on the disk, from this mount and all others of the share. */
  readonly pending: () => Promise<number>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly isClean: () => boolean;
  readonly onChange: () => void;
}

/**
 * Finds files in the cache of an active mount that it does not upload. A mount's figures do not count them,
 * so the disk is read once the mount says that it is clean.
 */
export class StrandedFiles {
  readonly #options: StrandedFilesOptions;
  #count: number | undefined;
  #suspected = 0;
  #nextLookAtMs = -Infinity;
  #isLooking = false;

  constructor(options: StrandedFilesOptions) {
    this.#options = options;
  }

  /** Undefined until the disk has been read reliably. */
  get count(): number | undefined {
    return this.#count;
  }

  /** Reads the disk until it is certain that nothing is stranded; never rejects. */
  async lookWhenDue(): Promise<void> {
    const { clock, isClean, log, pending, share } = this.#options;
    if (this.#isLooking || this.#count === 0 || !isClean() || clock.monotonic() < this.#nextLookAtMs) return;
    this.#isLooking = true;
    try {
      const count = await pending();
      if (isClean()) this.#judge(count);
    } catch (error) {
      log.warn({ share, err: error }, 'cache not read, what waits in it is unknown');
      this.#nextLookAtMs = clock.monotonic() + KNOWN_EVERY_MS;
    } finally {
      this.#isLooking = false;
    }
  }

  /**
   * A file written between reading the figures and reading the disk is not stranded: the disk is read
   * twice.
   */
  #judge(found: number): void {
    const { clock, log, onChange, share } = this.#options;
    const known = this.#count;
    const isCertain = found === 0 || this.#suspected > 0;
    this.#suspected = found;
    this.#nextLookAtMs = clock.monotonic() + (isCertain ? KNOWN_EVERY_MS : LOOK_AGAIN_MS);
    if (!isCertain || found === known) return;
    this.#count = found;
    if (found > 0)
      log.warn({ share, files: found }, 'files written with former settings of the share wait in its cache');
    onChange();
  }
}
