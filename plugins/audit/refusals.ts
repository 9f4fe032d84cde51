/**
 * Bounds what strangers can have written down: so many lines of refused and failed attempts in a span of time, then
 * one that counts the others. So no flood fills the disk, or pushes the changes out of the files that are kept.
 */
import type { Clock } from 'mountkeeper';
import type { Entry } from './entries.ts';

const SPAN_MS = 600_000;
const MOST_LINES = 60;
const MOST_ADDRESSES = 10;

export class Refusals {
  readonly #clock: Clock;
  readonly #write: (entry: Entry) => void;
  #since = 0;
  #written = 0;
  #unwritten = 0;
  #addresses = new Map<string, number>();
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, write: (entry: Entry) => void) {
    this.#clock = clock;
    this.#write = write;
  }

  add(entry: Entry, address: string): void {
    if (this.#cancel === undefined) {
      this.#since = this.#clock.now();
      this.#cancel = this.#clock.after(SPAN_MS, () => this.end());
    }
    if (this.#written < MOST_LINES) {
      this.#written += 1;
      return this.#write(entry);
    }
    this.#unwritten += 1;
    const known = this.#addresses.has(address) || this.#addresses.size < MOST_ADDRESSES;
    const key = known ? address : 'others';
    this.#addresses.set(key, (this.#addresses.get(key) ?? 0) + 1);
  }

  /** Ends the span, and writes down how many were not. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const [count, addresses] = [this.#unwritten, this.#addresses];
    this.#written = 0;
    this.#unwritten = 0;
    this.#addresses = new Map();
    if (count === 0) return;
    this.#write({
      event: 'more-attempts',
      since: new Date(this.#since).toISOString(),
      count,
      addresses: Object.fromEntries(addresses),
    });
  }
}
