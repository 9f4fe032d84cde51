/** Decides about one request: who sent it, or why it is refused. */
import { parseBasicCredentials, Throttle } from 'mountkeeper';
import type { Clock, Logger, Secret, Secrets, Verdict } from 'mountkeeper';
import type { AuthConfig, WebUser } from './config.ts';
import { isCurrent, ofPassword, ofToken, ofUser } from './principals.ts';
import type { Admitted } from './principals.ts';
import { bearerOf, findToken, isExpired } from './token.ts';
import { parseHash } from './password-hash.ts';
import type { SignIns } from './sign-ins/sign-ins.ts';
import type { SecondFactor } from './totp/second-factor.ts';
import { createVerifier, TooManyAttempts } from './verifier.ts';
import type { Verifier } from './verifier.ts';

/**
 * `open`: nobody is asked. `known`: the client's password or token is right, and `admitted` is who it is.
 * `no-token`: the token is none, or has expired. `in-clear`: others on the network could read what the client sends,
 * so nothing of it was looked at.
 */
export type Decision = 'open' | 'known' | 'unauthorized' | 'no-token' | 'too-many' | 'closed' | 'in-clear';

export interface Verdicts {
  readonly decision: Decision;
  readonly admitted?: Admitted;
}

const DECISIONS: Readonly<Record<Verdict, Decision>> = {
  right: 'known',
  wrong: 'unauthorized',
  'too-many': 'too-many',
};

export interface AuthenticatorParts {
  readonly config: () => Readonly<AuthConfig>;
  readonly secrets: () => Secrets;
  readonly clock: () => Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly signIns: SignIns;
  readonly secondFactor: SecondFactor;
}

export interface RequestOrigin {
  readonly authorization: string | undefined;
  /** The one-time code typed beside name and password; without one, users who have codes are not let in. */
  readonly code?: string;
  /** The cookie of a sign-in; counts without `authorization` alone. */
  readonly cookie: string | undefined;
  readonly address: string;
  /** Others could read what it sends, and the configuration does not put up with that. */
  readonly isInClear?: boolean;
  /** A signal that aborts when the client disconnects. Called only when a password must be checked. */
  readonly gone: () => AbortSignal;
}

export interface Authenticator {
  /** False: everybody is let in without a name. */
  readonly asksAnybody: boolean;
  decide(visitor: RequestOrigin): Promise<Verdicts>;
  /** False: what let somebody in is gone, has changed or has expired. */
  isStill(admitted: Admitted): boolean;
  /** Ends the sign-ins of those who are no more what they were when they signed in. */
  reviewSignIns(): void;
}

/** A referenced password is read again after this time, so that a changed or repaired file is noticed. */
const RESOLVE_AGAIN_MS = 5_000;

type Lock =
  | { readonly kind: 'none' }
  | { readonly kind: 'closed'; readonly reason: string }
  | { readonly kind: 'password'; readonly text: string; readonly verifier: Verifier };

