import type { CacheView, Clock } from 'mountkeeper';

const MEASURE_EVERY_MS = 15_000;

/** What may still be fetched. Measured anew now and then, since others read and write, too. */
export class Room {
  readonly #view: Pick<CacheView, 'roomBytes'>;
  readonly #clock: Clock;
  #leftBytes = 0;
  #measuredAtMs = -Infinity;

  constructor(view: Pick<CacheView, 'roomBytes'>, clock: Clock) {
    this.#view = view;
    this.#clock = clock;
  }

  /**
   * True when the file fits, and is taken from the room. `comingBytes`: of files that are under way and not
   * on the disk yet.
   */
  async take(bytes: number, comingBytes: number): Promise<boolean> {
    const nowMs = this.#clock.monotonic();
    if (nowMs - this.#measuredAtMs >= MEASURE_EVERY_MS) {
      this.#leftBytes = (await this.#view.roomBytes()) - comingBytes;
      this.#measuredAtMs = nowMs;
    }
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }
}
