import { entranceOf } from 'mountkeeper';
import type { Entrance, ShareAccess } from 'mountkeeper';
import { GUEST } from './users/accounts.ts';
import type { SmbPaths } from './paths.ts';

/** One share in the server's configuration. */
export interface ServedShare {
  readonly name: string;
  readonly path: string;
  readonly readOnly: boolean;
  /** Other protocols write the same files, so clients must not get exclusive locks on them. */
  readonly isShared: boolean;
  /** Left out: every user, and guests where they are let in. */
  readonly access?: ShareAccess | undefined;
}

/** What a user may do in the share; the guests' account is no user that a share can name. */
export function entranceTo({ access }: ServedShare, user: string): Entrance {
  return entranceOf(access, user === GUEST ? undefined : user, { ignoresCase: true });
}

export interface ServerSettings {
  readonly paths: SmbPaths;
  readonly port: number;
  /** Existing addresses and interface names; empty for all. */
  readonly listen: readonly string[];
  readonly guest: boolean;
  readonly users: readonly string[];
  /** Modules for macOS are installed. */
  readonly hasFruit: boolean;
  /** The owner of the mounts. */
  readonly owner: string;
}

/**
 * Why a path cannot be used in the configuration, because the server would read it differently. Undefined
 * when it can.
 */
export function pathProblem(path: string): string | undefined {
  if (path.includes('%'))
    return `the mount point ${path} holds a "%", which smbd takes for a variable; choose another mount_point`;
  if (/[\x00-\x1f\x7f]/.test(path))
    return 'the mount point holds a control character; choose another mount_point';
  if (/[\\\s]$/.test(path))
    return (
      `the mount point ${path} ends with a space or a backslash, which smbd cannot take; ` +
      'choose another mount_point'
    );
  if (/^"|"$/.test(path))
    return (
      `the mount point ${path} begins or ends with a quotation mark, which smbd cannot take; ` +
      'choose another mount_point'
    );
  return undefined;
}

export function renderConfig(settings: ServerSettings, shares: readonly ServedShare[]): string {
  const sections = [
    section('global', globalKeys(settings)),
    ...byName(shares)
      .filter((share) => isForAnybody(settings, share))
      .map((share) => section(share.name, shareKeys(settings, share))),
  ];
  return `# Written by mountkeeper; changes are overwritten.\n${sections.join('\n')}`;
}

type Keys = readonly (readonly [key: string, value: string])[];

function section(name: string, keys: Keys): string {
  return `[${name}]\n${keys.map(([key, value]) => `  ${key} = ${value}\n`).join('')}`;
}

