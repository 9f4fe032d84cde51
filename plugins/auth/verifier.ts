/**
 * Tells right credentials from wrong ones. Only keyed digests are compared, in constant time. Of a hashed password the
 * costly derivation is done once per credential: the digest of the last right one is kept, and so are a few wrong ones.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Credentials } from './credentials.ts';
import { matchesHash, parseHash } from './password-hash.ts';
import type { PasswordHash } from './password-hash.ts';

export type Verdict = 'right' | 'wrong' | 'unknown';

export interface Verifier {
  /** What is known without any effort; `unknown` needs `verify`. `wrong` is said of what was found wrong before. */
  peek(credentials: Credentials): Verdict;
  /** Rejects when too many are being verified. */
  verify(credentials: Credentials): Promise<boolean>;
}

const MAX_KNOWN_WRONG = 500;
/** The derivation takes tens of milliseconds of a thread of the pool that all file work shares. */
const MAX_WAITING = 32;

export class TooManyAttempts extends Error {}

export function createVerifier(username: string, password: string): Verifier {
  const key = randomBytes(32);
  const digest = (user: string, secret: string): Buffer => createHmac('sha256', key).update(`${user}\0${secret}`).digest();
  const hash = parseHash(password);
  const name = username.normalize('NFC');
  let right = hash ? undefined : digest(name, password.normalize('NFC'));
  const wrong = new Set<string>();
  const running = new Map<string, Promise<boolean>>();
  let queue: Promise<unknown> = Promise.resolve();

  function remember(id: string): void {
    wrong.add(id);
    for (const oldest of wrong) {
      if (wrong.size <= MAX_KNOWN_WRONG) return;
      wrong.delete(oldest);
    }
  }

  /** The name is compared after the derivation, so that the time taken does not tell a wrong name from a wrong password. */
  async function deriveAndCompare(credentials: Credentials, stored: PasswordHash): Promise<boolean> {
    const isPasswordRight = await matchesHash(credentials.password, stored);
    const isNameRight = timingSafeEqual(digest(credentials.username, ''), digest(name, ''));
    if (isPasswordRight && isNameRight) right = digest(credentials.username, credentials.password);
    return isPasswordRight && isNameRight;
  }

  async function verifyOnce(credentials: Credentials, stored: PasswordHash, id: string): Promise<boolean> {
    const same = running.get(id);
    if (same) return same;
    if (running.size >= MAX_WAITING) throw new TooManyAttempts('too many passwords are being checked');
    const result = queue.then(() => deriveAndCompare(credentials, stored));
    queue = result.catch(() => undefined);
    running.set(id, result);
    try {
      const isRight = await result;
      if (!isRight) remember(id);
      return isRight;
    } finally {
      running.delete(id);
    }
  }

  return {
    peek(credentials) {
      const given = digest(credentials.username, credentials.password);
      if (right !== undefined && timingSafeEqual(given, right)) return 'right';
      return wrong.has(given.toString('base64')) ? 'wrong' : 'unknown';
    },
    async verify(credentials) {
      const given = digest(credentials.username, credentials.password);
      if (right !== undefined && timingSafeEqual(given, right)) return true;
      if (hash) return verifyOnce(credentials, hash, given.toString('base64'));
      remember(given.toString('base64'));
      return false;
    },
  };
}
