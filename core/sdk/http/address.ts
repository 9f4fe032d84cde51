/** Listen addresses: how they compare, and error messages when listening fails. */

import { isIP } from 'node:net';

export interface Address {
  readonly host: string;
  readonly port: number;
}

const WILDCARDS = new Set(['0.0.0.0', '::', '']);

/** `[::1]` and `::1` are one address. */
export function plainHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

/** True for addresses that only this machine can reach. */
export function isLoopback(listen: string): boolean {
  const host = plainHost(listen).toLowerCase();
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 ? host.startsWith('127.') : host.startsWith('::ffff:127.');
}

export function sameAddress(a: Address, b: Address): boolean {
  return a.port === b.port && plainHost(a.host) === plainHost(b.host);
}

/**
 * True when one of them is a wildcard address on the same port: the kernel refuses to listen on both at
 * once, even for one process.
 */
export function overlaps(a: Address, b: Address): boolean {
  return a.port === b.port && (WILDCARDS.has(plainHost(a.host)) || WILDCARDS.has(plainHost(b.host)));
}

export function listenProblem(error: NodeJS.ErrnoException, address: Address): string {
  const { host, port } = address;
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is taken by another program; stop that program or choose another web.port`;
    case 'EADDRNOTAVAIL':
      return `this machine has no address ${host}; set web.listen to one of its own addresses`;
    case 'EACCES':
      return `this user may not listen on port ${port}; choose a web.port above 1023`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `"${host}" in web.listen is neither an address nor a name that can be found`;
    default:
      return `cannot listen on ${host} port ${port}: ${error.message}`;
  }
}
