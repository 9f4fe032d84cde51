import type { ConnectionConfig } from 'mountkeeper';

/** Where a NAS listens, and how it shows that somebody is there. */
export interface NasAddress {
  readonly host: string;
  readonly port: number;
  /** Speaks first, answers a request, or shows no more than that it takes the connection. */
  readonly manner: 'greets' | 'answers' | 'accepts';
}

const PORTS: Readonly<Record<string, readonly [number, NasAddress['manner']]>> = {
  sftp: [22, 'greets'],
  ftp: [21, 'greets'],
  smb: [445, 'accepts'],
};
/** With these the connection does not go to the host itself. */
const DETOURS = ['ssh', 'socks_proxy', 'http_proxy', 'unix_socket'];

/** Undefined where the options do not say it. */
export function nasAddress({ type, options }: ConnectionConfig): NasAddress | undefined {
  const text = (name: string): string =>
    typeof options[name] === 'object' ? '' : String(options[name] ?? '');
  if (DETOURS.some((name) => options[name] !== undefined)) return undefined;
  const [port, manner] = PORTS[type] ?? [];
  if (port !== undefined && manner !== undefined) {
    return text('host') === ''
      ? undefined
      : { host: text('host'), port: Number(text('port')) || port, manner };
  }
  return text('url') === '' ? undefined : ofUrl(text('url'));
}

function ofUrl(text: string): NasAddress | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const host = url?.hostname.replace(/^\[|\]$/g, '') ?? '';
  if (!url || host === '') return undefined;
  if (url.protocol === 'http:') return { host, port: Number(url.port) || 80, manner: 'answers' };
  return url.protocol === 'https:' ? { host, port: Number(url.port) || 443, manner: 'accepts' } : undefined;
}
