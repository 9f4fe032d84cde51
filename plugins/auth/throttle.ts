/**
 * Slows down guessing, per client address: after a wrong password the next different one of that address is looked at
 * only after a pause that doubles. Other addresses are not affected, and memory is bounded.
 */
import { isIPv6 } from 'node:net';
import type { Clock } from 'mountkeeper';

export interface Throttle {
  /** Resolves when the address may try; false when it tries too often to be let wait. */
  enter(address: string, signal: AbortSignal): Promise<boolean>;
  /** Returns how many wrong passwords came from there lately. */
  failed(address: string): number;
  readonly size: number;
}

/** What is remembered of one address. */
interface Visits {
  failures: number;
  /** Monotonic time before which nothing of this address is looked at. */
  nextAt: number;
  waiting: number;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
const FORGET_AFTER_MS = 10 * 60_000;
const MAX_ADDRESSES = 2_000;
const MAX_WAITING_PER_ADDRESS = 4;
const MAX_WAITING = 200;

/** One key for all addresses that one IPv6 client has at hand. */
export function clientKey(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped[1] ?? address;
  if (!isIPv6(address)) return address;
  const [head = '', tail] = (address.split('%')[0] ?? '').toLowerCase().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

export function createThrottle(clock: Clock): Throttle {
  return new AddressThrottle(clock);
}

class AddressThrottle implements Throttle {
  readonly #clock: Clock;
  /** The first is the one that failed longest ago. */
  readonly #visits = new Map<string, Visits>();
  #waiting = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#visits.size;
  }

  async enter(address: string, signal: AbortSignal): Promise<boolean> {
    const visits = this.#visits.get(clientKey(address));
    if (!visits || visits.nextAt <= this.#clock.monotonic()) return true;
    return this.#wait(visits, signal);
  }

  failed(address: string): number {
    const visits = this.#visitsOf(clientKey(address));
    const now = this.#clock.monotonic();
    if (visits.nextAt + FORGET_AFTER_MS < now) visits.failures = 0;
    visits.failures += 1;
    visits.nextAt = now + Math.min(FIRST_PAUSE_MS * 2 ** Math.min(visits.failures - 1, 10), LONGEST_PAUSE_MS);
    return visits.failures;
  }

  #visitsOf(key: string): Visits {
    const visits = this.#visits.get(key) ?? { failures: 0, nextAt: 0, waiting: 0 };
    if (!this.#visits.has(key) && this.#visits.size >= MAX_ADDRESSES) this.#makeRoom();
    this.#visits.delete(key);
    this.#visits.set(key, visits);
    return visits;
  }

  #makeRoom(): void {
    const now = this.#clock.monotonic();
    for (const [key, visits] of this.#visits) {
      const isOld = visits.nextAt + FORGET_AFTER_MS < now;
      if (visits.waiting > 0 || (!isOld && this.#visits.size < MAX_ADDRESSES)) continue;
      this.#visits.delete(key);
    }
  }

  async #wait(visits: Visits, signal: AbortSignal): Promise<boolean> {
    if (visits.waiting >= MAX_WAITING_PER_ADDRESS || this.#waiting >= MAX_WAITING) return false;
    visits.waiting += 1;
    this.#waiting += 1;
    try {
      // Another of the same address may have failed meanwhile, and moved the end of the pause.
      while (visits.nextAt > this.#clock.monotonic()) await this.#clock.sleep(visits.nextAt - this.#clock.monotonic(), signal);
      return true;
    } finally {
      visits.waiting -= 1;
      this.#waiting -= 1;
    }
  }
}
