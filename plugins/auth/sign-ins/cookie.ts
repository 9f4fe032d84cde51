/** The cookie of a sign-in. Its value is all that a browser holds, and only the web server reads it. */
import type { IncomingMessage } from 'node:http';
import type { Request } from '@hapi/hapi';
import { isEncrypted } from 'mountkeeper';

/** Over TLS the prefix keeps other hosts of the same domain from setting it. */
const NAMES = { secure: '__Host-mountkeeper_sign_in', plain: 'mountkeeper_sign_in' } as const;
const FORM = /^[\w-]{43}$/;

/** As `cookieIn`. Over TLS the other name does not count: any host of the same domain could have set it. */
export function sentCookie(req: IncomingMessage): string | undefined {
  return cookieIn(req.headers.cookie, isEncrypted(req));
}

/** The value of the cookie; `''` where it is not of its form; undefined without one. */
export function cookieIn(header: string | undefined, isSecure = false): string | undefined {
  if (header === undefined) return undefined;
  const pairs = header.split(';').map((pair) => pair.trim().split('='));
  const value = (name: string): string | undefined => pairs.find(([key]) => key === name)?.[1];
  const found = value(NAMES.secure) ?? (isSecure ? undefined : value(NAMES.plain));
  return found === undefined || FORM.test(found) ? found : '';
}

/** Undefined takes the cookie away. It ends with the browser, and here with its sign-in. */
export function setCookie(request: Request, value: string | undefined): string {
  const isSecure = cameOverTls(request);
  const end = value === undefined ? '; Max-Age=0' : '';
  const rest = `; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}${end}`;
  return `${isSecure ? NAMES.secure : NAMES.plain}=${value ?? ''}${rest}`;
}

/** A browser names its scheme with each form that it sends: so a proxy with TLS in front counts, too. */
function cameOverTls({ raw: { req } }: Request): boolean {
  return isEncrypted(req) || req.headers.origin?.startsWith('https:') === true;
}
