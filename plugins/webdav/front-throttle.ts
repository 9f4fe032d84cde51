import { isIPv6 } from 'node:net';
import { now, pause } from './front-clock.ts';

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
const FORGET_AFTER_MS = 600_000;
const MAX_ADDRESSES = 2_000;
const MAX_WAITING = 4;

interface Visits {
  failures: number;
  nextAt: number;
  waiting: number;
}

/** Slows down guessing, per address of a client: after each wrong password the next try is looked at later. */
export class Throttle {
  readonly #visits = new Map<string, Visits>();

  /** Resolves when the address may try; with false when it tries too often to be let wait. */
  async enter(address: string): Promise<boolean> {
    const visits = this.#visits.get(addressKey(address));
    if (!visits || visits.nextAt <= now()) return true;
    if (visits.waiting >= MAX_WAITING) return false;
    visits.waiting += 1;
    // Another one of the same address may fail meanwhile.
    while (visits.nextAt > now()) await pause(visits.nextAt - now());
    visits.waiting -= 1;
    return true;
  }

  failed(address: string): void {
    const key = addressKey(address);
    const visits = this.#visits.get(key) ?? { failures: 0, nextAt: 0, waiting: 0 };
    if (visits.nextAt + FORGET_AFTER_MS < now()) visits.failures = 0;
    visits.failures += 1;
    visits.nextAt = now() + Math.min(FIRST_PAUSE_MS * 2 ** (visits.failures - 1), LONGEST_PAUSE_MS);
    this.#visits.delete(key);
    this.#visits.set(key, visits);
    if (this.#visits.size > MAX_ADDRESSES) this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const [key, visits] of this.#visits) {
      if (visits.waiting > 0) continue;
      this.#visits.delete(key);
      return;
    }
  }
}

/** One key for all addresses that one IPv6 client has at hand. */
export function addressKey(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [left, right] = (address.split('%', 1)[0] ?? '').toLowerCase().split('::').map((half) => (half === '' ? [] : half.split(':')));
  if (!left || !right) return address.toLowerCase().split(':', 4).join(':');
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  return [...left, ...zeros, ...right].slice(0, 4).join(':');
}
