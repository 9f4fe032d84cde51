/**
 * Slows down the guessing of passwords. Credentials that were right before at an address are looked at
 * without waiting. Of all others so many of an address are looked at each second, in the order in which they
 * came. Who was wrong several times is answered late: so a few who guess, one guess after the other, leave
 * room for who is right.
 */
import { guesserKey } from './client-address.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { Clock } from '../../contract/platform.ts';

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

/**
 * For one address. After so many failures the rate is halved, and again after each 250: 12,000 guesses in a
 * day.
 */
const LOOKS = { burst: 10, perSecond: 4 };
const LEAST_LOOKS_PER_SECOND = 1 / 8;
const PATIENT_FAILURES = 500;
const FAILURES_PER_HALVING = 250;
const FORGET_AFTER_MS = 10 * 60_000;
/** Who mistypes is answered at once so many times. */
const ANSWERED_AT_ONCE = 3;
/** A later no is held back for so long: who asks again at once would ask thousands of times a second. */
const HOLD_MS = 3_000;
const MAX_HELD = 400;
/**
 * What is compared with credentials that were right at this address is a guess too, though nobody waits for
 * it. Sixty who guess, each answered after three seconds, stay below.
 */
const ASKED = { burst: 40, perSecond: 20 };
/** Of all addresses together: a thousand machines guess no faster. */
const LOOKS_OF_ALL = { burst: 200, perSecond: 50 };
const MAX_ADDRESSES = 2_000;
const MAX_RIGHT = 1_000;
const MAX_WRONG = 500;
const MAX_WAITING_PER_ADDRESS = 24;
const MAX_WAITING = 400;
const LONGEST_WAIT_MS = 30_000;

type Turn = 'go' | Verdict;

interface Waiting {
  readonly id: string;
  readonly settle: (turn: Turn) => void;
}

/** What is remembered of one address. */
interface AddressRecord {
  failures: number;
  failedAt: number;
  /** What may be looked at of those that are not known. */
  readonly looks: TokenBucket;
  /** What may be compared with those that are known. */
  readonly asked: TokenBucket;
  /** The oldest is the first. */
  readonly waiting: Set<Waiting>;
  cancelTimer: () => void;
}

export class Throttle {
  readonly #options: ThrottleOptions;
  /** The first is the one that asked longest ago. */
  readonly #records = new Map<string, AddressRecord>();
  readonly #right = new Set<string>();
  readonly #wrong = new Set<string>();
  readonly #looksOfAll: TokenBucket;
  readonly #waiting = new Set<Waiting>();
  /** Answers that are held back, by what lets them go. */
  readonly #locked = new Set<() => void>();
  #isStopped = false;

  constructor(options: ThrottleOptions) {
    this.#options = options;
    this.#looksOfAll = new TokenBucket(options.clock, LOOKS_OF_ALL);
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#records.size;
  }

