/**
 * Removes secrets from texts that leave the machine: those that the configuration contains or refers to, in
 * every form in which a log may show them, and everything that looks like one.
 */
import { MASK } from '../../sdk/config-types.ts';
import { isReference } from '../../config/secrets/secrets.ts';
import type { SecretReference } from '../../config/secrets/secrets.ts';
import type { Secrets } from '../../contract/config.ts';
import { maskAddresses } from '../../platform/log/redaction.ts';
import { maskValues } from './secret-values.ts';

/** Shorter secrets occur inside other words by chance, so they are masked only as whole words. */
const SHORT = 6;

/** Each with what stands between it and its value. `pass` and `sig` only as words: not in `compass`. */
const KEYS: readonly RegExp[] = [
  /(?:\b(?:[\w-]{0,24}[_-])?pass|(?:\b|\\u0026)sig)(?:\\{0,15}["'])?\s{0,8}[=:]\s{0,8}/gi,
  /(?:password|passwd|passphrase|secret|token|cookies?)(?:\\{0,15}["'])?\s{0,8}[=:]\s{0,8}/gi,
  /(?:credentials?|authorization|signature|key[_-]pem)(?:\\{0,15}["'])?\s{0,8}[=:]\s{0,8}/gi,
  /(?:api|private|access|account)[_-]?key(?:[_-]id)?(?:\\{0,15}["'])?\s{0,8}[=:]\s{0,8}/gi,
  /(?:psk|pwd|[?&]auth)(?:\\{0,15}["'])?\s{0,8}[=:]\s{0,8}/gi,
  // As people write it who speak something else; Chinese has a colon of its own.
  /(?:passwort|kennwort|mot[_ -]?de[_ -]?passe|密码|密碼|口令)(?:\\{0,15}["'])?\s{0,8}[=:＝：]\s{0,8}/gi,
  // An option whose value is a word of its own, also in a list.
  /--(?:\w[\w-]{0,23}[_-])?(?:pass|password|passphrase|psk|pwd|secret|token)(?:\s{1,8}|\\{0,15}["'],\s{0,8})(?!-)/gi,
  /--(?:\w[\w-]{0,23}[_-])?(?:api|private|access|account)[_-]?key(?:[_-]id)?(?:\s{1,8}|\\{0,15}["'],\s{0,8})(?!-)/gi,
];

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
  [/\b(basic|bearer|digest)\s+[\w+/=.~-]{4,}/gi, `$1 ${MASK}`],
  [/\b(negotiate|ntlm)\s+[\w+/=.~-]{16,}/gi, `$1 ${MASK}`],
  [/\$(?:scrypt|argon2\w*|2[aby]|[56])\$[^\s"'\\]+/g, MASK],
  // Addresses that whoever knows them may send to.
  [/(\bhooks\.slack(?:-gov)?\.com\/[a-z]{1,20}\/)[^\s"'<>\\]+/gi, `$1${MASK}`],
  [/(\bapi\.telegram\.org\/(?:file\/)?bot)[^\s"'<>\\/]+/gi, `$1${MASK}`],
  [/(\bdiscord(?:app)?\.com\/api\/(?:v\d{1,3}\/)?webhooks\/)[^\s"'<>\\]+/gi, `$1${MASK}`],
  [/(\.webhook\.office\.com\/)[^\s"'<>\\]+/gi, `$1${MASK}`],
  [/(\boutlook\.office(?:365)?\.com\/webhook\/)[^\s"'<>\\]+/gi, `$1${MASK}`],
  [/(\blogic\.azure\.com(?::\d{1,5})?\/workflows\/)[^\s"'<>\\]+/gi, `$1${MASK}`],
  // Whoever knows the topic reads and writes there.
  [/(\/\/ntfy\.[\w.-]{1,250}(?::\d{1,5})?\/)[^\s"'<>\\]+/gi, `$1${MASK}`],
  // Tokens by their own forms, wherever they stand: of ntfy, Slack and Telegram, and JWTs, also behind what is escaped.
  [/\btk_[a-z\d]{29,64}/gi, MASK],
  [/\bxox[a-z]-[\w-]{10,}/gi, MASK],
  [/(\bbot\d{1,20}:)[\w-]{10,}/gi, `$1${MASK}`],
  [/(\b\d{8,12}:)[\w-]{30,}/g, `$1${MASK}`],
  [/(?:(?<![\w-])|(?<=%[\dA-Fa-f]{2}|\\[nrt]))eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}/g, MASK],
  // Names that were tried, by smbd and in the record of changes: somebody may have typed a password there.
  [/("(?:client|mapped|became)(?:Account|Domain)":\s?")(?:[^"\\\n]|\\.)*/g, `$1${MASK}`],
  [/("event":"refused","protocol":"[a-z]{1,20}","user":")(?:[^"\\\n]|\\.)*/g, `$1${MASK}`],
  // A header goes to the end of its line.
  [/((?:authorization|cookie)\s{0,8}:\s{0,8})(?![\s"'[{\\])[^\r\n"'\\]+/gi, `$1${MASK}`],
];

/**
 * What is left of a number, a list or a table in JSON, also within a text: it gets the quotes of its key. Programs that
 * read the archive want JSON.
 */
const BARE_IN_JSON = /(\\{0,15}["'])(\s{0,8}:\s{0,8})\*{8}(?=\s{0,80}(?:[,}\]]|$))/g;

export type Scrub = (text: string) => string;

export function createScrub(secrets: Iterable<string>): Scrub {
  const known = [...new Set([...secrets].flatMap(formsOf))].sort((a, b) => b.length - a.length);
  return (text) => {
    const without = maskAddresses(known.reduce(masked, text));
    const rest = PATTERNS.reduce((left, [pattern, mask]) => left.replace(pattern, mask), without);
    const hidden = KEYS.reduce((left, keys) => maskValues(left, keys, MASK), rest);
    return hidden.replaceAll(BARE_IN_JSON, `$1$2$1${MASK}$1`);
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

/** The secret as it is, in JSON, in a URL, and as HTTP and rclone's options encode it. */
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

/** For a URL that is secret: each part that may be the reason. */
function partsOfAddress(text: string): readonly string[] {
  if (!URL.canParse(text)) return [];
  const { password, pathname, searchParams, hash } = new URL(text);
  const parts = [password, ...pathname.split('/'), ...searchParams.values(), hash.slice(1)];
  return parts.filter((part) => part.length >= SHORT);
}

/**
 * Every secret of a document: the values that are masked when it is shown, and what its references resolve
 * to.
 */
export async function secretsIn(
  document: unknown,
  shown: unknown,
  secrets: Secrets,
): Promise<readonly string[]> {
  if (isReference(document)) return resolved([document], secrets);
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

function resolved(references: readonly SecretReference[], secrets: Secrets): readonly string[] {
  return references.flatMap((reference) => {
    try {
      return [secrets.resolve(reference)];
    } catch {
      // What cannot be read here cannot be told from other texts.
      return [];
    }
  });
}

/**
 * The same for an invalid document: whatever its references lead to, wherever they stand. A file below one of
 * `mounts` is not touched: it may hang.
 */
export function secretsNamedIn(text: string, secrets: Secrets, mounts: readonly string[]): readonly string[] {
  const named = text.matchAll(/\b(env|file|credential)["']?\s{0,8}=\s{0,8}(["'])([^"'\n]*)\2/g);
  const references = [...named].map(([, form = '', , value = '']) => [form, value] as const);
  const safe = references.filter(
    ([form, value]) =>
      // The daemon's log is no secret, and is what the archive is for.
      form !== 'file' || !(value.endsWith('.log') || mounts.some((mount) => value.startsWith(`${mount}/`))),
  );
  return resolved(
    safe.map(([form, value]) => ({ [form]: value }) as unknown as SecretReference),
    secrets,
  );
}

/**
 * In an invalid document it is unknown which values are secret: returns all texts that are longer than
 * short words.
 */
export function textsIn(text: string): readonly string[] {
  const quoted = [...text.matchAll(/"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'/g)].map(
    ([, double, single]) => double ?? single ?? '',
  );
  return quoted.filter((one) => one.length >= SHORT && !one.startsWith('/'));
}
