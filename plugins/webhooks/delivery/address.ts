/**
 * Where notifications may be sent. Somebody who may set the address must not reach services through the
 * daemon that only this machine can reach: its own, and the cloud's, which hand out credentials. The
 * address that is really connected to is checked.
 */
import { lookup } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { embeddedAddresses } from './embedded-address.ts';

export const ALLOW = 'notifications.allow_private = true in the configuration file allows it';

/** Networks of the LAN (RFC 1918, fd00::/8) are allowed: most receivers in homes and offices are there. */
const REFUSED: readonly (readonly [kind: string, list: BlockList])[] = [
  [
    'a metadata address',
    blockList([
      // Alibaba, Oracle, Azure, AWS, Google, Oracle, Scaleway; most others are link-local.
      '100.100.100.200/32',
      '192.0.0.192/32',
      '168.63.129.16/32',
      'fd00:ec2::254/128',
      'fd20:ce::254/128',
      'fd00:c1::a9fe:a9fe/128',
      'fd00:42::42/128',
    ]),
  ],
  ['a link-local address', blockList(['169.254.0.0/16', 'fe80::/10'])],
  ['a loopback address', blockList(['127.0.0.0/8', '::1/128'])],
  ['the unspecified address', blockList(['0.0.0.0/8', '::/128'])],
];

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}

/**
 * The kind of a refused address, also for an IPv6 address that contains an IPv4 one; undefined for any
 * other.
 */
export function refusedKind(address: string): string | undefined {
  const [plain = ''] = address.split('%');
  const version = isIP(plain);
  if (version === 0) return undefined;
  const kind = REFUSED.find(([, list]) => list.check(plain, version === 6 ? 'ipv6' : 'ipv4'))?.[0];
  if (kind !== undefined || version === 4) return kind;
  return embeddedAddresses(plain)
    .map(refusedKind)
    .find((found) => found !== undefined);
}

/** Why a text is not a valid address of a receiver; undefined when it is valid or empty. */
export function addressProblem(text: string): string | undefined {
  if (text === '') return undefined;
  if (!URL.canParse(text)) return 'is not an address such as "https://example.org/hook"';
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') return 'must begin with http:// or https://';
  return isDecodable(username) && isDecodable(password)
    ? undefined
    : 'holds a % in its user name or password that begins no escape; write %25 for it';
}

/**
 * Why nothing may be sent to an address as written; undefined when it may, or when its name must be looked
 * up first. The URL parser normalises addresses: `http://0x7f.1/` becomes 127.0.0.1.
 */
export function targetProblem(url: URL): string | undefined {
  const host = hostOf(url.hostname).toLowerCase();
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  const kind = name === 'localhost' || name.endsWith('.localhost') ? 'a loopback address' : refusedKind(host);
  return kind === undefined ? undefined : `names ${kind}, which gets no notifications; ${ALLOW}`;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    // Not a text in an address.
    return false;
  }
}

/** In the form that `http.request` and `isIP` accept. */
export function hostOf(hostname: string): string {
  return hostname.startsWith('[') && hostname.endsWith(']') ? hostname.slice(1, -1) : hostname;
}

/** A receiver's name resolves to a refused address. */
export class RefusedName extends Error {
  constructor(kind: string) {
    super(`the name leads to ${kind}, which gets no notifications; ${ALLOW}`);
  }
}

/**
 * Resolves a name for one connection and refuses it when any of its addresses is refused. The checked
 * address is the one that is connected to, so a DNS answer that changes between check and connection has no
 * effect.
 */
export function safeLookup(resolve: typeof lookup = lookup): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, [], 0);
      const kind = addresses.map(({ address }) => refusedKind(address)).find((found) => found !== undefined);
      if (kind !== undefined) return callback(new RefusedName(kind), [], 0);
      const first = addresses[0];
      if (!first) return callback(new Error('the name leads nowhere'), [], 0);
      return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}
