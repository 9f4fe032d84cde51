/** An address as people write it: with or without the kind of server in front. */
import type { NasAnswers, NasKind } from 'mountkeeper';

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

/** `smb://nas` names the kind itself; `kind` is for an address that does not. */
export function splitAddress(text: string, kind: NasKind): Pick<NasAnswers, 'kind' | 'address'> {
  const trimmed = text.trim();
  const [, scheme = '', rest = ''] = /^([a-z]+):\/\/(.*)$/i.exec(trimmed) ?? [];
  const named = SCHEMES[scheme.toLowerCase()];
  if (named === undefined) return { kind, address: trimmed };
  if (named !== 'webdav') return { kind: named, address: rest.replace(/(?<!\/)\/+$/, '') };
  const isPlain = /^(?:http|webdav|dav)$/i.test(scheme);
  return { kind: named, address: `${isPlain ? 'http' : 'https'}://${rest}` };
}

/** As a person would write it down, and as `splitAddress` reads it. */
export function joinAddress({ kind, address }: Pick<NasAnswers, 'kind' | 'address'>): string {
  return kind === 'webdav' ? address : `${kind}://${address}`;
}
