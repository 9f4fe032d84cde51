/** Decides about one request: accepted, refused, or everybody is refused. */
import { parseBasicCredentials, Throttle } from 'mountkeeper';
import type { Clock, Logger, Secret, Secrets, Verdict } from 'mountkeeper';
import type { AuthConfig } from './config.ts';
import { createVerifier, TooManyAttempts } from './verifier.ts';
import type { Verifier } from './verifier.ts';

/** `open`: no password is set. `known`: the client's password is right. */
export type Decision = 'open' | 'known' | 'unauthorized' | 'too-many' | 'closed';

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
}

export interface RequestOrigin {
  readonly authorization: string | undefined;
  readonly address: string;
  /** A signal that aborts when the client disconnects. Called only when a password must be checked. */
  readonly gone: () => AbortSignal;
}

export interface Authenticator {
  decide(visitor: RequestOrigin): Promise<Decision>;
}

/** A referenced password is read again after this time, so that a changed or repaired file is noticed. */
const RESOLVE_AGAIN_MS = 5_000;

type Lock =
  | { readonly kind: 'none' }
  | { readonly kind: 'closed'; readonly reason: string }
  | { readonly kind: 'password'; readonly text: string; readonly verifier: Verifier };

interface Fitted {
  readonly username: string;
  readonly password: Secret;
  readonly at: number;
  readonly lock: Lock;
}

export function createAuthenticator(parts: AuthenticatorParts): Authenticator {
  return new PasswordAuthenticator(parts);
}

class PasswordAuthenticator implements Authenticator {
  readonly #parts: AuthenticatorParts;
  #fitted: Fitted | undefined;
  #throttle: Throttle | undefined;

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  async decide({ authorization, address, gone }: RequestOrigin): Promise<Decision> {
    const lock = this.#currentLock();
    if (lock.kind === 'none') return 'open';
    if (lock.kind === 'closed') return 'closed';
    const credentials = parseBasicCredentials(authorization);
    if (!credentials) return 'unauthorized';
    try {
      const examination = lock.verifier.examine(credentials);
      return DECISIONS[await this.#throttled().examine({ address, signal: gone(), ...examination })];
    } catch (error) {
      if (error instanceof TooManyAttempts) return 'too-many';
      throw error;
    }
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
    const isSame =
      last !== undefined && last.username === wanted.username && last.password === wanted.password;
    const isFresh =
      last !== undefined && (typeof wanted.password === 'string' || now - last.at < RESOLVE_AGAIN_MS);
    if (last !== undefined && isSame && isFresh) return last.lock;
    const lock = this.#makeLock(wanted);
    this.#fitted = { username: wanted.username, password: wanted.password, at: now, lock };
    return lock;
  }

  #makeLock(wanted: Readonly<AuthConfig>): Lock {
    if (wanted.password === '') return { kind: 'none' };
    try {
      const text = this.#parts.secrets().resolve(wanted.password);
      if (text === '') throw new Error('the password that web.password refers to is empty');
      const last = this.#fitted?.lock;
      // The verifier remembers right and wrong passwords; reading an unchanged file again must not discard
      // that.
      if (last?.kind === 'password' && last.text === text && this.#fitted?.username === wanted.username)
        return last;
      return { kind: 'password', text, verifier: createVerifier(wanted.username, text) };
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
