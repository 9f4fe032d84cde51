/** An address as people write it: with or without the kind of server in front. */
import type { NasAnswers, NasKind } from 'mountkeeper';

/** The kind of server that each begins an address of. */
const SCHEMES: Readonly<Record<string, NasKind>> = {
  smb: 'smb',
  cifs: 'smb',
  sftp: 'sftp',
  ssh: 'sftp',
  ftp: 'ftp',
  http: 'webdav',
  https: 'webdav',
  webdav: 'webdav',
  webdavs: 'webdav',
  dav: 'webdav',
  davs: 'webdav',
};

export interface Scheme {
  readonly scheme: string;
  readonly kind: NasKind;
}

/** What the address begins with; undefined for one that names no known kind of server. */
export function schemeOf(address: string): Scheme | undefined {
  const [, written = ''] = /^([a-z]+):\/\//i.exec(address.trim()) ?? [];
  const scheme = written.toLowerCase();
  const kind = SCHEMES[scheme];
  return kind && { scheme, kind };
}

/** `smb://nas` names the kind itself; `kind` is for an address that does not. */
export function splitAddress(text: string, kind: NasKind): Pick<NasAnswers, 'kind' | 'address'> {
  const trimmed = text.trim();
  const named = schemeOf(trimmed);
  if (named === undefined) return { kind, address: trimmed };
  const rest = trimmed.slice(`${named.scheme}://`.length);
  if (named.kind !== 'webdav') return { kind: named.kind, address: rest.replace(/(?<!\/)\/+$/, '') };
  const isPlain = ['http', 'webdav', 'dav'].includes(named.scheme);
  return { kind: named.kind, address: `${isPlain ? 'http' : 'https'}://${rest}` };
}

/** As a person would write it down, and as `splitAddress` reads it. */
export function joinAddress({ kind, address }: Pick<NasAnswers, 'kind' | 'address'>): string {
  return kind === 'webdav' ? address : `${kind}://${address}`;
}
