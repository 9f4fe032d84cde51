/** HTTP Basic credentials (RFC 7617): parsing them, and comparing them without keeping them. */
import { createHmac, randomBytes } from 'node:crypto';

/** Both in Unicode's composed form (NFC). */
export interface BasicCredentials {
  readonly username: string;
  readonly password: string;
}

const MAX_HEADER_CHARACTERS = 4_096;
const BASIC = /^basic +([A-Za-z0-9+/_-]+={0,2}) *$/i;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Undefined when the header holds no Basic credentials. */
export function parseBasicCredentials(header: string | undefined): BasicCredentials | undefined {
  if (header === undefined || header.length > MAX_HEADER_CHARACTERS) return undefined;
  const [, encoded] = BASIC.exec(header) ?? [];
  if (encoded === undefined) return undefined;
  const text = decode(Buffer.from(encoded, 'base64'));
  const colon = text.indexOf(':');
  if (colon === -1) return undefined;
  return {
    username: text.slice(0, colon).normalize('NFC'),
    password: text.slice(colon + 1).normalize('NFC'),
  };
}

/** UTF-8, which servers ask for; Latin-1 for older clients. */
function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    // Not UTF-8.
    return bytes.toString('latin1');
  }
}

/**
 * Digests of credentials under a random key of this process: useless anywhere else. Compare them with
 * `timingSafeEqual`.
 */
export class CredentialDigest {
  readonly #key = randomBytes(32);

  /** The length is included, so that `ab` with `c` differs from `a` with `bc`. */
  of({ username, password }: BasicCredentials): Buffer {
    const [name, word] = [username.normalize('NFC'), password.normalize('NFC')];
    return createHmac('sha256', this.#key).update(`${name.length}:${name}${word}`).digest();
  }
}
