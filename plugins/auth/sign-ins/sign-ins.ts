/**
 * Who is signed in by cookie. Sign-ins are kept in memory alone, and only the hashes of their cookies: they end with
 * the daemon.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Clock, SignIn } from 'mountkeeper';
import type { Admitted } from '../principals.ts';

const HOUR_MS = 3_600_000;
/** Without a request. */
export const IDLE_MS = 12 * HOUR_MS;
/** In any case. */
export const LASTS_MS = 7 * 24 * HOUR_MS;
/** Of one name; the one that was not used for longest makes way. */
const MOST = 50;

export interface NewSignIn extends Pick<SignIn, 'address' | 'browser'> {
  readonly admitted: Admitted;
}

interface Kept extends NewSignIn {
  readonly id: string;
  readonly since: number;
  /** By the monotonic clock. */
  readonly begun: number;
  used: number;
  usedAt: number;
}

export class SignIns {
  readonly #clock: () => Clock;
  /** By the hash of the cookie. */
  readonly #kept = new Map<string, Kept>();

  constructor(clock: () => Clock) {
    this.#clock = clock;
  }

  /** Returns the cookie's value, which is kept nowhere. */
  begin({ admitted, address, browser }: NewSignIn): string {
    const { name } = admitted.principal;
    const own = this.#alive().filter(([, one]) => one.admitted.principal.name === name);
    const [longest] = own.sort(([, a], [, b]) => a.used - b.used);
    if (own.length >= MOST && longest) this.#kept.delete(longest[0]);
    const cookie = randomBytes(32).toString('base64url');
    const id = randomBytes(9).toString('base64url');
    const clock = this.#clock();
    const [now, since] = [clock.monotonic(), clock.now()];
    const principal = { ...admitted.principal, signIn: id };
    const times = { since, begun: now, used: now, usedAt: since };
    this.#kept.set(hashOf(cookie), { id, address, browser, ...times, admitted: { ...admitted, principal } });
    return cookie;
  }

  /** Whoever has the cookie; that counts as a use. */
  use(cookie: string): Admitted | undefined {
    const signIn = this.#kept.get(hashOf(cookie));
    if (!signIn || !this.#isAlive(signIn)) return undefined;
    signIn.used = this.#clock().monotonic();
    signIn.usedAt = this.#clock().now();
    return signIn.admitted;
  }

  /** True when there was one. */
  end(id: string): boolean {
    return [...this.#kept].some(([hash, signIn]) => signIn.id === id && this.#kept.delete(hash));
  }

  /** Ends those that have lasted too long, and those for whose holder `isCurrent` is false. */
  review(isCurrent: (admitted: Admitted) => boolean): void {
    for (const [hash, signIn] of this.#kept)
      if (!this.#isAlive(signIn) || !isCurrent(signIn.admitted)) this.#kept.delete(hash);
  }

  has(id: string): boolean {
    return this.#alive().some(([, signIn]) => signIn.id === id);
  }

  /** Those used last come first. */
  list(): readonly SignIn[] {
    return this.#alive()
      .map(([, signIn]) => signIn)
      .sort((a, b) => b.used - a.used)
      .map(({ id, admitted: { principal }, address, browser, since, usedAt }) => {
        const { name, role } = principal;
        return { id, name, role, address, browser, since, usedAt };
      });
  }

  #alive(): [string, Kept][] {
    return [...this.#kept].filter(([, signIn]) => this.#isAlive(signIn));
  }

  #isAlive({ begun, used }: Kept): boolean {
    const now = this.#clock().monotonic();
    return now - used < IDLE_MS && now - begun < LASTS_MS;
  }
}

/** The cookie is 256 random bits: nobody tries them, so a fast hash will do. */
function hashOf(cookie: string): string {
  return createHash('sha256').update(cookie).digest('base64');
}