  /** Rejects with what `verify` rejects with. */
  async examine(attempt: Attempt): Promise<Verdict> {
    // A page that keeps sending one wrong password guesses nothing.
    if (this.#wrong.has(attempt.id)) return 'wrong';
    const key = guesserKey(attempt.address);
    const visits = this.#recordOf(key);
    const isKnown = this.#right.has(`${key} ${attempt.id}`);
    if (visits.asked.isEmpty) return this.#hold('too-many', attempt);
    if (isKnown) return this.#look(attempt, visits, key);
    visits.asked.take();
    const turn = await this.#turn(visits, attempt);
    if (turn === 'too-many') return this.#hold('too-many', attempt);
    return turn === 'go' ? this.#lookInTurn(attempt, visits, key) : turn;
  }

  /**
   * Nobody waits any more: all are answered at once, and from now on so is everybody who would have to wait.
   */
  stop(): void {
    this.#isStopped = true;
    for (const one of this.#waiting) one.settle('too-many');
    for (const release of this.#locked) release();
  }

  async #lookInTurn(attempt: Attempt, visits: AddressRecord, key: string): Promise<Verdict> {
    if (this.#looksOfAll.isEmpty) return this.#hold('too-many', attempt);
    this.#looksOfAll.take();
    const verdict = await this.#look(attempt, visits, key);
    if (verdict !== 'right') return verdict;
    // Only who is wrong uses up what may be looked at.
    this.#looksOfAll.giveBack();
    visits.looks.giveBack();
    this.#callNext(visits);
    return verdict;
  }

  async #look(attempt: Attempt, visits: AddressRecord, key: string): Promise<Verdict> {
    const { address, id, verify } = attempt;
    const isRight = await verify();
    for (const twin of visits.waiting) if (twin.id === id) twin.settle(isRight ? 'right' : 'wrong');
    if (isRight) {
      remember(this.#right, `${key} ${id}`, MAX_RIGHT);
      return 'right';
    }
    this.#right.delete(`${key} ${id}`);
    remember(this.#wrong, id, MAX_WRONG);
    this.#failed(visits);
    this.#options.onWrong?.(address, visits.failures);
    return visits.failures > ANSWERED_AT_ONCE ? this.#hold('wrong', attempt) : 'wrong';
  }

  #failed(visits: AddressRecord): void {
    const now = this.#options.clock.monotonic();
    if (visits.failedAt + FORGET_AFTER_MS < now) visits.failures = 0;
    visits.failedAt = now;
    visits.failures += 1;
    visits.looks.fillAt(looksPerSecond(visits.failures));
  }

  #recordOf(key: string): AddressRecord {
    const { clock } = this.#options;
    const visits = this.#records.get(key) ?? {
      failures: 0,
      failedAt: 0,
      looks: new TokenBucket(clock, LOOKS),
      asked: new TokenBucket(clock, ASKED),
      waiting: new Set(),
      cancelTimer: () => undefined,
    };
    if (!this.#records.delete(key) && this.#records.size >= MAX_ADDRESSES) this.#forgetOldest();
    this.#records.set(key, visits);
    return visits;
  }

  #forgetOldest(): void {
    for (const [key, { waiting }] of this.#records)
      if (waiting.size === 0) return void this.#records.delete(key);
  }

  /** Resolves with `go` when it is this attempt's turn, with a verdict when there is one without it. */
  #turn(visits: AddressRecord, { id, signal }: Attempt): Promise<Turn> {
    if (visits.waiting.size === 0 && !visits.looks.isEmpty) {
      visits.looks.take();
      return Promise.resolve('go');
    }
    if (this.#isStopped || signal.aborted) return Promise.resolve('too-many');
    if (visits.waiting.size >= MAX_WAITING_PER_ADDRESS) first(visits.waiting)?.settle('too-many');
    if (this.#waiting.size >= MAX_WAITING) first(this.#waiting)?.settle('too-many');
    return new Promise((resolve) => {
      const leave = (): void => one.settle('too-many');
      const cancel = this.#options.clock.after(LONGEST_WAIT_MS, leave);
      const one: Waiting = {
        id,
        settle: (turn) => {
          cancel();
          signal.removeEventListener('abort', leave);
          visits.waiting.delete(one);
          this.#waiting.delete(one);
          resolve(turn);
        },
      };
      visits.waiting.add(one);
      this.#waiting.add(one);
      signal.addEventListener('abort', leave, { once: true });
      this.#callNext(visits);
    });
  }

  #callNext(visits: AddressRecord): void {
    visits.cancelTimer();
    while (visits.waiting.size > 0 && !visits.looks.isEmpty) {
      visits.looks.take();
      first(visits.waiting)?.settle('go');
    }
    if (visits.waiting.size === 0) return;
    visits.cancelTimer = this.#options.clock.after(visits.looks.waitMs, () => this.#callNext(visits));
  }

  async #hold(verdict: Verdict, { signal }: Attempt): Promise<Verdict> {
    if (this.#isStopped || this.#locked.size >= MAX_HELD || signal.aborted) return verdict;
    await new Promise<void>((resolve) => {
      const release = (): void => {
        cancel();
        signal.removeEventListener('abort', release);
        this.#locked.delete(release);
        resolve();
      };
      const cancel = this.#options.clock.after(HOLD_MS, release);
      signal.addEventListener('abort', release, { once: true });
      this.#locked.add(release);
    });
    return verdict;
  }
}

function looksPerSecond(failures: number): number {
  const halvings = Math.max(0, Math.ceil((failures - PATIENT_FAILURES) / FAILURES_PER_HALVING));
  return Math.max(LOOKS.perSecond / 2 ** Math.min(halvings, 10), LEAST_LOOKS_PER_SECOND);
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
