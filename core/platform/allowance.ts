/** How much one plugin may do of something in a span of time: what strangers say and ask is bounded by these. */
import type { Clock } from '../contract/platform.ts';

export interface AllowanceLimit {
  readonly most: number;
  readonly everyMs: number;
}

/** So many in a span of time that begins with the first of them. */
export class Allowance {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #limit: AllowanceLimit;
  #sinceMs = -Infinity;
  #count = 0;
  #isFresh = false;

  constructor(clock: Pick<Clock, 'monotonic'>, limit: AllowanceLimit) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /** Whether what was last taken was the first of its span. */
  get isFresh(): boolean {
    return this.#isFresh;
  }

  /** False where there were as many already. What was refused counts as well. */
  take(amount = 1): boolean {
    const nowMs = this.#clock.monotonic();
    this.#isFresh = nowMs - this.#sinceMs >= this.#limit.everyMs;
    if (this.#isFresh) [this.#sinceMs, this.#count] = [nowMs, 0];
    this.#count += amount;
    return this.#count <= this.#limit.most;
  }
}
