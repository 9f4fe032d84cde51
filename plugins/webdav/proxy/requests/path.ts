/** A path from a client, split and decoded; no part can lead out of the share. */
export interface Place {
  /** Undefined for the list of shares itself. */
  readonly share: string | undefined;
  readonly parts: readonly string[];
}

const LONGEST = 8_192;
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i;

/** Undefined for an invalid path. */
export function parsePath(target: string): Place | undefined {
  if (target.length > LONGEST) return undefined;
  const path = target.replace(ABSOLUTE, '').replace(/[?#].*$/s, '');
  if (!path.startsWith('/') && path !== '') return undefined;
  const decoded = path
    .split('/')
    .filter((part) => part !== '')
    .map(decode);
  if (decoded.some((part) => part === undefined || !isPlain(part))) return undefined;
  const [share, ...parts] = decoded as string[];
  return { share: share?.normalize('NFC'), parts };
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    // Not a path: the request is refused.
    return undefined;
  }
}

function isPlain(part: string): boolean {
  return part !== '.' && part !== '..' && !/[/\0]/.test(part);
}

/** The target of a copy or move; `elsewhere` is another server. */
export function parseDestination(
  header: string | undefined,
  host: string | undefined,
): Place | 'elsewhere' | undefined {
  if (header === undefined) return undefined;
  const other = ABSOLUTE.exec(header)?.[1];
  if (other !== undefined && host !== undefined && hostOf(other) !== hostOf(host)) return 'elsewhere';
  return parsePath(header);
}

function hostOf(authority: string): string {
  return authority
    .replace(/^.*@/, '')
    .replace(/:(80|443)$/, '')
    .toLowerCase();
}

/**
 * Encoded exactly as rclone itself would: with another encoding it does not find files in a share whose
 * name needs escaping.
 */
export function formatPath({ share, parts }: Place): string {
  return `/${[share ?? '', ...parts].map(encodePart).join('/')}`;
}

function encodePart(part: string): string {
  const encoded = encodeURIComponent(part).replace(/%(?:24|26|2B|2C|3A|3B|3D|40)/g, decodeURIComponent);
  return encoded.replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
}

export function hasTrailingSlash(target: string): boolean {
  return target.replace(/[?#].*$/s, '').endsWith('/');
}
