/** Reads NAS from records of multicast DNS. Everything in them may be made up by whoever is in the network. */
import { isIPv4 } from 'node:net';
import type { Answer } from 'dns-packet';
import type { FoundNas, NasKind } from 'mountkeeper';

interface Service {
  readonly kind: NasKind;
  readonly port: number;
  /** For WebDAV, which is reached by a URL. */
  readonly scheme?: 'http' | 'https';
}

const SERVICES: Readonly<Record<string, Service>> = {
  '_smb._tcp.local': { kind: 'smb', port: 445 },
  '_sftp-ssh._tcp.local': { kind: 'sftp', port: 22 },
  '_webdav._tcp.local': { kind: 'webdav', port: 80, scheme: 'http' },
  '_webdavs._tcp.local': { kind: 'webdav', port: 443, scheme: 'https' },
};

export const SERVICE_TYPES: readonly string[] = Object.keys(SERVICES);

const LONGEST_NAME = 63;
/** Unreserved characters and escapes: such a path cannot end the URL's host, or begin a query. */
const PATH = /^\/(?:[\w.~/-]|%[0-9a-f]{2}){0,255}$/i;

/** `isAllowed` judges the address that an answer leads to. */
export function nasIn(
  records: readonly Answer[],
  isAllowed: (address: string) => boolean,
): readonly FoundNas[] {
  return records.flatMap((record) => {
    if (record.type !== 'PTR' || typeof record.data !== 'string') return [];
    const type = record.name.toLowerCase();
    const service = Object.hasOwn(SERVICES, type) ? SERVICES[type] : undefined;
    const name = nameOf(record.data, type);
    const at = service && name !== '' ? placeOf(records, record.data, isAllowed) : undefined;
    return service && at ? [{ kind: service.kind, name, address: addressOf(service, at) }] : [];
  });
}

interface Place {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

function placeOf(
  records: readonly Answer[],
  instance: string,
  isAllowed: (address: string) => boolean,
): Place | undefined {
  const srv = records.find((one) => one.type === 'SRV' && isSame(one.name, instance));
  if (srv?.type !== 'SRV' || !isPort(srv.data.port) || typeof srv.data.target !== 'string') return undefined;
  const { port, target } = srv.data;
  const host = records.find(
    (one) => one.type === 'A' && isSame(one.name, target) && isIPv4(one.data) && isAllowed(one.data),
  );
  if (host?.type !== 'A') return undefined;
  return { host: host.data, port, path: pathOf(records, instance) };
}

/** The folder of WebDAV on its server (RFC 6763 records it as `path=`). */
function pathOf(records: readonly Answer[], instance: string): string {
  const texts = records.flatMap((one) => (one.type === 'TXT' && isSame(one.name, instance) ? one.data : []));
  const paths = [texts].flat().map((text) => /^path=(.*)$/.exec(String(text))?.[1] ?? '');
  return paths.find((path) => PATH.test(path) && !path.split('/').includes('..')) ?? '';
}

function addressOf({ port: usual, scheme }: Service, { host, port, path }: Place): string {
  const at = port === usual ? host : `${host}:${port}`;
  return scheme === undefined ? at : `${scheme}://${at}${path === '' ? '/' : path}`;
}

/** The first label as people may read it: nothing that steers a terminal or turns the direction of text. */
function nameOf(instance: string, type: string): string {
  const end = `.${type}`;
  if (!instance.toLowerCase().endsWith(end)) return '';
  return instance
    .slice(0, -end.length)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu, '')
    .trim()
    .slice(0, LONGEST_NAME);
}

function isPort(port: unknown): port is number {
  return Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535;
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
