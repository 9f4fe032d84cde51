import { statfs } from 'node:fs/promises';
import { sizeBytes } from 'mountkeeper';
import type { Clock, Config, Hooks, NotificationEvent, Snapshot } from 'mountkeeper';
import { crossCaches, crossDepth } from './thresholds.ts';
import type { Crossed, Crossing, Fill, Limits } from './thresholds.ts';
import { ShareNews } from './share-events.ts';

const DISK_EVERY_MS = 30_000;

export interface StatusEventsOptions {
  readonly clock: Clock;
  readonly cache: () => Config['cache'];
  readonly limits: () => Limits;
  readonly add: (event: NotificationEvent) => void;
  /** What has been told of has changed. */
  readonly onChange: () => void;
  /** Size and fill of the file system under a path. */
  readonly disk?: (path: string) => Promise<Omit<Fill, 'share'>>;
}

/** Turns what the status says into events, once per crossing. */
export class StatusEvents {
  readonly #options: StatusEventsOptions;
  readonly #news = new ShareNews();
  #crossed: Crossed;
  #disk: Omit<Fill, 'share'> | undefined;
  #diskAtMs = -Infinity;

  constructor(options: StatusEventsOptions, former: Crossed) {
    this.#options = options;
    this.#crossed = former;
  }

  get crossed(): Crossed {
    return this.#crossed;
  }

  healthChanged(change: Hooks['shareHealthChanged']['args'][0]): void {
    this.#take(this.#news.changed(change, this.#crossed, this.#options.clock.now()));
  }

  /** After each cycle; waits for nothing. */
  look({ record }: Snapshot): void {
    const { clock, limits } = this.#options;
    const by = { limits: limits(), now: clock.now() };
    this.#take(
      crossDepth(
        this.#crossed,
        record.shares.reduce((sum, share) => sum + share.dirtyCount, 0),
        by,
      ),
    );
    const fills = this.#fills(record.shares);
    if (fills) this.#take(crossCaches(this.#crossed, fills, by));
    this.#take(this.#news.look(this.#crossed, new Set(record.shares.map(({ name }) => name)), by.now));
  }

  /** Against the caches' own limit, else against their file system; undefined while that is not known. */
  #fills(shares: Snapshot['record']['shares']): readonly Fill[] | undefined {
    const limitBytes = sizeBytes(this.#options.cache().max_size);
    // A fresh mount counts its cache only after a while, and says 0 until then.
    if (limitBytes > 0)
      return shares.map(({ name, cacheBytes }) => ({
        share: name,
        usedBytes: cacheBytes > 0 ? cacheBytes : undefined,
        limitBytes,
      }));
    void this.#lookAtDisk();
    return this.#disk && [{ share: undefined, ...this.#disk }];
  }

  async #lookAtDisk(): Promise<void> {
    const { clock, cache, disk = diskFill } = this.#options;
    if (clock.monotonic() - this.#diskAtMs < DISK_EVERY_MS) return;
    this.#diskAtMs = clock.monotonic();
    this.#disk = await disk(cache().dir).catch(() => undefined);
    // The folder comes with the first mount.
    if (!this.#disk) this.#diskAtMs = -Infinity;
  }

  #take({ crossed, events }: Crossing): void {
    const isNew = crossed !== this.#crossed && JSON.stringify(crossed) !== JSON.stringify(this.#crossed);
    this.#crossed = crossed;
    for (const event of events) this.#options.add(event);
    if (isNew) this.#options.onChange();
  }
}

/** The cache folder lies on a local disk, never below a mount. */
async function diskFill(path: string): Promise<Omit<Fill, 'share'>> {
  const { bsize, blocks, bavail } = await statfs(path);
  return { usedBytes: (blocks - bavail) * bsize, limitBytes: blocks * bsize };
}
