/**
 * What exporters tell of refused sign-ins, made into few lines: one at once for an address and name, then one a minute
 * for as long as it goes on, within the bound of all attempts (`refusals.ts`). And whom a notice names.
 */
import { isIP } from 'node:net';
import { addressKey, Joi } from 'mountkeeper';
import type { Clock, Notice, RefusedSignIn, RefusedSignIns } from 'mountkeeper';
import type { Entry } from './entries.ts';
import { Refusals } from './refusals.ts';

const MINUTE_MS = 60_000;
/** Addresses with a name that have a line already. Beyond them, each event has one, within the bound of all. */
const MOST_NAMES = 500;
const MOST_ADDRESSES = 200;
/** So many within so long are no mistyped password. */
const MANY = 20;
const MINUTES = 10;
/** In ten minutes, of one address or network of IPv6: its noise hides nobody else's. One name takes eleven. */
const MOST_LINES_EACH = 12;
/** Addresses in the notice. */
const MOST_SHOWN = 3;

const GUESSED =
  'minutes: a device there has a wrong password, or somebody guesses; see `mountkeeper audit` for the names that ' +
  'were tried, and keep an address that is not yours out by the firewall';
const NOBODYS =
  'minutes: all with names that nobody has, as devices try their own users, or somebody guesses; see `mountkeeper ' +
  'audit` for the names that were tried, and keep an address that is not yours out by the firewall';

const count = Joi.number().integer().min(0).required();

/** Servers count what strangers send, in processes of their own. */
export const refusedSignIns = Joi.object<RefusedSignIns>({
  refused: Joi.array()
    .items(
      Joi.object<RefusedSignIn, true>({
        address: Joi.string().max(64).required(),
        user: Joi.string().allow('', null).max(64).required(),
        isNobody: Joi.boolean().required(),
        count,
        since: count,
      }),
    )
    .max(100)
    .required(),
  others: count,
});

interface Attempted extends Omit<RefusedSignIn, 'count'> {
  readonly protocol: string;
  /** Those that are in no line yet. */
  readonly count: number;
}

/** Refused sign-ins of one address in each of the last minutes, the newest first. */
interface Recent {
  readonly address: string;
  readonly counts: number[];
  /** Those with names that somebody has, or without one. */
  readonly real: number[];
}

export class SignIns {
  readonly #clock: Clock;
  readonly #lines: Refusals;
  readonly #names = new Map<string, Attempted>();
  readonly #recent = new Map<string, Recent>();
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, write: (entry: Entry) => void) {
    this.#clock = clock;
    this.#lines = new Refusals(clock, write, 'sign-ins', MOST_LINES_EACH);
  }

  /** `protocol`: as in a share's `protocols`. */
  add(protocol: string, { refused, others }: RefusedSignIns): void {
    for (const one of refused) {
      this.#count({ protocol, ...one });
      this.#remember(one);
    }
    if (others > 0) this.#lines.count('others', others);
    this.#cancel ??= this.#clock.after(MINUTE_MS, () => this.#nextMinute());
  }

  /** Writes down what has no line yet. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    for (const one of this.#names.values()) this.#write(one);
    this.#names.clear();
    this.#lines.end();
  }

  /** Names the addresses with the most attempts: a device that has a former password tries as often as a guesser. */
  notices(): readonly Notice[] {
    const many = [...this.#recent.values()]
      .filter(({ counts }) => sumOf(counts) >= MANY)
      .sort((one, other) => sumOf(other.counts) - sumOf(one.counts));
    const [real, nobodys] = [
      many.filter((one) => sumOf(one.real) > 0),
      many.filter((one) => sumOf(one.real) === 0),
    ];
    return [
      ...noticeOf(real, { level: 'warning', rest: GUESSED }),
      ...noticeOf(nobodys, { level: 'info', rest: NOBODYS }),
    ];
  }

  #count(one: Attempted): void {
    const key = JSON.stringify([one.protocol, one.address, one.user]);
    const known = this.#names.get(key);
    if (known) {
      const since = known.count === 0 ? one.since : known.since;
      this.#names.set(key, { ...one, count: known.count + one.count, since });
      return;
    }
    this.#write(one);
    if (this.#names.size < MOST_NAMES) this.#names.set(key, { ...one, count: 0 });
  }

  #write({ protocol, user, address, count, since }: Attempted): void {
    if (count === 0) return;
    const entry: Entry = {
      event: 'refused',
      protocol,
      ...(user !== null && { user }),
      from: { address },
      count,
      since: new Date(since).toISOString(),
    };
    this.#lines.add(entry, addressKey(address), count);
  }

  #remember({ address, count, isNobody, since }: RefusedSignIn): void {
    // From before the daemon ran, or of a connection that was closed at once: nobody can do anything about it.
    if (since < this.#clock.now() - MINUTES * MINUTE_MS || isIP(address) === 0) return;
    const key = addressKey(address);
    const recent = this.#recent.get(key) ?? { address, counts: [0], real: [0] };
    recent.counts[0] = (recent.counts[0] ?? 0) + count;
    if (!isNobody) recent.real[0] = (recent.real[0] ?? 0) + count;
    if (!this.#recent.has(key) && this.#recent.size >= MOST_ADDRESSES) this.#forgetOne();
    this.#recent.set(key, recent);
  }

  /** The one with the fewest attempts. */
  #forgetOne(): void {
    let least: readonly [key: string, sum: number] | undefined;
    for (const [key, one] of this.#recent) {
      const sum = sumOf(one.counts);
      if (!least || sum < least[1]) least = [key, sum];
    }
    if (least) this.#recent.delete(least[0]);
  }

  #nextMinute(): void {
    for (const [key, one] of this.#names) {
      this.#write(one);
      if (one.count === 0) this.#names.delete(key);
      else this.#names.set(key, { ...one, count: 0 });
    }
    for (const [key, one] of this.#recent) {
      for (const minutes of [one.counts, one.real]) {
        minutes.unshift(0);
        minutes.length = Math.min(minutes.length, MINUTES);
      }
      if (sumOf(one.counts) === 0) this.#recent.delete(key);
    }
    const isOver = this.#names.size === 0 && this.#recent.size === 0;
    this.#cancel = isOver ? undefined : this.#clock.after(MINUTE_MS, () => this.#nextMinute());
  }
}

function noticeOf(
  many: readonly Recent[],
  { level, rest }: Pick<Notice, 'level'> & { readonly rest: string },
): readonly Notice[] {
  if (many.length === 0) return [];
  const from = many.slice(0, MOST_SHOWN).map(({ address }) => address);
  const others = many.length > MOST_SHOWN ? ', …' : '';
  const message = `at least ${MANY} sign-ins from ${from.join(', ')}${others} were refused within ${MINUTES} ${rest}`;
  return [{ level, message }];
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
