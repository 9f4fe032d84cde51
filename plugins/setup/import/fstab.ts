/** Takes an entry of fstab: cifs, davfs or sshfs. Nothing of it is run, and nothing of it is a pattern. */
import { posix } from 'node:path';
import { droppedNote } from './dropped-options.ts';
import { assertPlain } from './imported.ts';
import type { Imported } from './imported.ts';

/** What other files hold: read only when the entry refers to them. */
export interface CredentialFiles {
  /** Of a `credentials=` option of cifs. */
  readonly cifs: (path: string) => Promise<ReadonlyMap<string, string>>;
  /** Of davfs2, for a URL or a mount point. */
  readonly davfs: (
    url: string,
    mountPoint: string,
  ) => Promise<{ readonly user: string; readonly pass: string } | undefined>;
  /** The first of these files of known hosts that is there, or what ssh itself reads where none is named. */
  readonly knownHosts: (named: readonly string[]) => Promise<string | undefined>;
}

interface Entry {
  readonly source: string;
  readonly mountPoint: string;
  readonly type: string;
  readonly options: readonly (readonly [name: string, value: string])[];
}

type Option = readonly [name: string, value: string];
type Read = Omit<Imported, 'name' | 'readOnly'>;
const READERS: Readonly<Record<string, (entry: Entry, files: CredentialFiles) => Promise<Read>>> = {
  cifs: readCifs,
  smb3: readCifs,
  davfs: readDavfs,
  'fuse.davfs': readDavfs,
  sshfs: readSshfs,
  'fuse.sshfs': readSshfs,
};

/** The entry with this mount point; the last one, as mount takes it. Rejects with a sentence. */
export async function importFstab(
  text: string,
  mountPoint: string,
  files: CredentialFiles,
): Promise<Imported> {
  const wanted = trimmed(mountPoint);
  const entry = text
    .split('\n')
    .flatMap((line) => entryOf(line) ?? [])
    .findLast((one) => trimmed(one.mountPoint) === wanted);
  if (!entry) throw new Error(`there is no entry for ${mountPoint}`);
  const { type, source } = entry.source.startsWith('sshfs#')
    ? { type: 'sshfs', source: entry.source.slice('sshfs#'.length) }
    : entry;
  const reader = Object.hasOwn(READERS, type) ? READERS[type] : undefined;
  if (!reader)
    throw new Error(`the entry for ${mountPoint} is of type ${type}; cifs, davfs and sshfs can be imported`);
  const found = await reader({ ...entry, source }, files);
  for (const [name, value] of found.options) assertPlain(`the option ${name}`, value);
  assertPlain('the path', found.remotePath);
  return {
    ...found,
    // The later one counts.
    readOnly: entry.options.findLast(([name]) => name === 'ro' || name === 'rw')?.[0] === 'ro',
    name: posix.basename(wanted) || 'files',
  };
}

function trimmed(path: string): string {
  return path.replace(/(?<=[^/])\/+$/, '');
}

function entryOf(line: string): Entry | undefined {
  const fields = line.trim().split(/[ \t]+/);
  const [source = '', mountPoint = '', type = '', options = ''] = fields.map(unescaped);
  if (source === '' || source.startsWith('#') || type === '') return undefined;
  return {
    source,
    mountPoint,
    type,
    options: options.split(',').map((option) => {
      const at = option.indexOf('=');
      return at === -1 ? [option, ''] : [option.slice(0, at), option.slice(at + 1)];
    }),
  };
}

/** fstab writes spaces and the like as octal numbers, one for each byte: those of one character belong together. */
function unescaped(field: string): string {
  return field.replaceAll(/(?:\\[0-3][0-7]{2})+/g, (bytes) =>
    Buffer.from(bytes.match(/[0-7]{3}/g)!.map((octal) => Number.parseInt(octal, 8))).toString('utf8'),
  );
}

const CIFS_NAMES: Readonly<Record<string, string>> = {
  username: 'user',
  user: 'user',
  password: 'pass',
  pass: 'pass',
  domain: 'domain',
  dom: 'domain',
  workgroup: 'domain',
  port: 'port',
};
const CIFS_TAKEN = new Set([...Object.keys(CIFS_NAMES), 'credentials', 'cred', 'prefixpath']);

async function readCifs({ source, options }: Entry, files: CredentialFiles): Promise<Read> {
  const [host, share] = sharePlace(source);
  const found = new Map([['host', host]]);
  // The later one counts, wherever it stands: so does mount.cifs.
  for (const [name, value] of options) {
    const isFile = name === 'credentials' || name === 'cred';
    const pairs = isFile ? [...(await files.cifs(value))] : [[name, value] as const];
    for (const [option, given] of pairs.flatMap(cifsOptions)) found.set(option, given);
  }
  const prefix = options.findLast(([name]) => name === 'prefixpath')?.[1] ?? '';
  return {
    type: 'smb',
    options: found,
    remotePath: [share, ...partsOf(prefix)].join('/'),
    notes: [...cifsNotes(options), ...droppedNote(options, takenOf(options))],
    doubts: [],
  };
}

