import { createConnection } from 'node:net';
import type { ShareSpec } from 'mountkeeper';

type Connection = ShareSpec['connection'];

/** Where nothing else is said. */
const PORTS: Readonly<Record<string, number>> = { sftp: 22, ftp: 21, smb: 445, 'https:': 443, 'http:': 80 };

/** Where a connection leads; undefined when its options do not say. */
export function addressOf({
  type,
  options,
}: Connection): { readonly host: string; readonly port: number } | undefined {
  const { host, port, url, endpoint } = options;
  if (typeof host === 'string') return address(host, Number(port ?? PORTS[type]));
  const place = [url, endpoint].find((one) => typeof one === 'string' && URL.canParse(one));
  if (typeof place !== 'string') return undefined;
  const parsed = new URL(place);
  return address(parsed.hostname.replace(/^\[(.*)\]$/, '$1'), Number(parsed.port || PORTS[parsed.protocol]));
}

function address(host: string, port: number): { readonly host: string; readonly port: number } | undefined {
  return host !== '' && Number.isInteger(port) && port > 0 && port < 65_536 ? { host, port } : undefined;
}

/**
 * Whether something listens where the connection leads; undefined when that cannot be asked. Far cheaper than
 * a probe, and proves less.
 */
export function dial(connection: Connection, signal: AbortSignal): Promise<boolean | undefined> {
  const place = addressOf(connection);
  if (!place) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const socket = createConnection(place);
    const settle = (isOpen: boolean): void => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      resolve(isOpen);
    };
    const onAbort = (): void => settle(false);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) settle(false);
    socket.once('connect', () => settle(true));
    socket.on('error', () => settle(false));
  });
}
