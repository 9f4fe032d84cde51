/** Tells when the web server can be reached from other machines though it asks for no password. */
import { isIP } from 'node:net';
import type { Notice, WebConfig } from 'mountkeeper';

function isLoopback(listen: string): boolean {
  const host = listen.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 ? host.startsWith('127.') : host.startsWith('::ffff:127.');
}

export function exposureOf(web: WebConfig): Notice | undefined {
  if (web.password !== '' || isLoopback(web.listen)) return undefined;
  return {
    level: 'warning',
    message: `The web server listens on ${web.listen} and asks for no password: everyone who reaches this machine can change the configuration. Set web.password, or web.listen = "127.0.0.1".`,
  };
}
