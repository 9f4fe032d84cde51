/** Hashes that can be used instead of the password: `scrypt$<cost>$<block size>$<parallel>$<salt>$<hash>`. */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

export interface PasswordHash {
  readonly cost: number;
  readonly blockSize: number;
  readonly parallel: number;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

const COST = 16_384;
const BLOCK_SIZE = 8;
const PARALLEL = 1;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Memory limit: scrypt needs 128 × cost × block size bytes; a hash that needs more is not accepted. */
const MAX_MEMORY_BYTES = 256 * 1024 * 1024;
const FORM = /^scrypt\$(\d{1,8})\$(\d{1,3})\$(\d{1,2})\$([A-Za-z0-9_-]{16,128})\$([A-Za-z0-9_-]{43,172})$/;

function derive(password: string, { cost, blockSize, parallel, salt, hash }: PasswordHash): Promise<Buffer> {
  const options = { N: cost, r: blockSize, p: parallel, maxmem: MAX_MEMORY_BYTES + 1024 * 1024 };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, hash.length, options, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}

function isUsable({ cost, blockSize, parallel }: PasswordHash): boolean {
  return (
    Number.isInteger(Math.log2(cost)) &&
    cost > 1 &&
    blockSize > 0 &&
    parallel > 0 &&
    128 * cost * blockSize * parallel <= MAX_MEMORY_BYTES
  );
}

/** Undefined when the text is a password and not a hash. */
export function parseHash(text: string): PasswordHash | undefined {
  const match = FORM.exec(text);
  if (!match) return undefined;
  const [, cost, blockSize, parallel, salt = '', hash = ''] = match;
  const parsed = {
    cost: Number(cost),
    blockSize: Number(blockSize),
    parallel: Number(parallel),
    salt: Buffer.from(salt, 'base64url'),
    hash: Buffer.from(hash, 'base64url'),
  };
  return isUsable(parsed) ? parsed : undefined;
}

export async function makeHash(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const shape = {
    cost: COST,
    blockSize: BLOCK_SIZE,
    parallel: PARALLEL,
    salt,
    hash: Buffer.alloc(HASH_BYTES),
  };
  const hash = await derive(password, shape);
  return `scrypt$${COST}$${BLOCK_SIZE}$${PARALLEL}$${salt.toString('base64url')}$${hash.toString('base64url')}`;
}

export async function matchesHash(password: string, hash: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await derive(password, hash), hash.hash);
}
