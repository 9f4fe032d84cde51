/**
 * The data of a share's card, from the status, the mount and the servers. Plain data, so that equal means
 * unchanged.
 */
import { hostname } from 'node:os';
import { isLoopback } from 'mountkeeper';
import type { Config, LiveShare, Offer, ShareStatus } from 'mountkeeper';
import { isUnreadable } from './sentence.ts';
import type { Tone } from './sentence.ts';

export interface ShareAddress {
  readonly protocol: 'SMB' | 'NFS' | 'WebDAV';
  readonly address: string;
  /** The address for people to read. */
  readonly shown: string;
  /** The same for Windows' Explorer. */
  readonly windows: string | undefined;
}

export interface ShareData {
  readonly status: ShareStatus;
  readonly tone: Tone;
  /** True when its remote does not answer. */
  readonly isCutOff: boolean;
  /** Without its remote, cached files can be read in some folders only: `Mount.hasUnreadFolders`. */
  readonly hasUnreadFolders: boolean;
  /** When it entered its state, in milliseconds since the epoch; undefined when nobody observed it. */
  readonly since: number | undefined;
  /** Size of files that are not on the remote; undefined while it is unknown for one of them. */
  readonly dirtyBytes: number | undefined;
  readonly oldestDirtyAt: number | undefined;
  /** When a pause of its uploads ends, in milliseconds since the epoch. */
  readonly pausedUntil: number | undefined;
  /** Limit of the cache in bytes; 0: limited only by the disk. */
  readonly cacheLimit: number;
  /** Bytes per second, oldest first. */
  readonly speeds: readonly number[];
  readonly addresses: readonly ShareAddress[];
}

/** An offer of the exporter of this protocol; others may offer a service of the same type. */
export interface ProtocolOffer extends Offer {
  readonly protocol: string;
}

export interface ShareSources {
  /** Limit of the cache in bytes. */
  readonly cacheLimit: number;
  readonly live: ReadonlyMap<string, LiveShare>;
  readonly addresses: (share: string) => readonly ShareAddress[];
  readonly since: (share: string) => number | undefined;
  readonly speeds: (share: string) => readonly number[];
}

interface AddressSources {
  readonly config: Config;
  readonly offers: readonly ProtocolOffer[];
  /** The host name that the reader's browser used. */
  readonly host: string;
}

export function toneOf(status: ShareStatus): Tone {
  const { health, healthMessage, erroredFiles } = status;
  if (health === 'failed' || isUnreadable(status) || erroredFiles > 0) return 'bad';
  if (health !== 'healthy') return 'wait';
  return healthMessage === null ? 'good' : 'warn';
}

/** What its badge says: the state, or what is wrong with a share that is up. A key in the message catalogues. */
export function conditionOf(status: ShareStatus): string {
  const tone = toneOf(status);
  if (status.isLeaving === true && tone !== 'bad') return 'leaving';
  return status.health === 'healthy' && tone !== 'good' ? `healthy-${tone}` : status.health;
}

export function shareData(status: ShareStatus, sources: ShareSources): ShareData {
  const { addresses, cacheLimit, live, since, speeds } = sources;
  const share = live.get(status.name);
  const figures = share?.figures?.stats;
  return {
    status,
    tone: toneOf(status),
    isCutOff: status.health === 'failed' || share?.remoteAnswers === false,
    hasUnreadFolders: hasUnreadFolders(share),
    since: since(status.name),
    dirtyBytes: status.dirtyCount === 0 ? 0 : figures?.dirtyBytes,
    oldestDirtyAt: figures?.oldestDirtyAt,
    pausedUntil: pausedUntil(share),
    cacheLimit,
    speeds: speeds(status.name),
    addresses: status.mounted ? addresses(status.name) : [],
  };
}

function pausedUntil(share: LiveShare | undefined): number | undefined {
  return share?.mount?.uploadPause?.until;
}

function hasUnreadFolders(share: LiveShare | undefined): boolean {
  return share?.mount?.hasUnreadFolders === true;
}

const SECURE_WEBDAV = '_webdavs._tcp';
export const PROTOCOLS = [
  { protocol: 'SMB', key: 'smb', services: ['_smb._tcp'] },
  { protocol: 'NFS', key: 'nfs', services: ['_nfs._tcp'] },
  { protocol: 'WebDAV', key: 'webdav', services: ['_webdav._tcp', SECURE_WEBDAV] },
] as const;

export function addressesOf(
  share: string,
  { config, offers, host }: AddressSources,
): readonly ShareAddress[] {
  const shown = config.shares.find(({ name }) => name === share)?.protocols ?? [];
  return PROTOCOLS.filter(({ key }) => shown.includes(key)).flatMap(({ services, protocol, key }) => {
    const offer = offerOf(offers, key, services);
    return offer === undefined
      ? []
      : [
          addressOf(protocol, share, {
            host: reachedAs(offer, host),
            port: offer.port,
            isSecure: offer.service === SECURE_WEBDAV,
          }),
        ];
  });
}

/** The addresses of each share, made again when a server or the configuration has changed. */
export class AddressBook {
  readonly #known = new Map<string, readonly ShareAddress[]>();
  #sources: AddressSources | undefined;
  #servers = '';

  renew(sources: AddressSources): void {
    const servers = JSON.stringify([sources.host, sources.offers]);
    if (servers !== this.#servers || sources.config !== this.#sources?.config) this.#known.clear();
    this.#sources = sources;
    this.#servers = servers;
  }

  /** None before `renew`. */
  of(share: string): readonly ShareAddress[] {
    const known = this.#known.get(share);
    if (known || !this.#sources) return known ?? [];
    const made = addressesOf(share, this.#sources);
    this.#known.set(share, made);
    return made;
  }
}

export function offerOf(
  offers: readonly ProtocolOffer[],
  protocol: string,
  services: readonly string[],
): ProtocolOffer | undefined {
  return offers.find((one) => one.protocol === protocol && services.includes(one.service));
}

/**
 * A server that listens on all addresses is reached at this page's host name; any other at its own address.
 */
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
  at: Omit<Place, 'path'>,
): ShareAddress {
  const host = at.host.includes(':') ? `[${at.host}]` : at.host;
  const address = addressAt(protocol, { ...at, host, path: encodeURIComponent(share) });
  const shown = addressAt(protocol, { ...at, host, path: share });
  return {
    protocol,
    address,
    shown,
    windows: protocol === 'SMB' && at.port === 445 ? `\\\\${at.host}\\${share}` : undefined,
  };
}

interface Place {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Of WebDAV: over TLS. */
  readonly isSecure?: boolean;
}

function addressAt(
  protocol: ShareAddress['protocol'],
  { host, port, path, isSecure = false }: Place,
): string {
  if (protocol === 'SMB') return `smb://${host}${port === 445 ? '' : `:${port}`}/${path}`;
  if (protocol === 'NFS') return `nfs://${host}${port === 2049 ? '' : `:${port}`}/${path}`;
  return `${isSecure ? 'https' : 'http'}://${host}:${port}/${path}/`;
}

/** The host name by which others reach this machine, if it is known: nobody else reaches it as localhost. */
export function hostForOthers(host: string): string {
  return isLoopback(host) ? hostname() : host;
}

/** A loopback address: on another machine it would lead to that machine itself. */
export function isLocalOnly(address: string): boolean {
  return isLoopback(new URL(address.replace(/^(?:smb|nfs):/, 'http:')).hostname.replaceAll(/[[\]]/g, ''));
}
