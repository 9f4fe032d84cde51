/**
 * Checks one-time codes of those whose password was right. Each code counts once. In memory: what a former daemon
 * has taken is not known, so for a while after the start none of its time is taken.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Clock, Logger } from 'mountkeeper';
import { codeOf, keyOf, stepAt } from './totp.ts';

/** Wrong codes of one holder, one after the other; then none is looked at for a while. */
export const MOST_WRONG = 5;
export const REST_MS = 15 * 60_000;
/** For clocks that are off by one step. */
const AROUND = [0, -1, 1] as const;
const TOO_LATE_OR_EARLY =
  'a right code of this user was not taken: it was used, or this daemon has just started, or the clock of this ' +
  'machine was set back, in which case a restart helps';

export interface Attempt {
  /** The name of the user. */
  readonly holder: string;
  readonly secret: string;
  readonly code: string;
}

interface Known {
  readonly secret: string;
  /** Of the last code that was taken. */
  step: number;
  wrong: number;
  /** By the monotonic clock. */
  wrongAt: number;
}

export interface CodesParts {
  readonly clock: () => Clock;
  readonly log: Logger;
}

export class Codes {
  readonly #parts: CodesParts;
  readonly #known = new Map<string, Known>();
  /** The last step of which a former daemon may have taken a code. */
  #floor = -Infinity;

  constructor(parts: CodesParts) {
    this.#parts = parts;
  }

  /** Call it at the daemon's start. */
  start(): void {
    this.#floor = stepAt(this.#parts.clock().now()) + 1;
  }

  /** True once for each code. */
  take({ code, holder, secret }: Attempt): boolean {
    const { clock, log } = this.#parts;
    const key = keyOf(secret);
    if (!key) {
      log.error({ user: holder }, 'totp_secret is none, so this user is not let in');
      return false;
    }
    const known = this.#of(holder, secret);
    const now = clock().monotonic();
    if (now - known.wrongAt >= REST_MS) known.wrong = 0;
    if (known.wrong >= MOST_WRONG) return false;
    const current = stepAt(clock().now());
    const steps = AROUND.map((offset) => current + offset);
    const right = steps.filter((step) => isSame(code, codeOf(key, step)));
    const found = right.find((step) => step > known.step);
    if (found !== undefined) {
      Object.assign(known, { step: found, wrong: 0 });
      return true;
    }
    if (right.length > 0) {
      // Nobody who guesses sends it: it is the user, too early or once more.
      log.warn({ user: holder }, TOO_LATE_OR_EARLY);
      return false;
    }
    Object.assign(known, { wrong: known.wrong + 1, wrongAt: now });
    if (known.wrong === MOST_WRONG)
      log.warn(
        { user: holder },
        'somebody has the password of this user and tries codes; none counts for 15 min',
      );
    return false;
  }

  /** Forgets those who are no users any more, so that there are not more than these. */
  keep(holders: readonly string[]): void {
    const wanted = new Set(holders.map((name) => name.normalize('NFC')));
    for (const holder of this.#known.keys())
      if (!wanted.has(holder.normalize('NFC'))) this.#known.delete(holder);
  }

  #of(holder: string, secret: string): Known {
    const known = this.#known.get(holder);
    if (known?.secret === secret) return known;
    const made = { secret, step: this.#floor, wrong: 0, wrongAt: -Infinity };
    this.#known.set(holder, made);
    return made;
  }
}

function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given.replace(/\s/g, '')), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
