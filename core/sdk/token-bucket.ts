import type { Clock } from '../services.ts';

export interface BucketSize {
  /** Tokens that a full bucket holds. */
  readonly burst: number;
  /** Tokens that are added each second. */
  readonly perSecond: number;
}

/** A limit on how often something happens: so many at once, and so many a second for good. */
export class TokenBucket {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #size: BucketSize;
  #tokens: number;
  #filledAt: number;

  constructor(clock: Pick<Clock, 'monotonic'>, size: BucketSize) {
    this.#clock = clock;
    this.#size = size;
    this.#tokens = size.burst;
    this.#filledAt = clock.monotonic();
  }

  get isEmpty(): boolean {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(
      this.#size.burst,
      this.#tokens + ((now - this.#filledAt) / 1_000) * this.#size.perSecond,
    );
    this.#filledAt = now;
    return this.#tokens < 1;
  }

  take(): void {
    this.#tokens -= 1;
  }

  giveBack(): void {
    this.#tokens = Math.min(this.#size.burst, this.#tokens + 1);
  }
}
