/**
 * Slows down the guessing of passwords. Credentials that were right before at an address are looked at
 * without waiting. Of all others each address has one looked at, and after a wrong one the next only after a
 * pause. Of those that wait the newest comes first: somebody who guesses keeps asking, so the oldest of
 * those who wait are his.
 */
import { addressKey } from './client-address.ts';
import { TokenBucket } from './token-bucket.ts';
import type { Clock } from '../services.ts';

/** One client's attempt to come in. */
export interface Attempt {
  readonly address: string;
  /** Names the credentials without telling them: a digest whose key changes when a password changes. */
  readonly id: string;
  /** Finds out whether they are right. A rejection counts as neither. */
  readonly verify: () => boolean | Promise<boolean>;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

export type Verdict = 'right' | 'wrong' | 'too-many';

export interface ThrottleOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  /** Hears of each wrong password that was looked at. `failures`: how many of this address lately. */
  readonly onWrong?: (address: string, failures: number) => void;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
/**
 * So many wrong ones come at the first pause. Then it doubles every 250: that makes 12,000 guesses in a day.
 */
const PATIENT_FAILURES = 500;
const FAILURES_PER_DOUBLING = 250;
const FORGET_AFTER_MS = 10 * 60_000;
const MAX_ADDRESSES = 2_000;
const MAX_RIGHT = 1_000;
const MAX_WRONG = 500;
const MAX_WAITING_PER_ADDRESS = 16;
const MAX_WAITING = 200;
const LONGEST_WAIT_MS = 30_000;
/**
 * A refusal is held back for so long: who is refused and asks again at once would ask thousands of times a
 * second.
 */
const HOLD_REFUSAL_MS = 2_000;
const MAX_HELD = 200;
/**
 * What is compared with credentials that were right at this address is a guess too, though nobody waits for
 * it. Eight who guess, each answered after two seconds at the latest, stay far below.
 */
const ASKED_PER_ADDRESS = { burst: 40, perSecond: 20 };
/** Of all addresses together: a thousand machines guess no faster. */
const LOOKED_AT = { burst: 200, perSecond: 50 };

type Turn = 'go' | Verdict;

interface Waiting {
  readonly id: string;
  readonly settle: (turn: Turn) => void;
}

/** What is remembered of one address. */
interface Visits {
  failures: number;
  /** Monotonic time before which nothing of this address is looked at. */
  nextAt: number;
  isLooking: boolean;
  /** The newest is the last. */
  readonly waiting: Set<Waiting>;
  readonly asked: TokenBucket;
  cancelTimer: () => void;
}

export class Throttle {
  readonly #options: ThrottleOptions;
  /** The first is the one that asked longest ago. */
  readonly #visits = new Map<string, Visits>();
  readonly #right = new Set<string>();
  readonly #wrong = new Set<string>();
  readonly #lookedAt: TokenBucket;
  readonly #all = new Set<Waiting>();
  /** Refusals that are held back, by what lets them go. */
  readonly #held = new Set<() => void>();
  #isStopped = false;

  constructor(options: ThrottleOptions) {
    this.#options = options;
    this.#lookedAt = new TokenBucket(options.clock, LOOKED_AT);
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#visits.size;
  }

