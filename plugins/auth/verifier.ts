/**
 * Tells right credentials from wrong ones. Only keyed digests are compared, in constant time. Of a hashed password the
 * costly derivation is done once per credential: the digest of the last right one is kept, and so are a few wrong ones.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Credentials } from './credentials.ts';
import { matchesHash, parseHash } from './password-hash.ts';
import type { PasswordHash } from './password-hash.ts';

/** What is known of credentials without any effort; `wrong` is said of what was found wrong before. */
export type Verdict = 'right' | 'wrong' | 'unknown';

export interface Examination {
  readonly verdict: Verdict;
  /** Finds out what is unknown. Rejects when too many are being verified. */
  verify(): Promise<boolean>;
}

export interface Verifier {
  examine(credentials: Credentials): Examination;
}

const MAX_KNOWN_WRONG = 500;
/** The derivation takes tens of milliseconds of a thread of the pool that all file work shares. */
const MAX_WAITING = 16;

export class TooManyAttempts extends Error {}

export function createVerifier(username: string, password: string): Verifier {
  return new DigestVerifier(username.normalize('NFC'), password);
}

class DigestVerifier implements Verifier {
  readonly #key = randomBytes(32);
  readonly #username: string;
  readonly #hash: PasswordHash | undefined;
  /** Digest of the right credentials; of a hashed password known from the first time on. */
  #right: Buffer | undefined;
  readonly #wrong = new Set<string>();
  readonly #running = new Map<string, Promise<boolean>>();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(username: string, password: string) {
    this.#username = username;
    this.#hash = parseHash(password);
    if (!this.#hash) this.#right = this.#digest({ username, password: password.normalize('NFC') });
  }

  examine(credentials: Credentials): Examination {
    const given = this.#digest(credentials);
    if (this.#isRight(given)) return { verdict: 'right', verify: async () => true };
    const id = given.toString('base64');
    return { verdict: this.#wrong.has(id) ? 'wrong' : 'unknown', verify: () => this.#verify(credentials, id) };
  }

  async #verify(credentials: Credentials, id: string): Promise<boolean> {
    if (this.#hash) return this.#deriveOnce(credentials, this.#hash, id);
    this.#remember(id);
    return false;
  }

  #digest({ username, password }: Credentials): Buffer {
    return createHmac('sha256', this.#key).update(`${username}\0${password}`).digest();
  }

  #isRight(given: Buffer): boolean {
    return this.#right !== undefined && timingSafeEqual(given, this.#right);
  }

  #remember(id: string): void {
    this.#wrong.add(id);
    for (const oldest of this.#wrong) {
      if (this.#wrong.size <= MAX_KNOWN_WRONG) return;
      this.#wrong.delete(oldest);
    }
  }

  async #deriveOnce(credentials: Credentials, stored: PasswordHash, id: string): Promise<boolean> {
    const same = this.#running.get(id);
    if (same) return same;
    if (this.#running.size >= MAX_WAITING) throw new TooManyAttempts('too many passwords are being checked');
    const result = this.#queue.then(() => this.#derive(credentials, stored));
    this.#queue = result.catch(() => undefined);
    this.#running.set(id, result);
    try {
      const isRight = await result;
      if (!isRight) this.#remember(id);
      return isRight;
    } finally {
      this.#running.delete(id);
    }
  }

  /** The name is compared after the derivation, so that the time taken does not tell a wrong name from a wrong password. */
  async #derive(credentials: Credentials, stored: PasswordHash): Promise<boolean> {
    const isPasswordRight = await matchesHash(credentials.password, stored);
    const given = this.#digest({ username: credentials.username, password: '' });
    const isNameRight = timingSafeEqual(given, this.#digest({ username: this.#username, password: '' }));
    if (isPasswordRight && isNameRight) this.#right = this.#digest(credentials);
    return isPasswordRight && isNameRight;
  }
}