/** Asked about names that nobody has, so that they take as long as those of users. */
const NOBODY = ':';
const NOBODY_HASH = `scrypt$16384$8$1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

interface Fitted {
  readonly username: string;
  readonly password: Secret;
  readonly remembers: boolean;
  readonly at: number;
  readonly lock: Lock;
}

interface KeptVerifier {
  readonly hash: string;
  readonly remembers: boolean;
  readonly verifier: Verifier;
}

export function createAuthenticator(parts: AuthenticatorParts): Authenticator {
  return new PasswordAuthenticator(parts);
}

class PasswordAuthenticator implements Authenticator {
  readonly #parts: AuthenticatorParts;
  #fitted: Fitted | undefined;
  #throttle: Throttle | undefined;
  /** By the user's name. */
  readonly #verifiers = new Map<string, KeptVerifier>();

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  get asksAnybody(): boolean {
    const { users, tokens } = this.#parts.config();
    return this.#currentLock().kind !== 'none' || users.length > 0 || tokens.length > 0;
  }

  async decide(visitor: RequestOrigin): Promise<Verdicts> {
    if (!this.asksAnybody) return { decision: 'open' };
    const lock = this.#currentLock();
    const { tokens } = this.#parts.config();
    if (visitor.isInClear === true) return { decision: 'in-clear' };
    if (lock.kind === 'closed') return { decision: 'closed' };
    if (visitor.authorization === undefined && visitor.cookie !== undefined)
      return this.#decideByCookie(visitor.cookie);
    const bearer = tokens.length === 0 ? undefined : bearerOf(visitor.authorization);
    return bearer === undefined ? this.#decideByPassword(visitor, lock) : this.#decideByToken(bearer);
  }

  reviewSignIns(): void {
    this.#parts.signIns.review((admitted) => this.isStill(admitted));
  }

  isStill(admitted: Admitted): boolean {
    return (
      isCurrent(admitted, this.#parts.config(), this.#parts.clock().now()) &&
      // The password may be a reference, and what it stands for another one now.
      (admitted.lock === undefined || admitted.lock === this.#currentLock())
    );
  }

  #decideByCookie(cookie: string): Verdicts {
    this.reviewSignIns();
    const admitted = this.#parts.signIns.use(cookie);
    return admitted ? { decision: 'known', admitted } : { decision: 'unauthorized' };
  }

  #decideByToken(bearer: string): Verdicts {
    const found = findToken(this.#parts.config().tokens, bearer);
    return found === undefined || isExpired(found, this.#parts.clock().now())
      ? { decision: 'no-token' }
      : { decision: 'known', admitted: ofToken(found) };
  }

  async #decideByPassword(visitor: RequestOrigin, lock: Lock): Promise<Verdicts> {
    const credentials = parseBasicCredentials(visitor.authorization);
    if (!credentials) return { decision: 'unauthorized' };
    const { address, gone } = visitor;
    const { username } = credentials;
    const user = this.#userOf(username);
    // As they are now: they may be others once the password has been checked.
    const own = this.#parts.config();
    try {
      const password = this.#verifierFor(user, username, lock).examine(credentials);
      const holder = user ?? { name: username, totp_secret: own.totp_secret };
      const examination = this.#parts.secondFactor.after(password, holder, visitor.code);
      const verdict = await this.#throttled().examine({ address, signal: gone(), ...examination });
      const decision = DECISIONS[verdict];
      if (decision !== 'known') return { decision };
      // The configuration may have changed while others were before it, or the hash was being computed.
      const admitted = user === undefined ? ofPassword(username, own, lock) : this.#asNow(user);
      return admitted && this.isStill(admitted) ? { decision, admitted } : { decision: 'unauthorized' };
    } catch (error) {
      if (error instanceof TooManyAttempts) return { decision: 'too-many' };
      throw error;
    }
  }

  #userOf(username: string): WebUser | undefined {
    return this.#parts.config().users.find(({ name }) => name.normalize('NFC') === username);
  }

  /** Undefined: what lets the user in is another secret now. */
  #asNow(user: WebUser): Admitted | undefined {
    const now = this.#userOf(user.name.normalize('NFC'));
    return now && secretsOf(now) === secretsOf(user) ? ofUser(now) : undefined;
  }

  #verifierFor(user: WebUser | undefined, username: string, lock: Lock): Verifier {
    if (user !== undefined) return this.#kept(user.name, user.password_hash, !hasCode(user));
    const { users, username: own, totp_secret } = this.#parts.config();
    const isOwn = users.length === 0 || own.normalize('NFC') === username;
    const nobody = this.#kept(NOBODY, NOBODY_HASH, true);
    if (lock.kind !== 'password' || !isOwn) return nobody;
    const isAsSlow = users.length === 0 || parseHash(lock.text) !== undefined;
    return isAsSlow ? lock.verifier : slowedBy(nobody, lock.verifier, hasCode({ totp_secret }));
  }

  /** One for each user and hash: it remembers the right password, so that its hash is computed once. */
  #kept(name: string, hash: string, remembers: boolean): Verifier {
    const known = this.#verifiers.get(name);
    if (known?.hash === hash && known.remembers === remembers) return known.verifier;
    const { users } = this.#parts.config();
    for (const former of this.#verifiers.keys())
      if (former !== NOBODY && !users.some((user) => user.name === former)) this.#verifiers.delete(former);
    const verifier = createVerifier(name, hash, { remembers });
    this.#verifiers.set(name, { hash, remembers, verifier });
    return verifier;
  }

  #throttled(): Throttle {
    if (this.#throttle) return this.#throttle;
    const { clock, log, signal } = this.#parts;
    const throttle = new Throttle({
      clock: clock(),
      onWrong: (address, failures) => log.warn({ address, failures }, 'wrong password'),
    });
    this.#throttle = throttle;
    if (signal.aborted) throttle.stop();
    else signal.addEventListener('abort', () => throttle.stop(), { once: true });
    return throttle;
  }

  #currentLock(): Lock {
    const wanted = this.#parts.config();
    const now = this.#parts.clock().monotonic();
    const last = this.#fitted;
    const remembers = !hasCode(wanted);
    const isSame =
      last?.username === wanted.username && last.password === wanted.password && last.remembers === remembers;
    const isFresh =
      last !== undefined && (typeof wanted.password === 'string' || now - last.at < RESOLVE_AGAIN_MS);
    if (last !== undefined && isSame && isFresh) return last.lock;
    const lock = this.#makeLock(wanted);
    this.#fitted = { username: wanted.username, password: wanted.password, remembers, at: now, lock };
    return lock;
  }

  #makeLock(wanted: Readonly<AuthConfig>): Lock {
    if (wanted.password === '') return { kind: 'none' };
    try {
      const text = this.#parts.secrets().resolve(wanted.password);
      if (text === '') throw new Error('the password that web.password refers to is empty');
      const [last, remembers] = [this.#fitted, !hasCode(wanted)];
      const isSame = last?.username === wanted.username && last.remembers === remembers;
      // The verifier remembers right and wrong passwords; reading an unchanged file again must not discard
      // that.
      if (isSame && last.lock.kind === 'password' && last.lock.text === text) return last.lock;
      return { kind: 'password', text, verifier: createVerifier(wanted.username, text, { remembers }) };
    } catch (error) {
      return this.#closed(error as Error);
    }
  }

  #closed(err: Error): Lock {
    const last = this.#fitted?.lock;
    const isNews = last?.kind !== 'closed' || last.reason !== err.message;
    if (isNews) this.#parts.log.error({ err }, 'web.password cannot be read, so nobody is let in');
    return { kind: 'closed', reason: err.message };
  }
}

function hasCode({ totp_secret: secret = '' }: Pick<WebUser, 'totp_secret'>): boolean {
  return secret !== '';
}

function secretsOf({ password_hash: hash, totp_secret: totp }: WebUser): string {
  return JSON.stringify([hash, totp]);
}

/**
 * A password that is no hash is compared at once, so that a wrong one would tell its user's name by the time taken.
 * `isAlways`: the right one takes as long.
 */
function slowedBy(slow: Verifier, verifier: Verifier, isAlways: boolean): Verifier {
  return {
    examine: (credentials) => {
      const { id, verify } = verifier.examine(credentials);
      const wait = slow.examine(credentials);
      const late = async (): Promise<boolean> => {
        const [isRight] = await Promise.all([verify(), wait.verify()]);
        return isRight;
      };
      return { id, verify: isAlways ? late : async () => (await verify()) || wait.verify() };
    },
  };
}
