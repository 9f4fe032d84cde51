/**
 * Bounds what attempts can have written down: so many lines of refused and failed ones in a span of time, then one
 * that counts the others. So no flood fills the disk, or pushes the changes out of the files that are kept.
 */
import type { AnsweredRequest, Clock } from 'mountkeeper';
import type { Entry } from './entries.ts';

const SPAN_MS = 600_000;
const MOST_LINES = 60;
const MOST_ADDRESSES = 10;

type Write = (entry: Entry) => void;

/**
 * Those who are known, strangers who sent credentials, and those who sent none have a budget each: no noise hides what
 * others try, and nothing is easier to send than nothing.
 */
export class Attempts {
  readonly #known: Refusals;
  readonly #strangers: Refusals;
  readonly #anonymous: Refusals;

  constructor(clock: Clock, write: Write) {
    this.#known = new Refusals(clock, write, 'known');
    this.#strangers = new Refusals(clock, write, 'strangers');
    this.#anonymous = new Refusals(clock, write, 'anonymous');
  }

  add(entry: Entry, request: AnsweredRequest): void {
    const { from, hasAuthorization, status } = request;
    const { address = 'the command socket' } = from;
    if (isKnown(request)) this.#known.add(entry, address);
    else if (hasAuthorization) this.#strangers.add(entry, address);
    // Every browser begins so: nothing was tried.
    else if (status === 401) this.#anonymous.count(address);
    else this.#anonymous.add(entry, address);
  }

  end(): void {
    for (const refusals of [this.#strangers, this.#anonymous, this.#known]) refusals.end();
  }
}

/** Refused, or failed: by whoever is known for his own reasons (4xx), and by strangers for any. */
export function isAttempt(request: AnsweredRequest): boolean {
  const { status = 0 } = request;
  return status >= 400 && (status < 500 || !isKnown(request));
}

function isKnown({ from, principal }: AnsweredRequest): boolean {
  return principal !== undefined || from.users !== undefined;
}

export class Refusals {
  readonly #clock: Clock;
  readonly #write: Write;
  readonly #by: string;
  readonly #mostEach: number;
  #since = 0;
  #written = 0;
  #unwritten = 0;
  #addresses = new Map<string, number>();
  #linesOf = new Map<string, number>();
  #cancel: (() => void) | undefined;

  /** `mostEach`: lines that one address has at most. */
  constructor(
    clock: Clock,
    write: Write,
    by: 'known' | 'strangers' | 'anonymous' | 'sign-ins',
    mostEach = MOST_LINES,
  ) {
    this.#clock = clock;
    this.#write = write;
    this.#by = by;
    this.#mostEach = mostEach;
  }

  /** `attempts`: how many the line is about. */
  add(entry: Entry, address: string, attempts = 1): void {
    const lines = this.#linesOf.get(address) ?? 0;
    if (this.#written >= MOST_LINES || lines >= this.#mostEach) return this.count(address, attempts);
    this.#begin();
    this.#written += 1;
    this.#linesOf.set(address, lines + 1);
    this.#write(entry);
  }

  /** For those that get no line. */
  count(address: string, attempts = 1): void {
    this.#begin();
    this.#unwritten += attempts;
    const known = this.#addresses.has(address) || this.#addresses.size < MOST_ADDRESSES;
    const key = known ? address : 'others';
    this.#addresses.set(key, (this.#addresses.get(key) ?? 0) + attempts);
  }

  #begin(): void {
    if (this.#cancel !== undefined) return;
    this.#since = this.#clock.now();
    this.#cancel = this.#clock.after(SPAN_MS, () => this.end());
  }

  /** Ends the span, and writes down how many were not. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const [count, addresses] = [this.#unwritten, this.#addresses];
    this.#written = 0;
    this.#unwritten = 0;
    this.#addresses = new Map();
    this.#linesOf = new Map();
    if (count === 0) return;
    this.#write({
      event: 'more-attempts',
      by: this.#by,
      since: new Date(this.#since).toISOString(),
      count,
      addresses: Object.fromEntries(addresses),
    });
  }
}