function byName(shares: readonly ServedShare[]): readonly ServedShare[] {
  return [...shares].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function globalKeys(settings: ServerSettings): Keys {
  return [
    ...placeKeys(settings.paths),
    ...networkKeys(settings),
    ...accessKeys(settings),
    ...fileSystemKeys(),
    ...(settings.hasFruit ? [['fruit:aapl', 'yes'] as const] : []),
  ];
}

function placeKeys(paths: SmbPaths): Keys {
  return [
    ['private dir', paths.folder('private')],
    ['lock directory', paths.folder('lock')],
    ['state directory', paths.folder('state')],
    ['cache directory', paths.folder('cache')],
    ['pid directory', paths.folder('pid')],
    ['ncalrpc dir', paths.folder('ncalrpc')],
    ['winbindd socket directory', paths.folder('winbindd')],
    ['passdb backend', `tdbsam:${paths.passdb}`],
    ['log file', `${paths.folder('log')}/log.smbd`],
    ['max log size', '1000'],
    // A line for each sign-in that is refused: see `sign-ins/refusal.ts`.
    ['log level', '0 auth_json_audit:2'],
    // No printers, and no shares that users of this machine may have defined.
    ['load printers', 'no'],
    ['printcap name', '/dev/null'],
    ['disable spoolss', 'yes'],
    ['usershare max shares', '0'],
  ];
}

function networkKeys({ port, listen }: ServerSettings): Keys {
  return [
    ['server role', 'standalone server'],
    // The accounts depend on it, so it must not change with the host name.
    ['netbios name', 'MOUNTKEEPER'],
    ['server string', 'Mountkeeper'],
    ['disable netbios', 'yes'],
    ['smb ports', String(port)],
    ...(listen.length > 0 ? [['interfaces', listen.join(' ')] as const] : []),
    ['bind interfaces only', listen.length > 0 ? 'yes' : 'no'],
    ['multicast dns register', 'no'],
    ['idmap config * : backend', 'tdb'],
    ['idmap config * : range', '2000000-2999999'],
    // Files of clients that disappeared are closed within minutes instead of hours.
    ['socket options', 'TCP_NODELAY SO_KEEPALIVE TCP_KEEPIDLE=60 TCP_KEEPINTVL=15 TCP_KEEPCNT=4'],
  ];
}

function accessKeys({ guest }: ServerSettings): Keys {
  return [
    ['server min protocol', 'SMB2_10'],
    ['server signing', 'mandatory'],
    ['ntlm auth', 'ntlmv2-only'],
    ['guest account', GUEST],
    ['map to guest', guest ? 'Bad User' : 'Never'],
    ['restrict anonymous', guest ? '0' : '2'],
    ['follow symlinks', 'no'],
    ['wide links', 'no'],
    ['unix extensions', 'no'],
  ];
}

/** A mount's file system has no extended attributes, access lists or modes. */
function fileSystemKeys(): Keys {
  return [
    ['nt acl support', 'no'],
    ['ea support', 'no'],
    ['store dos attributes', 'no'],
    // Every file has the archive attribute, as on a Windows disk: clients with durable handles check it.
    ['map archive', 'yes'],
    ['map hidden', 'no'],
    ['map system', 'no'],
    ['map readonly', 'no'],
    // Files that macOS and Explorer would otherwise create everywhere on the NAS.
    ['veto files', '/._*/.DS_Store/.TemporaryItems/.apdisk/'],
    ['delete veto files', 'yes'],
  ];
}

/** A share whose users are none of this server's stands nowhere: no list of names means "nobody" to smbd. */
function isForAnybody({ users }: ServerSettings, share: ServedShare): boolean {
  return share.access === undefined || users.some((name) => entranceTo(share, name) !== 'none');
}

function shareKeys(settings: ServerSettings, share: ServedShare): Keys {
  return [
    ['path', share.path],
    ['read only', share.readOnly ? 'yes' : 'no'],
    ...userKeys(settings, share),
    // Implies its group. With `force group` as well, smbd would look the group up at every request.
    ['force user', settings.owner],
    ...(share.isShared ? [['oplocks', 'no'] as const, ['level2 oplocks', 'no'] as const] : []),
    ...(settings.hasFruit ? FRUIT : []),
  ];
}

/**
 * Only names of the server's own users are written, whose signs mean nothing to smbd: what a share names may hold
 * an "@", "+", "&" or "%", by which smbd would look up a group of this machine or fill in a variable.
 */
function userKeys({ users, guest }: ServerSettings, share: ServedShare): Keys {
  if (share.access === undefined && guest) return [['guest ok', 'yes']];
  const may = (wanted: readonly Entrance[]): string =>
    users
      .filter((name) => wanted.includes(entranceTo(share, name)))
      .map((name) => `"${name}"`)
      .join(', ');
  const readers = may(['read']);
  return [
    ['guest ok', 'no'],
    ['valid users', may(['read', 'write']) || `"${GUEST}"`],
    ...(readers === '' ? [] : [['read list', readers] as const]),
    // Others do not see its name.
    ...(share.access === undefined ? [] : [['access based share enum', 'yes'] as const]),
  ];
}

/**
 * No streams module: every way to store streams here loses them or mixes them up when a file is renamed. So
 * there is no metadata either, and nobody asks for it: stored in an attribute, every request would ask
 * rclone for it twice.
 */
const FRUIT: Keys = [
  ['vfs objects', 'catia fruit'],
  ['fruit:encoding', 'native'],
  ['fruit:metadata', 'stream'],
  ['fruit:resource', 'file'],
  ['fruit:nfs_aces', 'no'],
  ['readdir_attr:aapl_finder_info', 'no'],
  ['readdir_attr:aapl_rsize', 'no'],
];
