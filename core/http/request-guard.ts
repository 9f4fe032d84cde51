/**
 * Decides, before any route, whether a request is accepted at all. Its Host header must not be a name that
 * somebody else's DNS points at this machine (DNS rebinding), and a request that changes something must not
 * come from a page of another site (CSRF). Cross-origin access is never granted.
 */
import { isIP } from 'node:net';
import type { IncomingMessage } from 'node:http';

export interface Refusal {
  readonly status: number;
  readonly message: string;
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);
const SHOWN_CHARACTERS = 80;
const LAST_PORT = 65_535;

/**
 * The host part of `name:port` or `[address]:port`, lower case, without a final dot; undefined for anything
 * else.
 */
export function hostOf(authority: string): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^[\]:/\\@?#\s]+))(?::(\d{0,5}))?$/i.exec(authority);
  // With a port that there cannot be, no route could read the address that was asked for.
  if (!match || Number(match[3] ?? 0) > LAST_PORT) return undefined;
  if (match[1] !== undefined) return isIP(match[1]) === 6 ? match[1].toLowerCase() : undefined;
  return match[2]?.toLowerCase().replace(/\.$/, '');
}

function checkHost(req: IncomingMessage, names: readonly string[]): Refusal | undefined {
  const header = req.headers.host ?? '';
  const host = hostOf(header);
  if (host !== undefined) {
    if (isIP(host) !== 0 || host === 'localhost') return undefined;
    if (names.some((name) => hostOf(name) === host)) return undefined;
  }
  const shown = header.slice(0, SHOWN_CHARACTERS);
  return {
    status: 421,
    message:
      `This server does not answer to the name "${shown}". ` +
      'Use its address, or add the name to web.hostnames in the configuration.',
  };
}

function originAuthority(origin: string): string | undefined {
  try {
    return new URL(origin).host;
  } catch {
    // Not an origin, `null` among them: it matches nothing.
    return undefined;
  }
}

/** A browser leaves the default port out of both Origin and Host, so the two can be compared as they are. */
function sameAuthority(origin: string, host: string | undefined): boolean {
  const authority = originAuthority(origin);
  return authority !== undefined && authority !== '' && authority === host?.toLowerCase();
}

function checkSite(req: IncomingMessage): Refusal | undefined {
  if (SAFE_METHODS.has(req.method ?? '')) return undefined;
  const site = req.headers['sec-fetch-site'];
  const origin = req.headers.origin;
  const siteAllowed = site === undefined || site === 'same-origin' || site === 'none';
  const originAllowed = origin === undefined || sameAuthority(origin, req.headers.host);
  if (siteAllowed && originAllowed) return undefined;
  return {
    status: 403,
    message:
      'This request was sent by a page of another site and is refused. ' +
      'A proxy in front must pass the Host header on, with that name in web.hostnames.',
  };
}

/**
 * Undefined accepts the request. `names` are the host names that are accepted besides localhost and
 * addresses.
 */
export function refusalOf(req: IncomingMessage, names: readonly string[]): Refusal | undefined {
  if (req.url?.startsWith('/') !== true && !(req.method === 'OPTIONS' && req.url === '*')) {
    return { status: 400, message: 'The request must name a path that begins with "/".' };
  }
  return checkHost(req, names) ?? checkSite(req);
}
