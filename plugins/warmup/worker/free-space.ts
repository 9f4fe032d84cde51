import type { CacheView, Clock } from 'mountkeeper';

const MEASURE_EVERY_MS = 15_000;

/** Bytes that may still be fetched. Measured regularly, because others read and write, too. */
export class FreeSpace {
  readonly #view: Pick<CacheView, 'roomBytes'>;
  readonly #clock: Clock;
  #leftBytes = 0;
  #measuredAtMs = -Infinity;

  constructor(view: Pick<CacheView, 'roomBytes'>, clock: Clock) {
    this.#view = view;
    this.#clock = clock;
  }

  /**
   * True when the file fits; its size is then subtracted. `comingBytes`: size of files that are being
   * fetched and are not on disk yet.
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