/** As rclone has them. */
function cifsOptions([name, value]: readonly [name: string, value: string]): readonly Option[] {
  const option = Object.hasOwn(CIFS_NAMES, name) ? CIFS_NAMES[name] : undefined;
  if (option === undefined) return [];
  return filled(option === 'user' ? accountOf(value) : [[option, value]]);
}

/** `DOMAIN\USER%PASSWORD`, as mount.cifs reads it; the domain may stand before a slash as well. */
function accountOf(text: string): readonly (readonly [option: string, value: string | undefined])[] {
  const [, name = '', pass] = /^([^%]*)(?:%(.*))?$/s.exec(text) ?? [];
  const [, domain, user] = /^(?:([^\\/]*)[\\/])?(.*)$/s.exec(name) ?? [];
  return [
    ['domain', domain],
    ['user', user],
    ['pass', pass],
  ];
}

function filled(
  options: readonly (readonly [option: string, value: string | undefined])[],
): readonly Option[] {
  return options.flatMap(([option, value = '']) => (value === '' ? [] : [[option, value] as const]));
}

/** Kerberos has a note of its own. */
function takenOf(options: Entry['options']): ReadonlySet<string> {
  return isKerberos(options) ? new Set([...CIFS_TAKEN, 'sec']) : CIFS_TAKEN;
}

function isKerberos(options: Entry['options']): boolean {
  return options.some(([name, value]) => name === 'sec' && value.startsWith('krb5'));
}

function cifsNotes(options: Entry['options']): readonly string[] {
  return options.flatMap(([name, value]) => {
    if (name === 'credentials' || name === 'cred') {
      assertPlain('the name of the credentials file', value);
      return [`its account is the one in ${value}`];
    }
    return name === 'sec' && isKerberos([[name, value]])
      ? ['the entry signs in by Kerberos, which is not taken over: give the connection a password']
      : [];
  });
}

function sharePlace(source: string): readonly [host: string, share: string] {
  const [host = '', ...path] = source.replaceAll('\\', '/').replace(/^\/\//, '').split('/');
  const share = partsOf(path.join('/')).join('/');
  if (host === '' || share === '') throw new Error(`"${source}" names no share as //HOST/SHARE`);
  return [host, share];
}

function partsOf(path: string): readonly string[] {
  return path.split(/[\\/]/).filter((part) => part !== '');
}

async function readDavfs(
  { source, mountPoint, options: given }: Entry,
  files: CredentialFiles,
): Promise<Read> {
  if (!/^https?:\/\//i.test(source) || !URL.canParse(source))
    throw new Error(`"${source}" is no URL of WebDAV`);
  const account = await files.davfs(source, mountPoint);
  const options = new Map([
    ['url', source],
    ['vendor', 'other'],
    ...(account
      ? ([
          ['user', account.user],
          ['pass', account.pass],
        ] as const)
      : []),
  ]);
  const notes = account
    ? []
    : ['no account for it was found: add user and pass to the connection where it wants them'];
  return {
    type: 'webdav',
    options,
    remotePath: '',
    notes: [...notes, ...droppedNote(given, new Set())],
    doubts: [],
  };
}

const SSHFS_TAKEN = new Set(['identityfile', 'port', 'userknownhostsfile']);
/** What leads the way to the NAS: without it another machine may answer, or none. */
const SSHFS_WAYS = new Set(['proxyjump', 'proxycommand', 'ssh_command', 'hostname', 'bindaddress']);

async function readSshfs({ source, options }: Entry, files: CredentialFiles): Promise<Read> {
  const { host, user, path } = sshPlace(source);
  const given = new Map(options.map(([name, value]) => [name.toLowerCase(), value]));
  const key = given.get('identityfile');
  const knownHosts = await files.knownHosts((given.get('userknownhostsfile') ?? '').split(' '));
  const found = filled([
    ['host', host],
    ['user', user],
    ['port', given.get('port')],
    ['key_file', key],
    ['known_hosts_file', knownHosts],
  ]);
  const missing = [
    ...(key
      ? []
      : ['the entry names no key: give the connection key_file or pass, or its ssh-agent to the daemon']),
    ...(knownHosts === undefined ? ['no file of known hosts was found'] : []),
  ];
  const ways = [...given.keys()].filter((name) => SSHFS_WAYS.has(name));
  return {
    type: 'sftp',
    options: new Map(found),
    remotePath: path,
    notes: [...missing, ...droppedNote(options, new Set([...SSHFS_TAKEN, ...ways]))],
    doubts: ways.map(
      (name) => `the entry reaches the NAS by ${name}, which is not taken over: the daemon dials ${host}`,
    ),
  };
}

function sshPlace(source: string): {
  readonly host: string;
  readonly user: string | undefined;
  readonly path: string;
} {
  const [, user, bracketed, plain, path = ''] =
    /^(?:([^@/]+)@)?(?:\[([0-9a-f:.]+)\]|([^:/[\]]+)):(.*)$/i.exec(source) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) throw new Error(`"${source}" names no folder as USER@HOST:FOLDER`);
  return { host, user, path };
}
