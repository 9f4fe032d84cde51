import type { ConnectionConfig, NasAddress } from 'mountkeeper';

const PORTS: Readonly<Record<string, readonly [number, NasAddress['manner']]>> = {
  sftp: [22, 'greets'],
  ftp: [21, 'greets'],
  smb: [445, 'accepts'],
};
/** With these options the connection does not go to the host itself. */
const DETOURS = ['ssh', 'socks_proxy', 'http_proxy', 'unix_socket'];

/** Undefined when the options do not say it. */
export function nasAddress({ type, options }: ConnectionConfig): NasAddress | undefined {
  const text = (name: string): string =>
    typeof options[name] === 'object' ? '' : String(options[name] ?? '');
  if (DETOURS.some((name) => options[name] !== undefined)) return undefined;
  const usual = PORTS[type];
  if (usual !== undefined) return atHost(usual, text);
  const url = text('url') || text('endpoint');
  return url === '' ? undefined : ofUrl(url);
}

function atHost(
  [usualPort, manner]: readonly [number, NasAddress['manner']],
  text: (name: string) => string,
): NasAddress | undefined {
  const port = text('port') === '' ? usualPort : Number(text('port'));
  if (text('host') === '' || !isPort(port)) return undefined;
  // With TLS from the first byte on, an FTP server waits for the client.
  return { host: text('host'), port, manner: text('tls') === 'true' ? 'accepts' : manner };
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port > 0 && port < 65_536;
}

function ofUrl(text: string): NasAddress | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? '';
  if (!url || host === '') return undefined;
  if (url.protocol === 'http:') return { host, port: Number(url.port) || 80, manner: 'answers' };
  return url.protocol === 'https:' ? { host, port: Number(url.port) || 443, manner: 'accepts' } : undefined;
}
