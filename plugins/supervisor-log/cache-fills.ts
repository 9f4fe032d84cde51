import { statfs } from 'node:fs/promises';
import { sizeBytes } from 'mountkeeper';
import type { Clock, Config, ShareStatus } from 'mountkeeper';
import type { Fill } from './fill-levels.ts';

const DISK_EVERY_MS = 30_000;

export interface CacheFillsOptions {
  readonly clock: Clock;
  readonly cache: () => Config['cache'];
  /** Use of the file system under a path. */
  readonly disk?: (path: string) => Promise<Omit<Fill, 'name'>>;
}

/**
 * How full the caches are: each against `cache.max_size`, or else all together against their file system.
 * Waits for nothing.
 */
export class CacheFills {
  readonly #options: CacheFillsOptions;
  #disk: Omit<Fill, 'name'> | undefined;
  #diskAtMs = -Infinity;

  constructor(options: CacheFillsOptions) {
    this.#options = options;
  }

  of(shares: readonly ShareStatus[]): readonly Fill[] {
    const limitBytes = sizeBytes(this.#options.cache().max_size);
    // A fresh mount counts its cache only after a while; until then it says 0.
    if (limitBytes > 0)
      return shares.map(({ name, cacheBytes }) => ({
        name,
        usedBytes: cacheBytes > 0 ? cacheBytes : undefined,
        limitBytes,
      }));
    void this.#lookAtDisk();
    return [{ name: '', usedBytes: undefined, limitBytes: 0, ...this.#disk }];
  }

  async #lookAtDisk(): Promise<void> {
    const { clock, cache, disk = diskFill } = this.#options;
    if (clock.monotonic() - this.#diskAtMs < DISK_EVERY_MS) return;
    this.#diskAtMs = clock.monotonic();
    this.#disk = await disk(cache().dir).catch(() => undefined);
    // The folder comes with the first mount.
    if (!this.#disk) this.#diskAtMs = -Infinity;
  }
}

/** The cache folder lies on a local disk, never below a mount. */
async function diskFill(path: string): Promise<Omit<Fill, 'name'>> {
  const { bsize, blocks, bavail } = await statfs(path);
  return { usedBytes: (blocks - bavail) * bsize, limitBytes: blocks * bsize };
}
