import { lookup } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import type { LookupFunction } from 'node:net';

/** Link-local, where clouds keep the credentials of their machines, and their other addresses for that. */
const refused = new BlockList();
refused.addSubnet('169.254.0.0', 16, 'ipv4');
refused.addSubnet('fe80::', 10, 'ipv6');
refused.addAddress('100.100.100.200', 'ipv4');
refused.addAddress('fd00:ec2::254', 'ipv6');

export function isRefused(address: string): boolean {
  const kind = isIP(address);
  return kind !== 0 && refused.check(address, kind === 6 ? 'ipv6' : 'ipv4');
}

/** Why a text cannot be the address of a receiver; undefined when it can, or is empty. */
export function addressProblem(text: string): string | undefined {
  if (text === '') return undefined;
  if (!URL.canParse(text)) return 'is not an address such as "https://example.org/hook"';
  const { protocol, hostname, username, password } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') return 'must begin with http:// or https://';
  if (!isDecodable(username) || !isDecodable(password)) return 'holds a % in its user name or password that begins no escape; write %25 for it';
  return isRefused(hostOf(hostname)) ? 'names a link-local or metadata address, which gets no notifications' : undefined;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** As `http.request` and `isIP` take it. */
export function hostOf(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Looks a name up and refuses it when it leads to a refused address, whatever the address said at another time. */
export const safeLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, [], 0);
    const first = addresses[0];
    if (!first || addresses.some(({ address }) => isRefused(address))) return callback(new Error('the name leads to a link-local or metadata address'), [], 0);
    return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
  });
};
