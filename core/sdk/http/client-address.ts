/**
 * The address of the client behind a request: the peer of the connection, or the address that a trusted
 * proxy forwards in `Forwarded` (RFC 7239) or `X-Forwarded-For`. Anybody can send these headers, so they
 * count only from a trusted proxy.
 */
import { BlockList, isIP } from 'node:net';
import type { IncomingHttpHeaders } from 'node:http';

/** The proxies whose forwarding headers are believed. */
export interface TrustedProxies {
  has(address: string): boolean;
}

/** Longer headers are ignored. The head of a request may be larger. */
const MAX_HEADER_CHARACTERS = 4_096;
const BRACKETED = /^\[([0-9a-f:.]{2,45})\](?::(?:\d{1,5}|_[\w.-]{1,64}))?$/i;
const WITH_PORT = /^(\d{1,3}(?:\.\d{1,3}){3}):(?:\d{1,5}|_[\w.-]{1,64})$/;
const QUOTED = /^"(?:[^"\\]|\\[^])*"$/;

/** `list` holds addresses and CIDR ranges, as `web.trusted_proxies` does. */
export function trustedProxies(list: readonly string[]): TrustedProxies {
  if (list.length === 0) return { has: () => false };
  const known = new BlockList();
  for (const entry of list) {
    const [address = '', bits] = entry.split('/');
    const plain = bits === undefined ? plainAddress(address) : address;
    const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) known.addAddress(plain, family);
    else known.addSubnet(plain, Number(bits), family);
  }
  return {
    has: (address) => {
      const plain = plainAddress(address);
      return isIP(plain) !== 0 && known.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
    },
  };
}

/**
 * The nearest address that is not a trusted proxy. When a header cannot be parsed, it is the address of the
 * proxy that sent it; also when the two headers disagree, because a proxy writes only one of them and may
 * pass on the other as the client sent it.
 */
export function clientAddress(peer: string, headers: IncomingHttpHeaders, proxies: TrustedProxies): string {
  const own = plainAddress(peer);
  if (!proxies.has(own)) return own;
  const forwarded = headers.forwarded;
  const forwardedFor = headers['x-forwarded-for'];
  const named = new Set<string>();
  if (forwarded !== undefined) named.add(nearestClient(own, forwardedHops(forwarded), proxies));
  if (forwardedFor !== undefined)
    named.add(nearestClient(own, forwardedForHops(String(forwardedFor)), proxies));
  const [only = own] = named;
  return named.size === 1 ? only : own;
}

/** One key for all addresses that one client can use: an IPv6 client has a whole /64. */
export function addressKey(address: string): string {
  const plain = plainAddress(address);
  if (isIP(plain) !== 6) return plain;
  return `${addressGroups(plain)
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/**
 * As `addressKey`, for limiting password guesses: a local user can come from any of the 16 million
 * addresses of 127.0.0.0/8, so they share one key.
 */
export function guesserKey(address: string): string {
  const plain = plainAddress(address);
  const isLoopback = isIP(plain) === 6 ? plain === '::1' : plain.startsWith('127.');
  return isLoopback ? 'loopback' : addressKey(plain);
}

/** Lower case, without the interface name; an IPv4-mapped IPv6 address becomes IPv4. */
function plainAddress(address: string): string {
  if (isIP(address) !== 6) return address;
  const [plain = ''] = address.toLowerCase().split('%');
  const groups = addressGroups(plain);
  const isMapped = groups[5] === 0xff_ff && groups.slice(0, 5).every((group) => group === 0);
  const [high = 0, low = 0] = groups.slice(6);
  return isMapped ? `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}` : plain;
}

/** The eight numbers of a valid IPv6 address. */
export function addressGroups(address: string): readonly number[] {
  const [left = [], right] = address
    .split('::')
    .map((half) => (half === '' ? [] : half.split(':').flatMap(numbersOf)));
  if (right === undefined) return left;
  return [...left, ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => 0), ...right];
}

function numbersOf(group: string): readonly number[] {
  if (!group.includes('.')) return [Number.parseInt(group, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

type Hop = string | undefined;

/** Walks back from the proxy's own address along the hops, for as long as a trusted proxy wrote them. */
function nearestClient(own: string, hops: readonly Hop[], proxies: TrustedProxies): string {
  let client = own;
  for (const hop of [...hops].reverse()) {
    if (hop === undefined) return client;
    client = hop;
    if (!proxies.has(hop)) return client;
  }
  return client;
}

function forwardedForHops(header: string): readonly Hop[] {
  return header.length > MAX_HEADER_CHARACTERS
    ? [undefined]
    : header.split(',').map((hop) => hopAddress(hop.trim()));
}

function forwardedHops(header: string): readonly Hop[] {
  const elements = header.length > MAX_HEADER_CHARACTERS ? undefined : splitOutsideQuotes(header, ',');
  return elements?.map(forAddress) ?? [undefined];
}

/** The `for` of one element, such as `for="[2001:db8::1]:4711";proto=https`. */
function forAddress(element: string): Hop {
  const values = (splitOutsideQuotes(element, ';') ?? []).flatMap((pair) => {
    const [name = '', ...rest] = pair.trim().split('=');
    return name.toLowerCase() === 'for' ? [rest.join('=')] : [];
  });
  const [value = '', ...more] = values;
  if (more.length > 0) return undefined;
  if (!value.includes('"')) return hopAddress(value);
  return QUOTED.test(value) ? hopAddress(value.slice(1, -1).replaceAll(/\\([^])/g, '$1')) : undefined;
}

/** Undefined when a quote is left open. */
function splitOutsideQuotes(text: string, separator: string): readonly string[] | undefined {
  const parts: string[] = [];
  let begin = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isQuoted && character === '\\') at += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && character === separator) {
      parts.push(text.slice(begin, at));
      begin = at + 1;
    }
  }
  return isQuoted ? undefined : [...parts, text.slice(begin)];
}

/**
 * `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`; undefined for all else.
 */
function hopAddress(text: string): Hop {
  const address = BRACKETED.exec(text)?.[1] ?? WITH_PORT.exec(text)?.[1] ?? text;
  return isIP(address) === 0 || (text.startsWith('[') && isIP(address) !== 6)
    ? undefined
    : plainAddress(address);
}
