import type { Clock } from '../contract/platform.ts';

export interface BucketSize {
  /** Tokens that a full bucket holds. */
  readonly burst: number;
  /** Tokens that are added each second. */
  readonly perSecond: number;
}

/** Limits how often something happens: a burst, and a steady rate per second. */
export class TokenBucket {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #burst: number;
  #perSecond: number;
  #tokens: number;
  #filledAt: number;

  constructor(clock: Pick<Clock, 'monotonic'>, { burst, perSecond }: BucketSize) {
    this.#clock = clock;
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#tokens = burst;
    this.#filledAt = clock.monotonic();
  }

  get isEmpty(): boolean {
    this.#fill();
    return this.#tokens < 1;
  }

  /** Milliseconds until there is a token; 0 when there is one. */
  get waitMs(): number {
    this.#fill();
    return Math.max(0, Math.ceil(((1 - this.#tokens) / this.#perSecond) * 1_000));
  }

  take(): void {
    this.#tokens -= 1;
  }

  giveBack(): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + 1);
  }

  /** Sets the rate from now on. */
  fillAt(perSecond: number): void {
    this.#fill();
    this.#perSecond = perSecond;
  }

  #fill(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1_000) * this.#perSecond);
    this.#filledAt = now;
  }
}
