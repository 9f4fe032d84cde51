import type { Clock } from '../../contract/platform.ts';

const LOOK_EVERY_MS = 100;
/**
 * Closed connections often come back at once; closing all of them together would put new clients at the end
 * of a long line.
 */
const MOST_AT_A_LOOK = 25;

interface Late {
  /** Monotonic. */
  readonly dueAt: number;
  readonly end: () => void;
}

/** Ends connections whose time is up, a few at a time. */
export class LateConnections<T extends object> {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #all = new Map<T, Late>();
  #isLooking = false;

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#clock = clock;
  }

  /** Calls `end` once `ms` are over, or somewhat later; in place of what was set before. */
  set(connection: T, ms: number, end: () => void): void {
    this.#all.set(connection, { dueAt: this.#clock.monotonic() + ms, end });
    this.#lookLater();
  }

  clear(connection: T): void {
    this.#all.delete(connection);
  }

  #lookLater(): void {
    if (this.#isLooking || this.#all.size === 0) return;
    this.#isLooking = true;
    this.#clock.after(LOOK_EVERY_MS, () => this.#look());
  }

  #look(): void {
    this.#isLooking = false;
    const now = this.#clock.monotonic();
    let ended = 0;
    for (const [connection, { dueAt, end }] of this.#all) {
      if (dueAt > now) continue;
      this.#all.delete(connection);
      end();
      ended += 1;
      if (ended === MOST_AT_A_LOOK) break;
    }
    this.#lookLater();
  }
}
