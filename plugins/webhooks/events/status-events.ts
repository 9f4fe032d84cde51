import { CacheFills } from 'mountkeeper';
import type { CacheFillsOptions, Hooks, NotificationEvent, Snapshot } from 'mountkeeper';
import { crossCaches, crossDepth } from './thresholds.ts';
import type { Crossed, Crossing, Limits } from './thresholds.ts';
import { ShareNews } from './share-events.ts';

export interface StatusEventsOptions extends CacheFillsOptions {
  readonly limits: () => Limits;
  readonly add: (event: NotificationEvent) => void;
  /** Called when the set of reported facts has changed. */
  readonly onChange: () => void;
}

/** Turns the status into events, one per crossing of a threshold. */
export class StatusEvents {
  readonly #options: StatusEventsOptions;
  readonly #news = new ShareNews();
  #crossed: Crossed;
  readonly #fills: CacheFills;

  constructor(options: StatusEventsOptions, former: Crossed) {
    this.#options = options;
    this.#fills = new CacheFills(options);
    this.#crossed = former;
  }

  get crossed(): Crossed {
    return this.#crossed;
  }

  healthChanged(change: Hooks['shareHealthChanged']['args'][0]): void {
    this.#take(this.#news.changed(change, this.#crossed, this.#options.clock.now()));
  }

  mounted(share: string): void {
    this.#news.mounted(share);
  }

  /** Call it after each cycle; it waits for nothing. */
  look({ record }: Snapshot): void {
    const { clock, limits } = this.#options;
    const by = { limits: limits(), now: clock.now() };
    this.#take(
      crossDepth(
        this.#crossed,
        {
          files: record.shares.reduce((sum, share) => sum + share.dirtyCount, 0),
          isWhole: !record.shares.some(({ isDirtyCountUnknown }) => isDirtyCountUnknown === true),
        },
        by,
      ),
    );
    const fills = this.#fills.of(record.shares);
    // Nothing is told of the file system of all caches before it is known.
    if (!fills.some(({ share, usedBytes }) => share === undefined && usedBytes === undefined))
      this.#take(crossCaches(this.#crossed, fills, by));
    this.#take(this.#news.look(this.#crossed, new Set(record.shares.map(({ name }) => name)), by.now));
  }

  #take({ crossed, events }: Crossing): void {
    const isNew = crossed !== this.#crossed && JSON.stringify(crossed) !== JSON.stringify(this.#crossed);
    this.#crossed = crossed;
    for (const event of events) this.#options.add(event);
    if (isNew) this.#options.onChange();
  }
}
