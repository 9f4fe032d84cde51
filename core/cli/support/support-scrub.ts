/**
 * Takes secrets out of texts that leave the machine: those that the configuration holds or refers to, in each
 * form in which they may stand in a log, and whatever looks like one.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MASK } from '../../sdk/config-types.ts';
import { isReference } from '../../config/secrets/secrets.ts';
import type { SecretReference } from '../../config/secrets/secrets.ts';
import type { Secrets } from '../../contract/config.ts';
import { maskAddresses } from '../../platform/log/redaction.ts';

/** Where systemd keeps the credentials of the running service. */
const CREDENTIALS = '/run/credentials/mountkeeper.service';
/** Shorter ones would be found inside of every other word: those count as words of their own. */
const SHORT = 6;

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
  [/\b(basic|bearer|digest)\s+[\w+/=.~-]{4,}/gi, `$1 ${MASK}`],
  [/\$(?:scrypt|argon2\w*|2[aby]|[56])\$[^\s"']+/g, MASK],
  // `pass` as a word of its own: `rc_pass`, but not `compass`.
  [
    /\b((?:[\w-]{0,60}[_-])?pass["']?\s{0,8}[=:]\s{0,8})("(?:[^"\\]|\\.)+"|'[^']+'|[^\s,;}&"']+)/gi,
    `$1${MASK}`,
  ],
  [
    /((?:password|passwd|passphrase|secret|token|cookie|credentials?)["']?\s{0,8}[=:]\s{0,8})("(?:[^"\\]|\\.)+"|'[^']+'|[^\s,;}&"']+)/gi,
    `$1${MASK}`,
  ],
  [
    /((?:api|private|access|account)[_-]?key(?:[_-]id)?["']?\s{0,8}[=:]\s{0,8})("(?:[^"\\]|\\.)+"|'[^']+'|[^\s,;}&"']+)/gi,
    `$1${MASK}`,
  ],
];

export type Scrub = (text: string) => string;

export function createScrub(secrets: Iterable<string>): Scrub {
  const known = [...new Set([...secrets].flatMap(formsOf))].sort((a, b) => b.length - a.length);
  return (text) => {
    const without = maskAddresses(known.reduce(masked, text));
    return PATTERNS.reduce((rest, [pattern, mask]) => rest.replace(pattern, mask), without);
  };
}

function masked(text: string, secret: string): string {
  if (secret.length >= SHORT) return text.replaceAll(secret, MASK);
  const pieces = text.split(secret);
  return pieces.reduce(
    (before, after) => before + (isLetter(before.at(-1)) || isLetter(after[0]) ? secret : MASK) + after,
  );
}

function isLetter(character: string | undefined): boolean {
  return character !== undefined && /\w/.test(character);
}

/** As it is, in JSON, in an address, and as HTTP and rclone's options carry it. */
function formsOf(secret: string): readonly string[] {
  const lines = secret.split('\n').filter((line) => line.trim().length >= SHORT);
  const all = [secret, ...lines, ...partsOfAddress(secret)]
    .map((one) => one.trim())
    .filter((one) => one !== '' && one !== MASK);
  return all.flatMap((one) => [
    one,
    JSON.stringify(one).slice(1, -1),
    encodeURIComponent(one),
    encodeURIComponent(one).replaceAll('%20', '+'),
    Buffer.from(one).toString('base64').replaceAll('=', ''),
    Buffer.from(one).toString('hex'),
  ]);
}

/** Of an address that is secret: each part that may be what makes it so. */
function partsOfAddress(text: string): readonly string[] {
  if (!URL.canParse(text)) return [];
  const { password, pathname, searchParams, hash } = new URL(text);
  const parts = [password, ...pathname.split('/'), ...searchParams.values(), hash.slice(1)];
  return parts.filter((part) => part.length >= SHORT);
}

/** Every secret of a document: what is masked where it is shown, and what its references lead to. */
export async function secretsIn(
  document: unknown,
  shown: unknown,
  secrets: Secrets,
): Promise<readonly string[]> {
  if (isReference(document)) return resolved(document, secrets);
  if (shown === MASK) return leaves(document);
  if (Array.isArray(document)) {
    const list = shown as readonly unknown[];
    return (await Promise.all(document.map((one, index) => secretsIn(one, list[index], secrets)))).flat();
  }
  if (typeof document !== 'object' || document === null) return [];
  const table = shown as Readonly<Record<string, unknown>>;
  const found = Object.entries(document).map(([name, one]) => secretsIn(one, table[name], secrets));
  return (await Promise.all(found)).flat();
}

function leaves(value: unknown): readonly string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [];
}

async function resolved(reference: SecretReference, secrets: Secrets): Promise<readonly string[]> {
  try {
    return [secrets.resolve(reference)];
  } catch {
    // The command line is not the service: what systemd gave that one lies where only root reads it.
    if (!('credential' in reference)) return [];
    return readFile(join(CREDENTIALS, reference.credential), 'utf8').then(
      (text) => [text],
      () => [],
    );
  }
}

/**
 * Of a document that is not valid nobody knows which values are secret: all texts in it that are no short
 * words.
 */
export function textsIn(text: string): readonly string[] {
  const quoted = [...text.matchAll(/"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'/g)].map(
    ([, double, single]) => double ?? single ?? '',
  );
  return quoted.filter((one) => one.length >= SHORT && !one.startsWith('/'));
}
