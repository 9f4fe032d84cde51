/**
 * Slows down password guessing. Credentials that were right before at an address are checked without
 * waiting. All others are checked at a limited rate per address, in the order of arrival. After several
 * failures the answers of an address are delayed, so that a few guessers who wait for each answer leave
 * room for the right user.
 */
import { guesserKey } from './client-address.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { Clock } from '../../contract/platform.ts';

/** One client's login attempt. */
export interface Attempt {
  readonly address: string;
  /**
   * Identifies the credentials without revealing them: a digest whose key changes with every password
   * change.
   */
  readonly id: string;
  /** Checks whether they are right. A rejection counts as neither right nor wrong. */
  readonly verify: () => boolean | Promise<boolean>;
  /** Milliseconds that a wrong answer counts, where it may be another one later; left out: for good. */
  readonly wrongForMs?: number | undefined;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

export type Verdict = 'right' | 'wrong' | 'too-many';

export interface ThrottleOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  /** Called for each wrong password that was checked. `failures`: how many this address has had lately. */
  readonly onWrong?: (address: string, failures: number) => void;
}

/**
 * Checks per address. After `PATIENT_FAILURES` the rate is halved, and again after each 250: about 12,000
 * guesses a day.
 */
const CHECKS = { burst: 10, perSecond: 4 };
const LEAST_CHECKS_PER_SECOND = 1 / 8;
const PATIENT_FAILURES = 500;
const FAILURES_PER_HALVING = 250;
const FORGET_AFTER_MS = 10 * 60_000;
/** So many mistyped passwords are answered without delay. */
const ANSWERED_AT_ONCE = 3;
/** Delay of further refusals: a client that repeats at once would ask thousands of times a second. */
const DELAY_MS = 3_000;
const MAX_DELAYED = 400;
/**
 * Comparing with credentials that were right at this address is a guess, too, though it costs no waiting.
 * Sixty guessers who are answered after three seconds each stay below this rate.
 */
const ASKED = { burst: 40, perSecond: 20 };
/** For all addresses together: a thousand machines guess no faster. */
const CHECKS_OF_ALL = { burst: 200, perSecond: 50 };
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
  /** Rate of checks of unknown credentials. */
  readonly checks: TokenBucket;
  /** Rate of comparisons with known credentials. */
  readonly asked: TokenBucket;
  /** In order of arrival. */
  readonly waiting: Set<Waiting>;
  cancelTimer: () => void;
}

export class Throttle {
  readonly #options: ThrottleOptions;
  /** In order of their last attempt, the oldest first. */
  readonly #records = new Map<string, AddressRecord>();
  readonly #right = new Set<string>();
  /** Until when each counts. */
  readonly #wrong = new Map<string, number>();
  readonly #checksOfAll: TokenBucket;
  readonly #waiting = new Set<Waiting>();
  /** Delayed answers: each function releases one. */
  readonly #locked = new Set<() => void>();
  #isStopped = false;

  constructor(options: ThrottleOptions) {
    this.#options = options;
    this.#checksOfAll = new TokenBucket(options.clock, CHECKS_OF_ALL);
  }

  /** Number of addresses that are remembered. */
  get size(): number {
    return this.#records.size;
  }

