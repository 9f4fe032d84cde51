/**
 * Tokens: `mk_` and 256 random bits. What is random to that degree cannot be guessed, so a plain SHA-256 of it is
 * kept, and wrong ones are not slowed down.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

const BYTES = 32;
const BEARER = /^bearer +(\S{1,200}) *$/i;
export const TOKEN_HASH = /^sha256\$[A-Za-z0-9_-]{43}$/;

export function makeToken(): string {
  return `mk_${randomBytes(BYTES).toString('base64url')}`;
}

export function hashToken(token: string): string {
  return `sha256$${createHash('sha256').update(token).digest('base64url')}`;
}

/** The token of an `Authorization: Bearer` header; undefined for any other. */
export function bearerOf(header: string | undefined): string | undefined {
  return BEARER.exec(header ?? '')?.[1];
}

/** `now`: in milliseconds since 1970. */
export function isExpired({ expires }: { readonly expires?: string }, now: number): boolean {
  return expires !== undefined && !(Date.parse(expires) > now);
}

/** The entry of this token. All are compared, so that the time taken does not tell which one it is. */
export function findToken<T extends { readonly token_hash: string }>(
  tokens: readonly T[],
  token: string,
): T | undefined {
  const given = Buffer.from(hashToken(token));
  return tokens.filter(({ token_hash: kept }) => {
    const own = Buffer.from(kept);
    return own.length === given.length && timingSafeEqual(own, given);
  })[0];
}
