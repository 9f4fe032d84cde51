/** Turns the answers into configuration changes: a connection, shares, and who may use them. */
import type { ConnectionConfig, NasAnswers, NasKind, SetupAnswers, TomlEdit } from 'mountkeeper';
import { schemeOf } from './init/address.ts';

type Table = Readonly<Record<string, unknown>>;

const LONGEST_NAME = 63;
const LONGEST_CONNECTION = 32;
const LAST_PORT = 65_535;
const EVERYWHERE = ['0.0.0.0'];

/** Kinds as people know them. */
const TITLES: Readonly<Record<NasKind, string>> = { smb: 'SMB', sftp: 'SFTP', webdav: 'WebDAV', ftp: 'FTP' };

/** Why a NAS cannot be reached by these answers; undefined when it may be. */
export function nasProblem(nas: NasAnswers): string | undefined {
  const problem = addressProblem(nas);
  if (problem !== undefined) return problem;
  // rclone would sign in by a name of its own, or send no password at all.
  return nas.user === '' && nas.password !== ''
    ? 'give the user of the NAS whose password this is; for a NAS that asks for neither, leave both empty'
    : undefined;
}

/** Why an address is invalid; undefined when it is valid. */
export function addressProblem({ kind, address }: NasAnswers): string | undefined {
  if (address.trim() === '') return 'give the address of the NAS, such as nas.local or 192.168.1.5';
  return schemeProblem(kind, address) ?? (kind === 'webdav' ? urlProblem(address) : hostProblem(address));
}

/** What people copy from elsewhere: `smb://nas/photos`, or `https://nas` for another kind than WebDAV. */
function schemeProblem(kind: NasKind, address: string): string | undefined {
  const begun = schemeOf(address);
  if (!begun) return undefined;
  const { scheme, kind: named } = begun;
  if (named !== kind)
    return (
      `an address that begins with ${scheme}:// is one of ${TITLES[named]}: choose ${TITLES[named]}, ` +
      'or give the name of the NAS alone, such as nas.local'
    );
  if (/^https?$/.test(scheme)) return undefined;
  return kind === 'webdav'
    ? 'give the address of WebDAV, such as https://nas.local:5006/'
    : `give a name or an address alone, such as nas.local, without ${scheme}:// before it; ` +
        'folders are chosen in the next step';
}

function urlProblem(address: string): string | undefined {
  return URL.canParse(urlOf(address))
    ? undefined
    : 'give the address of WebDAV, such as https://nas.local:5006/';
}

function hostProblem(address: string): string | undefined {
  return hostAndPort(address)
    ? undefined
    : 'give a name or an address, such as nas.local, 192.168.1.5 or 192.168.1.5:2222';
}