  /** Rejects with what `verify` rejects with. */
  async examine(attempt: Attempt): Promise<Verdict> {
    // A page that keeps sending one wrong password guesses nothing.
    if (this.#wrong.has(attempt.id)) return 'wrong';
    const key = addressKey(attempt.address);
    const visits = this.#visitsOf(key);
    const isKnown = this.#right.has(`${key} ${attempt.id}`);
    if (visits.asked.isEmpty) return this.#refuse(attempt.signal);
    if (isKnown) return this.#look(attempt, visits, key);
    visits.asked.take();
    const turn = await this.#turn(visits, attempt);
    if (turn === 'too-many') return this.#refuse(attempt.signal);
    return turn === 'go' ? this.#lookInTurn(attempt, visits, key) : turn;
  }

  /**
   * Nobody waits any more: all are refused at once, and from now on so is everybody who would have to wait.
   */
  stop(): void {
    this.#isStopped = true;
    for (const one of this.#all) one.settle('too-many');
    for (const release of this.#held) release();
  }

  async #lookInTurn(attempt: Attempt, visits: Visits, key: string): Promise<Verdict> {
    const free = (): void => {
      visits.isLooking = false;
      this.#callNext(visits);
    };
    if (this.#lookedAt.isEmpty) {
      free();
      return this.#refuse(attempt.signal);
    }
    this.#lookedAt.take();
    const verdict = await this.#look(attempt, visits, key).finally(free);
    if (verdict === 'right') this.#lookedAt.giveBack();
    return verdict;
  }

  async #look({ address, id, verify }: Attempt, visits: Visits, key: string): Promise<Verdict> {
    const isRight = await verify();
    const known = `${key} ${id}`;
    if (isRight) {
      remember(this.#right, known, MAX_RIGHT);
    } else {
      this.#right.delete(known);
      remember(this.#wrong, id, MAX_WRONG);
      this.#failed(visits);
      this.#options.onWrong?.(address, visits.failures);
    }
    const verdict = isRight ? 'right' : 'wrong';
    for (const twin of visits.waiting) if (twin.id === id) twin.settle(verdict);
    return verdict;
  }

  #failed(visits: Visits): void {
    const now = this.#options.clock.monotonic();
    if (visits.nextAt + FORGET_AFTER_MS < now) visits.failures = 0;
    visits.failures += 1;
    visits.nextAt = now + pauseAfter(visits.failures);
  }

  #visitsOf(key: string): Visits {
    const { clock } = this.#options;
    const visits = this.#visits.get(key) ?? {
      failures: 0,
      nextAt: 0,
      isLooking: false,
      waiting: new Set(),
      asked: new TokenBucket(clock, ASKED_PER_ADDRESS),
      cancelTimer: () => undefined,
    };
    if (!this.#visits.delete(key) && this.#visits.size >= MAX_ADDRESSES) this.#forgetOldest();
    this.#visits.set(key, visits);
    return visits;
  }

  #forgetOldest(): void {
    for (const [key, { waiting, isLooking }] of this.#visits) {
      if (waiting.size === 0 && !isLooking) return void this.#visits.delete(key);
    }
  }

  /** Resolves with `go` when it is this attempt's turn, with a verdict when there is one without it. */
  #turn(visits: Visits, { id, signal }: Attempt): Promise<Turn> {
    if (!visits.isLooking && visits.nextAt <= this.#options.clock.monotonic()) {
      visits.isLooking = true;
      return Promise.resolve('go');
    }
    if (this.#isStopped) return Promise.resolve('too-many');
    if (visits.waiting.size >= MAX_WAITING_PER_ADDRESS) first(visits.waiting)?.settle('too-many');
    if (this.#all.size >= MAX_WAITING) first(this.#all)?.settle('too-many');
    return new Promise((resolve) => {
      const leave = (): void => one.settle('too-many');
      const cancel = this.#options.clock.after(LONGEST_WAIT_MS, leave);
      const one: Waiting = {
        id,
        settle: (turn) => {
          cancel();
          signal.removeEventListener('abort', leave);
          visits.waiting.delete(one);
          this.#all.delete(one);
          resolve(turn);
        },
      };
      visits.waiting.add(one);
      this.#all.add(one);
      if (signal.aborted) return leave();
      signal.addEventListener('abort', leave, { once: true });
      this.#callNext(visits);
    });
  }

  #callNext(visits: Visits): void {
    visits.cancelTimer();
    const newest = [...visits.waiting].at(-1);
    if (visits.isLooking || newest === undefined) return;
    const { clock } = this.#options;
    const leftMs = visits.nextAt - clock.monotonic();
    if (leftMs > 0) {
      visits.cancelTimer = clock.after(leftMs, () => this.#callNext(visits));
      return;
    }
    visits.isLooking = true;
    newest.settle('go');
  }

  async #refuse(signal: AbortSignal): Promise<Verdict> {
    if (this.#isStopped || this.#held.size >= MAX_HELD || signal.aborted) return 'too-many';
    await new Promise<void>((resolve) => {
      const release = (): void => {
        cancel();
        signal.removeEventListener('abort', release);
        this.#held.delete(release);
        resolve();
      };
      const cancel = this.#options.clock.after(HOLD_REFUSAL_MS, release);
      signal.addEventListener('abort', release, { once: true });
      this.#held.add(release);
    });
    return 'too-many';
  }
}

function pauseAfter(failures: number): number {
  const doublings = Math.max(0, Math.ceil((failures - PATIENT_FAILURES) / FAILURES_PER_DOUBLING));
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(doublings, 10), LONGEST_PAUSE_MS);
}

function first<T>(set: ReadonlySet<T>): T | undefined {
  for (const one of set) return one;
  return undefined;
}

/** The oldest goes when there are more than `max`. */
function remember(set: Set<string>, entry: string, max: number): void {
  set.delete(entry);
  set.add(entry);
  const oldest = set.size > max ? first(set) : undefined;
  if (oldest !== undefined) set.delete(oldest);
}
