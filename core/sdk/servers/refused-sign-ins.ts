/**
 * Counts the sign-ins that a server refuses, by address and name, until they are told. Bounded, whatever strangers
 * send: names beyond the bound count for their address alone, and addresses beyond theirs without it.
 */
import type { RefusedSignIn, RefusedSignIns } from '../../contract/exporter.ts';
import { addressKey } from '../http/client-address.ts';

/** Together no more than are told at once (`RefusedSignIns`). */
const MOST_NAMED = 48;
const MOST_UNNAMED = 48;
/** Of one address, or one network of IPv6: its noise hides no names that others try. */
const MOST_NAMES_EACH = 8;
const LONGEST_NAME = 64;

/** One that was refused; `at` in milliseconds since 1970. */
export interface RefusedAttempt {
  readonly address: string;
  readonly user: string | null;
  /** Nobody has that name. */
  readonly isNobody: boolean;
  readonly at: number;
}

type Counted = { -readonly [K in keyof RefusedSignIn]: RefusedSignIn[K] };

export class RefusedSignInCounts {
  #named = new Map<string, Counted>();
  #unnamed = new Map<string, Counted>();
  #namesOf = new Map<string, number>();
  #others = 0;

  add({ address: told, user, ...rest }: RefusedAttempt): void {
    // A connection that has just been closed has none.
    const address = told === '' ? 'unknown' : told;
    const who = addressKey(address);
    const name = user === null ? null : shortened(user);
    const isCounted =
      (name !== null && this.#addNamed(who, { address, user: name, ...rest })) ||
      count(this.#unnamed, who, { address, user: null, ...rest }, MOST_UNNAMED);
    if (!isCounted) this.#others += 1;
  }

  #addNamed(who: string, attempt: RefusedAttempt): boolean {
    const names = this.#namesOf.get(who) ?? 0;
    const most = names < MOST_NAMES_EACH ? MOST_NAMED : 0;
    const before = this.#named.size;
    const isCounted = count(this.#named, `${who} ${attempt.user}`, attempt, most);
    if (this.#named.size > before) this.#namesOf.set(who, names + 1);
    return isCounted;
  }

  /** Those since it was called before; undefined where there were none. */
  take(): RefusedSignIns | undefined {
    const told = { refused: [...this.#named.values(), ...this.#unnamed.values()], others: this.#others };
    this.#named = new Map();
    this.#unnamed = new Map();
    this.#namesOf = new Map();
    this.#others = 0;
    return told.refused.length === 0 ? undefined : told;
  }
}

/** False: there is no room for another one. */
function count(
  counts: Map<string, Counted>,
  key: string,
  { address, user, isNobody, at }: RefusedAttempt,
  most: number,
): boolean {
  const known = counts.get(key);
  if (known) {
    known.count += 1;
    known.isNobody &&= isNobody;
  } else if (counts.size < most) counts.set(key, { address, user, isNobody, count: 1, since: at });
  else return false;
  return true;
}

function shortened(name: string): string {
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME - 1)}…`;
}
