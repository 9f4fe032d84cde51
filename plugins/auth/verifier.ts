/**
 * Checks credentials. Only keyed digests are compared, in constant time. With a hashed password, the
 * expensive derivation runs once for the right credentials, whose digest is kept.
 */
import { timingSafeEqual } from 'node:crypto';
import { createSerialQueue, CredentialDigest } from 'mountkeeper';
import type { BasicCredentials } from 'mountkeeper';
import { matchesHash, parseHash } from './password-hash.ts';
import type { PasswordHash } from './password-hash.ts';

export interface Examination {
  /** Identifies the credentials for this verifier, and reveals nothing about them. */
  readonly id: string;
  /** Rejects when too many are being verified. */
  verify(): Promise<boolean>;
}

export interface Verifier {
  examine(credentials: BasicCredentials): Examination;
}

/** The derivation blocks a thread for tens of milliseconds, of the pool that all file work shares. */
const MAX_WAITING = 16;

export class TooManyAttempts extends Error {}

export interface VerifierTraits {
  /**
   * False: each examination of a hashed password takes the derivation. Where a code is asked for, too, what takes less
   * time would say that the password was right. Default: true.
   */
  readonly remembers?: boolean;
}

export function createVerifier(
  username: string,
  password: string,
  { remembers = true }: VerifierTraits = {},
): Verifier {
  return new DigestVerifier(username.normalize('NFC'), password, remembers);
}

class DigestVerifier implements Verifier {
  readonly #digest = new CredentialDigest();
  readonly #username: string;
  readonly #hash: PasswordHash | undefined;
  readonly #remembers: boolean;
  /** Digest of the right credentials; with a hashed password known after the first success. */
  #right: Buffer | undefined;
  readonly #running = new Map<string, Promise<boolean>>();
  readonly #queue = createSerialQueue();

  constructor(username: string, password: string, remembers: boolean) {
    this.#username = username;
    this.#remembers = remembers;
    this.#hash = parseHash(password);
    if (!this.#hash) this.#right = this.#digest.of({ username, password });
  }

  examine(credentials: BasicCredentials): Examination {
    const given = this.#digest.of(credentials);
    const id = given.toString('base64');
    return {
      id,
      verify: async () => {
        if (this.#right !== undefined && timingSafeEqual(given, this.#right)) return true;
        return this.#hash ? this.#deriveOnce(credentials, this.#hash, id) : false;
      },
    };
  }

  async #deriveOnce(credentials: BasicCredentials, stored: PasswordHash, id: string): Promise<boolean> {
    const same = this.#running.get(id);
    if (same) return same;
    if (this.#running.size >= MAX_WAITING) throw new TooManyAttempts('too many passwords are being checked');
    const result = this.#queue.run(() => this.#derive(credentials, stored));
    this.#running.set(id, result);
    try {
      return await result;
    } finally {
      this.#running.delete(id);
    }
  }

  /**
   * Compares the name after the derivation, so that the time taken does not distinguish a wrong name from a
   * wrong password.
   */
  async #derive(credentials: BasicCredentials, stored: PasswordHash): Promise<boolean> {
    const isPasswordRight = await matchesHash(credentials.password, stored);
    const given = this.#digest.of({ username: credentials.username, password: '' });
    const isNameRight = timingSafeEqual(given, this.#digest.of({ username: this.#username, password: '' }));
    if (isPasswordRight && isNameRight && this.#remembers) this.#right = this.#digest.of(credentials);
    return isPasswordRight && isNameRight;
  }
}
