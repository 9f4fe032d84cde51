/** A certificate and its key: read from two files, and checked to belong together. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { KeyPair } from '../../contract/http.ts';
import { readSmallFile } from '../files/small-file.ts';

const OTHERS_READ = 0o004;

export interface PairFiles {
  /** The certificate, and after it the chain up to the root, in PEM. */
  readonly certificate: string;
  readonly key: string;
}

/** Throws a sentence when a file cannot be read, everybody may read the key, or the two do not belong together. */
export function readPair({ certificate, key: keyFile }: PairFiles): KeyPair {
  const cert = readSmallFile(certificate, `the certificate ${certificate}`);
  const first = parseCertificate(cert, certificate);
  const key = readKey(keyFile);
  if (!first.checkPrivateKey(createPrivateKey(key)))
    throw new Error(`the key ${keyFile} does not belong to the certificate ${certificate}`);
  refuseUnusable({ cert, key }, certificate);
  return { cert, key, fingerprint: first.fingerprint256, endsAt: Date.parse(first.validTo) };
}

function parseCertificate(text: string, file: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch (cause) {
    throw new Error(`${file} holds no certificate in PEM, or half of one`, { cause });
  }
}

/** The key in PEM. Throws a sentence when it cannot be used, or when everybody may read it. */
export function readKey(file: string): string {
  const text = readSmallFile(file, `the key ${file}`, ({ mode }) => {
    if ((mode & OTHERS_READ) === 0) return;
    throw new Error(`every user of this machine may read it; run: chmod o-rwx ${file}`);
  });
  try {
    createPrivateKey(text);
  } catch (cause) {
    throw new Error(`${file} holds no key in PEM, half of one, or one with a passphrase`, { cause });
  }
  return text;
}

/** For example a chain that breaks off in the middle, or a key that is too short to be used. */
function refuseUnusable(pair: Pick<KeyPair, 'cert' | 'key'>, file: string): void {
  try {
    createSecureContext(pair);
  } catch (cause) {
    throw new Error(`the certificate ${file} cannot be used: ${(cause as Error).message}`, { cause });
  }
}
