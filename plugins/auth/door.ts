/** Decides about one request: let in, refused, or nobody is let in at all. */
import type { Clock, Logger, Secret, Secrets } from 'mountkeeper';
import type { AuthConfig } from './config.ts';
import { parseCredentials } from './credentials.ts';
import type { Credentials } from './credentials.ts';
import { createThrottle } from './throttle.ts';
import { createVerifier, TooManyAttempts } from './verifier.ts';
import type { Verifier } from './verifier.ts';

export type Decision = 'open' | 'unauthorized' | 'too-many' | 'closed';

export interface DoorParts {
  readonly config: () => Readonly<AuthConfig>;
  readonly secrets: () => Secrets;
  readonly clock: () => Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Visitor {
  readonly authorization: string | undefined;
  readonly address: string;
}

export interface Door {
  decide(visitor: Visitor): Promise<Decision>;
}

/** A referenced password is looked up again after this, so that a changed file or a mended one is noticed. */
const RESOLVE_AGAIN_MS = 5_000;

type Lock = { readonly kind: 'none' } | { readonly kind: 'closed'; readonly reason: string } | { readonly kind: 'password'; readonly text: string; readonly verifier: Verifier };

interface Fitted {
  readonly username: string;
  readonly password: Secret;
  readonly at: number;
  readonly lock: Lock;
}

export function createDoor({ config, secrets, clock, log, signal }: DoorParts): Door {
  let fitted: Fitted | undefined;
  let throttle: ReturnType<typeof createThrottle> | undefined;

  function closed(err: Error, previous: Fitted | undefined): Lock {
    const isNews = previous?.lock.kind !== 'closed' || previous.lock.reason !== err.message;
    if (isNews) log.error({ err }, 'web.password cannot be read, so nobody is let in');
    return { kind: 'closed', reason: err.message };
  }

  function makeLock(wanted: Readonly<AuthConfig>, previous: Fitted | undefined): Lock {
    if (wanted.password === '') return { kind: 'none' };
    try {
      const text = secrets().resolve(wanted.password);
      if (text === '') throw new Error('the password that web.password refers to is empty');
      const last = previous?.lock;
      // The verifier knows what it found right and wrong; a mere look at an unchanged file must not lose that.
      if (last?.kind === 'password' && last.text === text && previous?.username === wanted.username) return last;
      return { kind: 'password', text, verifier: createVerifier(wanted.username, text) };
    } catch (error) {
      return closed(error as Error, previous);
    }
  }

  function currentLock(): Lock {
    const wanted = config();
    const now = clock().monotonic();
    const isSame = fitted !== undefined && fitted.username === wanted.username && fitted.password === wanted.password;
    const isFresh = fitted !== undefined && (typeof wanted.password === 'string' || now - fitted.at < RESOLVE_AGAIN_MS);
    if (fitted === undefined || !isSame || !isFresh) {
      fitted = { username: wanted.username, password: wanted.password, at: now, lock: makeLock(wanted, fitted) };
    }
    return fitted.lock;
  }

  async function tryPassword(credentials: Credentials, address: string, verifier: Verifier): Promise<Decision> {
    throttle ??= createThrottle(clock());
    if (!(await throttle.enter(address, signal))) return 'too-many';
    if (await verifier.verify(credentials)) return 'open';
    const failures = throttle.failed(address);
    log.warn({ address, failures }, 'wrong password');
    return 'unauthorized';
  }

  async function judge(credentials: Credentials, address: string, verifier: Verifier): Promise<Decision> {
    // A page that keeps sending one wrong password guesses nothing and earns no further pause.
    if (verifier.peek(credentials) === 'wrong') return 'unauthorized';
    try {
      return await tryPassword(credentials, address, verifier);
    } catch (error) {
      if (error instanceof TooManyAttempts || signal.aborted) return 'too-many';
      throw error;
    }
  }

  return {
    async decide({ authorization, address }) {
      const lock = currentLock();
      if (lock.kind === 'none') return 'open';
      if (lock.kind === 'closed') return 'closed';
      const credentials = parseCredentials(authorization);
      return credentials ? judge(credentials, address, lock.verifier) : 'unauthorized';
    },
  };
}