function urlOf(address: string): string {
  const trimmed = address.trim();
  return /^https?:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`;
}

function hostAndPort(
  address: string,
): { readonly host: string; readonly port: string | undefined } | undefined {
  const [, bracketed, plain, port] =
    /^(?:\[([0-9a-f:.]{2,45})\]|([^\s:/@[\]]{1,253}))(?::(\d{1,5}))?$/i.exec(address.trim()) ?? [];
  const host = bracketed ?? plain;
  return host === undefined || !isPort(port) ? undefined : { host, port };
}

function isPort(port = '1'): boolean {
  return Number(port) > 0 && Number(port) <= LAST_PORT;
}

/** Throws a sentence. */
export function connectionOf(nas: NasAnswers, name: string): ConnectionConfig {
  const problem = nasProblem(nas);
  if (problem !== undefined) throw new Error(problem);
  const { kind, user, password: pass, address } = nas;
  if (kind === 'webdav')
    return {
      name,
      type: kind,
      options: {
        url: urlOf(address),
        vendor: 'other',
        ...(user !== '' && { user }),
        ...(pass !== '' && { pass }),
      },
    };
  const { host = '', port } = hostAndPort(address) ?? {};
  return {
    name,
    type: kind,
    options: {
      host,
      ...(port !== undefined && { port: Number(port) }),
      ...(user !== '' && { user }),
      ...(pass !== '' && { pass }),
    },
  };
}

export const KINDS: readonly NasKind[] = ['smb', 'sftp', 'webdav', 'ftp'];

/** A share name from the last part of a folder's path; different from names that are taken, ignoring case. */
export function shareNames(folders: readonly string[], taken: readonly string[]): readonly string[] {
  const used = new Set(taken.map((name) => name.toLowerCase()));
  return folders.map((folder) => {
    const last = folder.split('/').findLast((part) => part !== '') ?? 'files';
    const plain = last
      .normalize('NFC')
      .replaceAll(/[^\p{L}\p{M}\p{N}._\- ]/gu, '-')
      .replaceAll(/^[\s.]+|(?<![\s.])[\s.]+$/g, '')
      .slice(0, LONGEST_NAME - 4);
    return unlike(used, plain === '' ? 'files' : plain);
  });
}

function unlike(used: Set<string>, wanted: string): string {
  let name = wanted;
  for (let number = 2; used.has(name.toLowerCase()); number += 1) name = `${wanted}-${number}`;
  used.add(name.toLowerCase());
  return name;
}

export interface Known {
  readonly connections: readonly { readonly name: string }[];
  readonly shares: readonly { readonly name: string }[];
  readonly smb: { readonly listen: readonly string[]; readonly users: readonly { readonly name: string }[] };
}

/** `document`: the parsed text that the changes are added to. Throws a sentence. */
export function editsOf(
  { nas, folders, lan }: SetupAnswers,
  known: Known,
  document: Table,
): readonly TomlEdit[] {
  const connection = connectionOf(nas, connectionName(nas, known));
  const names = shareNames(
    folders,
    known.shares.map(({ name }) => name),
  );
  const first = known.shares.length;
  return [
    { path: ['connections', known.connections.length], value: connection },
    ...folders.map((folder, index) => ({
      path: ['shares', first + index],
      value: {
        name: names[index],
        connection: connection.name,
        ...(folder !== '' && { remote_path: folder }),
      },
    })),
    ...(lan ? lanEdits(lan, known, document) : []),
  ];
}

function connectionName({ address }: NasAnswers, { connections }: Known): string {
  const host =
    address
      .trim()
      .replace(/^https?:\/\//i, '')
      .split(/[/:]/)[0] ?? '';
  return freeConnectionName(host, connections);
}

/** A name that a connection may have, different from those that are taken, ignoring case. */
export function freeConnectionName(wanted: string, connections: Known['connections']): string {
  const plain = wanted
    .replaceAll(/[^A-Za-z0-9_-]/g, '-')
    .replace(/^[-_]+/, '')
    .slice(0, LONGEST_CONNECTION - 4);
  const used = new Set(connections.map(({ name }) => name.toLowerCase()));
  return unlike(used, plain === '' ? 'nas' : plain);
}

/** smbd tells no case apart. */
export function knowsUser({ smb }: Pick<Known, 'smb'>, user: string): boolean {
  return smb.users.some(({ name }) => name.toLowerCase() === user.toLowerCase());
}

/** Listen addresses that somebody has chosen are kept. */
function lanEdits(
  { user, password }: NonNullable<SetupAnswers['lan']>,
  { smb }: Known,
  document: Table,
): readonly TomlEdit[] {
  const isChosen = (document['smb'] as Table | undefined)?.['listen'] !== undefined;
  return [
    { path: ['smb', 'enabled'], value: true },
    ...(isChosen ? [] : [{ path: ['smb', 'listen'], value: EVERYWHERE }]),
    ...(knowsUser({ smb }, user)
      ? []
      : [{ path: ['smb', 'users', smb.users.length], value: { name: user, password } }]),
  ];
}
