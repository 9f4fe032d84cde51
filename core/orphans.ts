/**
 * Dirty files that lie in the cache on disk though no mount carries them: of shares that failed, left the configuration or
 * have not been mounted yet. As long as the disk has not been read, they count as unknown.
 */
import type { Logger } from 'pino';
import type { Clock, Mounter, PendingFiles } from './api.ts';

const EVERY_MS = 30_000;

export interface OrphanScanOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly mounter: () => Mounter | undefined;
  readonly isMounted: (share: string) => boolean;
}

export class OrphanScan {
  readonly #options: OrphanScanOptions;
  #found: ReadonlyMap<string, PendingFiles> | undefined;
  #scannedAt = -Infinity;
  #scanning: Promise<void> | undefined;

  constructor(options: OrphanScanOptions) {
    this.#options = options;
  }

  /** Undefined while the disk has not been read since the last change. */
  get total(): number | undefined {
    if (!this.#found) return undefined;
    return [...this.#found.values()].reduce((sum, pending) => sum + pending.count, 0);
  }

  count(share: string): number {
    return this.#found?.get(share)?.count ?? 0;
  }

  /** Something was unmounted or mounted: what is known is no longer sure. */
  invalidate(): void {
    this.#scannedAt = -Infinity;
  }

  /** Reads the disk when due. Never rejects, never two at once. */
  async scanWhenDue(): Promise<void> {
    if (this.#options.clock.monotonic() - this.#scannedAt < EVERY_MS) return;
    this.#scanning ??= this.scan().then(() => undefined).finally(() => {
      this.#scanning = undefined;
    });
    await this.#scanning;
  }

  /** Reads the disk now. Rejects never: an unreadable cache leaves the total unknown. */
  async scan(): Promise<ReadonlyMap<string, PendingFiles> | undefined> {
    this.#scannedAt = this.#options.clock.monotonic();
    const mounter = this.#options.mounter();
    if (!mounter) return (this.#found = undefined);
    try {
      const names = (await mounter.cached()).filter((share) => !this.#options.isMounted(share));
      const found = await Promise.all(names.map(async (share) => [share, await mounter.pending(share)] as const));
      this.#found = new Map(found.filter(([share, pending]) => pending.count > 0 && !this.#options.isMounted(share)));
    } catch (error) {
      this.#options.log.warn({ err: error }, 'cache on disk not read, its dirty files are unknown');
      this.#found = undefined;
    }
    return this.#found;
  }
}
