/**
 * A certificate that the daemon makes and signs itself, for those who have no other. It lies with its key in the
 * state folder, and is made anew before its end, by the same key.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { KeyPair } from '../../contract/http.ts';
import { writeWhole } from '../files/atomic-file.ts';
import { readKey, readPair } from './pair.ts';
import type { PairFiles } from './pair.ts';

const DAY_MS = 86_400_000;
/** Some systems take no certificate of a server that lasts longer than 398 days. */
const LASTS_MS = 397 * DAY_MS;
const RENEW_MS = 30 * DAY_MS;
/** Clocks of clients may be slow. */
const BEFORE_MS = DAY_MS;
const CURVE = 'prime256v1';
const COMMON_NAME = '2.5.4.3';
const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
/** The longest common name that RFC 5280 allows. */
const LONGEST_NAME = 64;

export function selfMadeFiles(stateDir: string): PairFiles {
  const folder = join(stateDir, 'tls');
  return { certificate: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };
}

/** The one that was made last; undefined when there is none. Throws a sentence when it cannot be used. */
export function existingSelfMade(stateDir: string): KeyPair | undefined {
  const files = selfMadeFiles(stateDir);
  return existsSync(files.certificate) ? readPair(files) : undefined;
}

export interface SelfMadeOptions {
  readonly files: PairFiles;
  /** Beside the machine's own names and addresses. */
  readonly names: readonly string[];
  /** In milliseconds since 1970. */
  readonly now: number;
}

/** Resolves with true when one was made: there was none, it ends soon, or a name was not in it. */
export async function ensureSelfMade({ files, names, now }: SelfMadeOptions): Promise<boolean> {
  const wanted = new Set([hostname(), 'localhost', ...names].map(spellingOf).filter(isName));
  if (isGood(files, wanted, now)) return false;
  const key = keyOf(files);
  if (key.isNew) await writeWhole(files.key, key.text);
  const all = new Set([...wanted, ...ownAddresses()]);
  await writeWhole(files.certificate, await makeCertificate({ key: key.text, names: [...all], now }));
  return true;
}

/**
 * An address as certificates hold it: of IPv6 the hexadecimal spelling, since what writes them misreads `::a.b.c.d`,
 * and of a mapped one its IPv4 address, by which clients come.
 */
function spellingOf(name: string): string {
  const plain = name.replace(/^\[(.*)\]$/, '$1');
  if (isIP(plain) !== 6 || plain.includes('%')) return plain;
  const spelling = new URL(`http://[${plain}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(spelling) ?? [];
  if (high === undefined || low === undefined) return spelling;
  return [high, low].flatMap((half) => [parseInt(half, 16) >> 8, parseInt(half, 16) & 0xff]).join('.');
}

/** A name or an address that can stand in a certificate: no interface, no address of all of them. */
function isName(name: string): boolean {
  return (
    name !== '' && !['0.0.0.0', '::'].includes(name) && !name.includes('%') && /^[\x21-\x7e]+$/.test(name)
  );
}

/**
 * Addresses that were not there when it was made do not count: they come and go, and with each new certificate
 * those who trust the former one would have to look at it.
 */
function isGood(files: PairFiles, names: ReadonlySet<string>, now: number): boolean {
  try {
    const { cert, endsAt } = readPair(files);
    const certificate = new X509Certificate(cert);
    const holds = (name: string): boolean =>
      (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
    const leftMs = endsAt - now;
    // One that was made while the clock was ahead is not valid yet, and would not be for as long.
    return leftMs > RENEW_MS && leftMs <= LASTS_MS + BEFORE_MS && [...names].every(holds);
  } catch {
    // There is none, or it cannot be used: it is made.
    return false;
  }
}

function keyOf({ key: file }: PairFiles): { readonly text: string; readonly isNew: boolean } {
  try {
    const text = readKey(file);
    if (createPrivateKey(text).asymmetricKeyDetails?.namedCurve === CURVE) return { text, isNew: false };
  } catch {
    // There is none, or it cannot be used: it is made.
  }
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: CURVE });
  return { text: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), isNew: true };
}

function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((entries = []) => entries.map(({ address }) => address))
    .filter((address) => !address.toLowerCase().startsWith('fe80:') && isName(address));
}

interface Content {
  /** PEM, of the curve P-256. */
  readonly key: string;
  readonly names: readonly string[];
  readonly now: number;
}

/** A certificate in PEM, signed by its own key. */
async function makeCertificate({ key, names, now }: Content): Promise<string> {
  const { AsnConvert, AsnSerializer, OctetString } = await import('@peculiar/asn1-schema');
  const x509 = await import('@peculiar/asn1-x509');
  const privateKey = createPrivateKey(key);
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  const extension = (
    extnID: string,
    critical: boolean,
    value: unknown,
  ): InstanceType<typeof x509.Extension> =>
    new x509.Extension({ extnID, critical, extnValue: new OctetString(AsnSerializer.serialize(value)) });
  const alternatives = names.map(
    (name) => new x509.GeneralName(isIP(name) === 0 ? { dNSName: name } : { iPAddress: name }),
  );
  const subject = new x509.Name([
    new x509.RelativeDistinguishedName([
      new x509.AttributeTypeAndValue({
        type: COMMON_NAME,
        value: new x509.AttributeValue({ utf8String: hostname().slice(0, LONGEST_NAME) }),
      }),
    ]),
  ]);
  const algorithm = new x509.AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const serial = randomBytes(16);
  // A positive number, without a leading zero.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const content = new x509.TBSCertificate({
    version: x509.Version.v3,
    serialNumber: bufferOf(serial),
    signature: algorithm,
    issuer: subject,
    subject,
    validity: new x509.Validity({ notBefore: new Date(now - BEFORE_MS), notAfter: new Date(now + LASTS_MS) }),
    subjectPublicKeyInfo: AsnConvert.parse(publicKey, x509.SubjectPublicKeyInfo),
    extensions: new x509.Extensions([
      extension(x509.id_ce_basicConstraints, true, new x509.BasicConstraints({ cA: false })),
      extension(x509.id_ce_keyUsage, true, new x509.KeyUsage(x509.KeyUsageFlags.digitalSignature)),
      extension(x509.id_ce_extKeyUsage, false, new x509.ExtendedKeyUsage([x509.id_kp_serverAuth])),
      extension(x509.id_ce_subjectAltName, false, new x509.SubjectAlternativeName(alternatives)),
    ]),
  });
  const signature = sign('sha256', Buffer.from(AsnSerializer.serialize(content)), privateKey);
  const certificate = new x509.Certificate({
    tbsCertificate: content,
    signatureAlgorithm: algorithm,
    signatureValue: bufferOf(signature),
  });
  return new X509Certificate(Buffer.from(AsnSerializer.serialize(certificate))).toString();
}

/** Exactly these bytes: a Buffer may lie in the middle of a larger one. */
function bufferOf(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
