/** Tells when the web server can be reached from other machines though it asks for no password. */
import { isLoopback } from 'mountkeeper';
import type { Notice, WebConfig } from 'mountkeeper';

export function exposureOf(web: WebConfig): Notice | undefined {
  if (web.password !== '' || isLoopback(web.listen)) return undefined;
  return {
    level: 'warning',
    message: `The web server listens on ${web.listen} and asks for no password: everyone who reaches this machine can change the configuration. Set web.password, or web.listen = "127.0.0.1".`,
  };
}