  /** Rejects with what `verify` rejects with. */
  async examine(attempt: Attempt): Promise<Verdict> {
    // A page that keeps sending one wrong password guesses nothing new.
    if ((this.#wrong.get(attempt.id) ?? -Infinity) > this.#options.clock.monotonic()) return 'wrong';
    const key = guesserKey(attempt.address);
    const record = this.#recordOf(key);
    const isKnown = this.#right.has(`${key} ${attempt.id}`);
    if (record.asked.isEmpty) return this.#delay('too-many', attempt);
    if (isKnown) return this.#check(attempt, record, key);
    record.asked.take();
    const turn = await this.#turn(record, attempt);
    if (turn === 'too-many') return this.#delay('too-many', attempt);
    return turn === 'go' ? this.#checkInTurn(attempt, record, key) : turn;
  }

  /** Answers all waiting attempts at once; from now on nobody waits. */
  stop(): void {
    this.#isStopped = true;
    for (const one of this.#waiting) one.settle('too-many');
    for (const release of this.#locked) release();
  }

  async #checkInTurn(attempt: Attempt, record: AddressRecord, key: string): Promise<Verdict> {
    if (this.#checksOfAll.isEmpty) return this.#delay('too-many', attempt);
    this.#checksOfAll.take();
    const verdict = await this.#check(attempt, record, key);
    if (verdict !== 'right') return verdict;
    // Only wrong passwords count towards the overall rate.
    this.#checksOfAll.giveBack();
    record.checks.giveBack();
    this.#callNext(record);
    return verdict;
  }

  async #check(attempt: Attempt, record: AddressRecord, key: string): Promise<Verdict> {
    const { address, id, verify, wrongForMs = Infinity } = attempt;
    const isRight = await verify();
    for (const twin of record.waiting) if (twin.id === id) twin.settle(isRight ? 'right' : 'wrong');
    if (isRight) {
      this.#right.delete(`${key} ${id}`);
      this.#right.add(`${key} ${id}`);
      forgetOldest(this.#right, MAX_RIGHT);
      return 'right';
    }
    this.#right.delete(`${key} ${id}`);
    this.#wrong.delete(id);
    this.#wrong.set(id, this.#options.clock.monotonic() + wrongForMs);
    forgetOldest(this.#wrong, MAX_WRONG);
    this.#failed(record);
    this.#options.onWrong?.(address, record.failures);
    return record.failures > ANSWERED_AT_ONCE ? this.#delay('wrong', attempt) : 'wrong';
  }

  #failed(record: AddressRecord): void {
    const now = this.#options.clock.monotonic();
    if (record.failedAt + FORGET_AFTER_MS < now) record.failures = 0;
    record.failedAt = now;
    record.failures += 1;
    record.checks.fillAt(checksPerSecond(record.failures));
  }

  #recordOf(key: string): AddressRecord {
    const { clock } = this.#options;
    const record = this.#records.get(key) ?? {
      failures: 0,
      failedAt: 0,
      checks: new TokenBucket(clock, CHECKS),
      asked: new TokenBucket(clock, ASKED),
      waiting: new Set(),
      cancelTimer: () => undefined,
    };
    if (!this.#records.delete(key) && this.#records.size >= MAX_ADDRESSES) this.#forgetOldest();
    this.#records.set(key, record);
    return record;
  }

  #forgetOldest(): void {
    for (const [key, { waiting }] of this.#records)
      if (waiting.size === 0) return void this.#records.delete(key);
  }

  /** Resolves with `go` when this attempt may be checked, or with a verdict when it need not be. */
  #turn(record: AddressRecord, { id, signal }: Attempt): Promise<Turn> {
    if (record.waiting.size === 0 && !record.checks.isEmpty) {
      record.checks.take();
      return Promise.resolve('go');
    }
    if (this.#isStopped || signal.aborted) return Promise.resolve('too-many');
    if (record.waiting.size >= MAX_WAITING_PER_ADDRESS) first(record.waiting)?.settle('too-many');
    if (this.#waiting.size >= MAX_WAITING) first(this.#waiting)?.settle('too-many');
    return new Promise((resolve) => {
      const leave = (): void => one.settle('too-many');
      const cancel = this.#options.clock.after(LONGEST_WAIT_MS, leave);
      const one: Waiting = {
        id,
        settle: (turn) => {
          cancel();
          signal.removeEventListener('abort', leave);
          record.waiting.delete(one);
          this.#waiting.delete(one);
          resolve(turn);
        },
      };
      record.waiting.add(one);
      this.#waiting.add(one);
      signal.addEventListener('abort', leave, { once: true });
      this.#callNext(record);
    });
  }

  #callNext(record: AddressRecord): void {
    record.cancelTimer();
    while (record.waiting.size > 0 && !record.checks.isEmpty) {
      record.checks.take();
      first(record.waiting)?.settle('go');
    }
    if (record.waiting.size === 0) return;
    record.cancelTimer = this.#options.clock.after(record.checks.waitMs, () => this.#callNext(record));
  }

  async #delay(verdict: Verdict, { signal }: Attempt): Promise<Verdict> {
    if (this.#isStopped || this.#locked.size >= MAX_DELAYED || signal.aborted) return verdict;
    await new Promise<void>((resolve) => {
      const release = (): void => {
        cancel();
        signal.removeEventListener('abort', release);
        this.#locked.delete(release);
        resolve();
      };
      const cancel = this.#options.clock.after(DELAY_MS, release);
      signal.addEventListener('abort', release, { once: true });
      this.#locked.add(release);
    });
    return verdict;
  }
}

function checksPerSecond(failures: number): number {
  const halvings = Math.max(0, Math.ceil((failures - PATIENT_FAILURES) / FAILURES_PER_HALVING));
  return Math.max(CHECKS.perSecond / 2 ** Math.min(halvings, 10), LEAST_CHECKS_PER_SECOND);
}

function first<T>(set: ReadonlySet<T>): T | undefined {
  for (const one of set) return one;
  return undefined;
}

/** Removes the oldest entry when there are more than `max`. */
function forgetOldest(kept: Set<string> | Map<string, unknown>, max: number): void {
  if (kept.size <= max) return;
  for (const oldest of kept.keys()) return void kept.delete(oldest);
}
