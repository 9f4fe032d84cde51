/**
 * Keeps secrets out of the log: masks values by the names of their keys, at any depth, and passwords inside
 * URLs. This is the last line of defence; secrets should not be logged in the first place.
 */
const MASK = '********';
const MAX_DEPTH = 8;
const SECRET_ENDINGS = [
  'password',
  'passwd',
  'passphrase',
  'secret',
  'token',
  'authorization',
  'cookie',
  'cookies',
  'signature',
  'credentials',
  'apikey',
  'secretkey',
  'secretaccesskey',
  'accountkey',
  'privatekey',
  'keypem',
  'passwords',
  'secrets',
  'tokens',
  'webhookurl',
  'connectionstring',
  'accessgrant',
  'sasurl',
];
/** `pass` as a word of its own: `rc_pass`, `rcPass`, but not `compass`. */
const PASS_WORD = /(?:^|[^A-Za-z])pass$|[a-z]Pass$|^(?:PASS|rcpass)$/;
/**
 * Up to the last `@` before the path: a password may have one. One with a slash in it is no port, and has at most 12
 * of these signs. A name alone may be a token.
 */
const ACCOUNT =
  /:\/\/(?:([^\s/:@"'[\]]*:)(?:[^\s/"'?#]+@|(?!\d{1,5}[/?#])(?:[^\s/"'?#]*[/?#]){1,12}[^\s/"'?#]*@)|[^\s/:@"'?#]+@)/g;

/** Returns a copy of the parsed entry with every secret value masked. */
export function createRedaction(
  extraKeys: readonly string[] = [],
): (fields: Record<string, unknown>) => Record<string, unknown> {
  const extra = new Set(extraKeys.map(normalise));
  const isSecret = (key: string): boolean => {
    const name = normalise(key);
    return extra.has(name) || PASS_WORD.test(key) || SECRET_ENDINGS.some((ending) => name.endsWith(ending));
  };
  const redact = (value: unknown, depth: number): unknown => {
    if (Array.isArray(value))
      return depth > MAX_DEPTH ? '[deep]' : value.map((item) => redact(item, depth + 1));
    if (!isObject(value)) return value;
    return depth > MAX_DEPTH ? '[deep]' : redactObject(value, depth);
  };
  const redactObject = (fields: Record<string, unknown>, depth: number): Record<string, unknown> => {
    const entries = Object.entries(fields);
    return Object.fromEntries(
      entries.map(([key, value]) => [
        key,
        isSecret(key) && isFilled(value) ? MASK : redact(value, depth + 1),
      ]),
    );
  };
  return (fields) => redactObject(fields, 0);
}

/** Masks the password of every `scheme://user:password@host` in a text; without a password, the user. */
export function maskAddresses(text: string): string {
  return text.includes('://') ? text.replace(ACCOUNT, (_all, user = '') => `://${user}${MASK}@`) : text;
}

function normalise(key: string): string {
  return key.toLowerCase().replace(/[-_.\s]/g, '');
}

/** Empty values stay: the log may show whether a secret is set at all. */
function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && typeof value !== 'boolean';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
