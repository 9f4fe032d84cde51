/** Whether a connection leads back to the machine that the daemon runs on. */
import { BlockList, isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import type { ConnectionConfig } from 'mountkeeper';
import { DETOURS } from './place-options.ts';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addSubnet('0.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');
LOOPBACK.addAddress('::', 'ipv6');

/** Names in Debian's /etc/hosts. */
const OWN_NAMES = new Set(['localhost', 'localhost.localdomain', 'ip6-localhost', 'ip6-loopback']);
const HOST_OPTIONS = ['host', 'url', 'endpoint'] as const;

/**
 * Judged by the literal address or name: DNS is not asked. A detour counts as leading here, because only
 * rclone could tell where it leads.
 */
export function leadsHere({ options: given }: ConnectionConfig): boolean {
  const options = given ?? {};
  if (DETOURS.some((option) => Boolean(options[option]))) return true;
  return HOST_OPTIONS.some((option) => isOwn(unmapped(hostIn(options[option]))));
}

/** Turns an IPv4-mapped IPv6 address into IPv4. */
function unmapped(host: string): string {
  return /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(host)?.[1] ?? host;
}

function hostIn(value: unknown): string {
  if (typeof value !== 'string') return '';
  const url = value.includes('://') ? value : `any://${isIP(value) === 6 ? `[${value}]` : value}`;
  return URL.canParse(url)
    ? new URL(url).hostname.replace(/^\[|\]$/g, '').toLowerCase()
    : value.toLowerCase();
}

function isOwn(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return isOwnName(host.replace(/\.$/, ''));
  if (LOOPBACK.check(host, family === 6 ? 'ipv6' : 'ipv4')) return true;
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
  return own.some(({ address }) => address.toLowerCase() === host);
}

function isOwnName(name: string): boolean {
  return OWN_NAMES.has(name) || name.endsWith('.localhost') || name === hostname().toLowerCase();
}
