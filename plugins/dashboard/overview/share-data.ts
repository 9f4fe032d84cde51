/**
 * What a share's card shows, gathered from the status, the living mount and the servers; plain data, so that
 * equal means unchanged.
 */
import { hostname } from 'node:os';
import { isLoopback, sizeBytes } from 'mountkeeper';
import type { Config, LiveShare, Offer, ShareStatus } from 'mountkeeper';
import type { Tone } from './sentence.ts';

export interface ShareAddress {
  readonly protocol: 'SMB' | 'NFS' | 'WebDAV';
  readonly address: string;
  /** The address as people read it. */
  readonly shown: string;
  /** As Explorer wants it. */
  readonly windows: string | undefined;
}

export interface ShareData {
  readonly status: ShareStatus;
  readonly tone: Tone;
  /** Its remote does not answer. */
  readonly isCutOff: boolean;
  /** When it came into its state, in milliseconds since the epoch; undefined where nobody saw it. */
  readonly since: number | undefined;
  /** Of files that are not on the remote; undefined while it cannot be told for all of them. */
  readonly dirtyBytes: number | undefined;
  readonly oldestDirtyAt: number | undefined;
  /** Most that the cache may take, in bytes; 0: as much as the disk has. */
  readonly cacheLimit: number;
  /** Bytes per second, oldest first. */
  readonly speeds: readonly number[];
  readonly addresses: readonly ShareAddress[];
}

export interface ShareSources {
  readonly config: Config;
  readonly live: ReadonlyMap<string, LiveShare>;
  readonly offers: readonly Offer[];
  readonly since: (share: string) => number | undefined;
  readonly speeds: (share: string) => readonly number[];
  /** The name under which the reader reaches this machine. */
  readonly host: string;
}

export function toneOf({ health, healthMessage, erroredFiles }: ShareStatus): Tone {
  if (health === 'failed' || erroredFiles > 0) return 'bad';
  if (health !== 'healthy') return 'wait';
  return healthMessage === null ? 'good' : 'warn';
}

export function shareData(status: ShareStatus, sources: ShareSources): ShareData {
  const { config, live, since, speeds } = sources;
  const figures = live.get(status.name)?.figures?.stats;
  return {
    status,
    tone: toneOf(status),
    isCutOff: status.health === 'failed' || live.get(status.name)?.remoteAnswers === false,
    since: since(status.name),
    dirtyBytes: status.dirtyCount === 0 ? 0 : figures?.dirtyBytes,
    oldestDirtyAt: figures?.oldestDirtyAt,
    cacheLimit: sizeBytes(config.cache.max_size),
    speeds: speeds(status.name),
    addresses: status.mounted ? addressesOf(status.name, sources) : [],
  };
}

const PROTOCOLS = [
  { service: '_smb._tcp', protocol: 'SMB', key: 'smb' },
  { service: '_nfs._tcp', protocol: 'NFS', key: 'nfs' },
  { service: '_webdav._tcp', protocol: 'WebDAV', key: 'webdav' },
] as const;

function addressesOf(share: string, { config, offers, host }: ShareSources): readonly ShareAddress[] {
  const shown = config.shares.find(({ name }) => name === share)?.protocols ?? [];
  return PROTOCOLS.filter(({ key }) => shown.includes(key)).flatMap(({ service, protocol }) => {
    const offer = offers.find((one) => one.service === service);
    return offer === undefined
      ? []
      : [addressOf(protocol, share, { host: reachedAs(offer, host), port: offer.port })];
  });
}

/** A server that listens everywhere is reached as this page was; else at the address that it has. */
export function reachedAs({ addresses }: Offer, host: string): string {
  if (
    addresses.length === 0 ||
    addresses.includes(host) ||
    addresses.some((one) => one === '0.0.0.0' || one === '::')
  )
    return host;
  return addresses[0] ?? host;
}

export function addressOf(
  protocol: ShareAddress['protocol'],
  share: string,
  at: { readonly host: string; readonly port: number },
): ShareAddress {
  const host = at.host.includes(':') ? `[${at.host}]` : at.host;
  const address = addressAt(protocol, { host, port: at.port, path: encodeURIComponent(share) });
  const shown = addressAt(protocol, { host, port: at.port, path: share });
  return {
    protocol,
    address,
    shown,
    windows: protocol === 'SMB' && at.port === 445 ? `\\\\${at.host}\\${share}` : undefined,
  };
}

function addressAt(
  protocol: ShareAddress['protocol'],
  { host, port, path }: { readonly host: string; readonly port: number; readonly path: string },
): string {
  if (protocol === 'SMB') return `smb://${host}${port === 445 ? '' : `:${port}`}/${path}`;
  if (protocol === 'NFS') return `nfs://${host}${port === 2049 ? '' : `:${port}`}/${path}`;
  return `http://${host}:${port}/${path}/`;
}

/**
 * The name under which others reach this machine, as far as it is known: nobody else reaches it as localhost.
 */
export function hostForOthers(host: string): string {
  return isLoopback(host) ? hostname() : host;
}

/** An address that leads to whoever asks for it: another machine would find itself there. */
export function isLocalOnly(address: string): boolean {
  return isLoopback(new URL(address.replace(/^(?:smb|nfs):/, 'http:')).hostname.replaceAll(/[[\]]/g, ''));
}
