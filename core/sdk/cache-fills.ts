import { statfs } from 'node:fs/promises';
import type { Config } from '../contract/config.ts';
import type { Clock } from '../contract/platform.ts';
import type { ShareStatus } from '../contract/status.ts';
import { sizeBytes } from './units.ts';

const DISK_EVERY_MS = 30_000;

/** How full a cache is. */
export interface CacheFill {
  /** Undefined for the file system that all caches lie on. */
  readonly share: string | undefined;
  /** Undefined while it is not known. */
  readonly usedBytes: number | undefined;
  readonly limitBytes: number;
}

type DiskFill = Omit<CacheFill, 'share'>;

export interface CacheFillsOptions {
  readonly clock: Clock;
  readonly cache: () => Config['cache'];
  /** Use of the file system under a path. */
  readonly disk?: (path: string) => Promise<DiskFill>;
}

/**
 * How full the caches are: each relative to `cache.max_size`, or all together relative to their file
 * system. Waits for nothing.
 */
export class CacheFills {
  readonly #options: CacheFillsOptions;
  #disk: DiskFill | undefined;
  #diskAtMs = -Infinity;

  constructor(options: CacheFillsOptions) {
    this.#options = options;
  }

  of(shares: readonly ShareStatus[]): readonly CacheFill[] {
    const limitBytes = sizeBytes(this.#options.cache().max_size);
    // A fresh mount reports 0 until it has measured its cache.
    if (limitBytes > 0)
      return shares.map(({ name, cacheBytes }) => ({
        share: name,
        usedBytes: cacheBytes > 0 ? cacheBytes : undefined,
        limitBytes,
      }));
    void this.#lookAtDisk();
    return [{ share: undefined, usedBytes: undefined, limitBytes: 0, ...this.#disk }];
  }

  async #lookAtDisk(): Promise<void> {
    const { clock, cache, disk = diskFill } = this.#options;
    if (clock.monotonic() - this.#diskAtMs < DISK_EVERY_MS) return;
    this.#diskAtMs = clock.monotonic();
    // The folder comes with the first mount.
    this.#disk = await disk(cache().dir).catch(() => undefined);
    if (!this.#disk) this.#diskAtMs = -Infinity;
  }
}

/** The cache folder lies on a local disk, never below a mount. */
async function diskFill(path: string): Promise<DiskFill> {
  const { bsize, blocks, bavail } = await statfs(path);
  return { usedBytes: (blocks - bavail) * bsize, limitBytes: blocks * bsize };
}
