/**
 * Takes secrets out of texts that leave the machine: those that the configuration holds or refers to, in each form in which
 * they may stand in a log, and whatever looks like one.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MASK } from '../config/types.ts';
import { isReference } from '../config/secrets.ts';
import type { SecretReference } from '../config/secrets.ts';
import type { Secrets } from '../services.ts';
import { maskAddresses } from '../system/log-redaction.ts';

/** Where systemd keeps the credentials of the running service. */
const CREDENTIALS = '/run/credentials/mountkeeper.service';
/** Shorter ones would be found inside of every other word: those count as words of their own. */
const SHORT = 6;

/** `pass` as a word of its own: `rc_pass`, but not `compass`. */
const WORDS = [
  '(?:[\\w-]*[_-])?pass',
  '[\\w-]*(?:pass(?:word|wd|phrase)|secret|token|cookie|credentials?|(?:api|private|access|account)[_-]?key(?:[_-]id)?)',
].join('|');
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
  [/\b(basic|bearer|digest)\s+[\w+/=.~-]{4,}/gi, `$1 ${MASK}`],
  [/\$(?:scrypt|argon2\w*|2[aby]|[56])\$[^\s"']+/g, MASK],
  [
    new RegExp(
      `((?:^|[^A-Za-z])(?:${WORDS})["']?\\s*[=:]\\s*)("(?:[^"\\\\]|\\\\.)+"|'[^']+'|[^\\s,;}&"']+)`,
      'gim',
    ),
    `$1${MASK}`,
  ],
];

export type Scrub = (text: string) => string;

export function createScrub(secrets: Iterable<string>): Scrub {
  const known = [...new Set([...secrets].flatMap(formsOf))].sort((a, b) => b.length - a.length);
  const found = known.length === 0 ? undefined : new RegExp(known.map(expression).join('|'), 'g');
  return (text) => {
    const without = maskAddresses(found ? text.replace(found, MASK) : text);
    return PATTERNS.reduce((rest, [pattern, mask]) => rest.replace(pattern, mask), without);
  };
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
    Buffer.from(one).toString('base64').replace(/=+$/, ''),
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

function expression(text: string): string {
  const escaped = text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&');
  return text.length < SHORT ? `(?<![\\w])${escaped}(?![\\w])` : escaped;
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

/** Of a document that is not valid nobody knows which values are secret: all texts in it that are no short words. */
export function textsIn(text: string): readonly string[] {
  const quoted = [...text.matchAll(/"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'/g)].map(
    ([, double, single]) => double ?? single ?? '',
  );
  return quoted.filter((one) => one.length >= SHORT && !one.startsWith('/'));
}
