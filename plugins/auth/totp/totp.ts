/** One-time codes of RFC 6238, as authenticator apps make them: HMAC-SHA-1, six digits, a new one every 30 s. */
import { createHmac } from 'node:crypto';

export const STEP_MS = 30_000;
export const DIGITS = 6;
export const SECRET_BYTES = 20;
/** What RFC 4226 asks for at least. */
const LEAST_BYTES = 16;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** RFC 4648 without padding. */
export function toBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const groups = bits.match(/.{1,5}/g) ?? [];
  return groups.map((group) => ALPHABET[Number.parseInt(group.padEnd(5, '0'), 2)]).join('');
}

/** The key of a secret as people copy it: in either case, with spaces. Undefined where it is none, or too short. */
export function keyOf(secret: string): Buffer | undefined {
  const text = secret.replace(/[\s=]/g, '').toUpperCase();
  if (!/^[A-Z2-7]+$/.test(text)) return undefined;
  const bits = [...text].map((sign) => ALPHABET.indexOf(sign).toString(2).padStart(5, '0')).join('');
  const bytes = (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
  return bytes.length < LEAST_BYTES ? undefined : Buffer.from(bytes);
}

/** `at`: milliseconds since 1970. */
export function stepAt(at: number): number {
  return Math.floor(at / STEP_MS);
}

export function codeOf(key: Buffer, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', key).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0x0f;
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0');
}

/** What authenticator apps read from a QR code. */
export function uriOf(secret: string, name: string): string {
  const query = new URLSearchParams({ secret, issuer: 'Mountkeeper' });
  return `otpauth://totp/Mountkeeper:${encodeURIComponent(name)}?${query.toString()}`;
}
