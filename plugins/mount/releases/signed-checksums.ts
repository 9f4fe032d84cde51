/** rclone's SHA256SUMS, clear-signed by the key that rclone signs its releases with. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** Whose signature is taken. */
export interface ReleaseKey {
  /** One or several public keys, ASCII-armoured; all but the one with the fingerprint are left out. */
  readonly armored: string;
  /** Hexadecimal, in small letters. */
  readonly fingerprint: string;
}

/** As rclone.org/release_signing gives it, which says to compare it; the key lies beside, in `assets/`. */
const FINGERPRINT = 'fbf737ece9f8ab18604bd2ac93935e02ff3b54fa';
const KEYS = fileURLToPath(
  new URL('../../../../plugins/mount/assets/rclone-release-keys.asc', import.meta.url),
);

export async function releaseKey(): Promise<ReleaseKey> {
  return { armored: await readFile(KEYS, 'utf8'), fingerprint: FINGERPRINT };
}

const LINE = /^([0-9a-f]{64}) [ *]([^/\s]+)$/;

/**
 * SHA-256 in hexadecimal by the file's name, of that part of the text that the key has signed. Rejects with a
 * sentence where there is no valid signature of the key.
 */
export async function verifiedChecksums(
  signed: string,
  key: ReleaseKey,
): Promise<ReadonlyMap<string, string>> {
  const text = await verifiedText(signed, key);
  const sums = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const [, sum, name] = LINE.exec(line.trimEnd()) ?? [];
    if (sum === undefined || name === undefined) continue;
    if (sums.has(name) && sums.get(name) !== sum)
      throw new Error(`the signed checksums have two sums for ${name}`);
    sums.set(name, sum);
  }
  return sums;
}

async function verifiedText(signed: string, { armored, fingerprint }: ReleaseKey): Promise<string> {
  // Only this command needs it: it is 1 MB of code.
  const pgp = await import('openpgp');
  const keys = await pgp.readKeys({ armoredKeys: armored });
  const key = keys.find((one) => one.getFingerprint() === fingerprint);
  if (!key) throw new Error(`the key with the fingerprint ${fingerprint} is not there`);
  const message = await pgp.readCleartextMessage({ cleartextMessage: signed }).catch((cause: unknown) => {
    throw new Error('the checksums are not signed, or their signature cannot be read', { cause });
  });
  const { publicKey, hash } = pgp.enums;
  const { data, signatures } = await pgp.verify({
    message,
    verificationKeys: key,
    config: {
      // What rclone signs with is a DSA key of 2001 and SHA-1; decision 32 says what that means.
      rejectPublicKeyAlgorithms: new Set([publicKey.elgamal]),
      rejectMessageHashAlgorithms: new Set([hash.md5, hash.ripemd]),
      allowMissingKeyFlags: true,
    },
  });
  const own = signatures.filter(({ keyID }) => key.getKeys(keyID).length > 0);
  if (own.length === 0) throw new Error('the checksums are signed by another key than that of rclone');
  await Promise.any(own.map(({ verified }) => verified)).catch((cause: unknown) => {
    throw new Error('the signature of the checksums is wrong: they are not as rclone has signed them', {
      cause,
    });
  });
  return data;
}
