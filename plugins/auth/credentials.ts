/** Reads HTTP Basic credentials out of a request (RFC 7617). */

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

const MAX_HEADER_CHARACTERS = 4096;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** UTF-8 as we ask for it; Latin-1 from clients that know no better. */
function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    return bytes.toString('latin1');
  }
}

/** Undefined when the header holds no Basic credentials. */
export function parseCredentials(header: string | undefined): Credentials | undefined {
  if (header === undefined || header.length > MAX_HEADER_CHARACTERS) return undefined;
  const match = /^basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header);
  if (!match) return undefined;
  const text = decode(Buffer.from(match[1] ?? '', 'base64'));
  const colon = text.indexOf(':');
  if (colon === -1) return undefined;
  return { username: text.slice(0, colon).normalize('NFC'), password: text.slice(colon + 1).normalize('NFC') };
}
