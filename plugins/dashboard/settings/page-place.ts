/** Where the page itself is by a configuration, which may move it, or open it to everybody. */
import { isLoopback } from 'mountkeeper';
import type { ConfigChange, WebConfig } from 'mountkeeper';

export type Listening = Pick<WebConfig, 'listen' | 'port' | 'tls'>;

/** Addresses that stand for all of the machine's. */
const EVERYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** The address of the settings' page, for a reader whose browser has used `host`. */
export function pageAt({ listen, port, tls }: Listening, host: string): string {
  const isReached = EVERYWHERE.has(listen) || (isLoopback(listen) && isLoopback(host));
  const name = isReached ? host : listen;
  const written = name.includes(':') && !name.startsWith('[') ? `[${name}]` : name;
  return `${tls ? 'https' : 'http'}://${written}:${port}/tabs/settings#trial`;
}

/** What `[web]` says after the changes. */
export function listeningAfter(web: Listening, changes: readonly ConfigChange[]): Listening {
  const after = (key: string): unknown => changes.find(({ path }) => path === `web.${key}`)?.after;
  const [listen = web.listen, port = web.port] = [after('listen'), after('port')];
  return { listen: String(listen), port: Number(port), ...(web.tls && { tls: web.tls }) };
}

/** Whoever reaches the page is asked for that password no more. */
export function opensUp(changes: readonly ConfigChange[]): boolean {
  return changes.some(({ path, after }) => path === 'web.password' && (after === '' || after === undefined));
}
