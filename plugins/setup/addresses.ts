/** What people on the LAN enter to reach a share by SMB. */
import { hostname } from 'node:os';
import { isLoopback } from 'mountkeeper';
import type { LanAddresses } from 'mountkeeper';

const SMB_PORT = 445;

export interface SmbServer {
  readonly user: string;
  /** The name by which the reader reaches this machine; absent: unknown. */
  readonly host: string | undefined;
  readonly port: number;
  readonly listen: readonly string[];
}

export function lanAddresses(
  shares: readonly string[],
  { user, host, port, listen }: SmbServer,
): readonly LanAddresses[] {
  const name = hostFor(host, listen);
  const shown = name.includes(':') ? `[${name}]` : name;
  const isUsual = port === SMB_PORT;
  return shares.map((share) => ({
    share,
    finder: `smb://${shown}${isUsual ? '' : `:${port}`}/${encodeURIComponent(share)}`,
    explorer: isUsual ? `\\\\${name}\\${share}` : undefined,
    linux:
      `sudo mount -t cifs ${quoted(`//${name}/${share}`)} /mnt ` +
      `-o ${quoted(`username=${user}${isUsual ? '' : `,port=${port}`}`)}`,
  }));
}

/** Nobody else reaches this machine as localhost; and a server of one address is reached at that address. */
function hostFor(host: string | undefined, listen: readonly string[]): string {
  const isEverywhere = listen.length === 0 || listen.some((one) => one === '0.0.0.0' || one === '::');
  if (!isEverywhere) return host !== undefined && listen.includes(host) ? host : (listen[0] ?? hostname());
  return host === undefined || isLoopback(host) ? hostname() : host;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
