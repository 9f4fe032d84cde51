import { GUEST } from './accounts.ts';
import type { Place } from './paths.ts';

/** One share as the server shows it. */
export interface ServedShare {
  readonly name: string;
  readonly path: string;
  readonly readOnly: boolean;
  /** Other protocols write the same files, so clients may not keep them to themselves. */
  readonly isShared: boolean;
}

export interface ServerSettings {
  readonly place: Place;
  readonly port: number;
  /** Addresses and interface names that are there; empty for all. */
  readonly listen: readonly string[];
  readonly guest: boolean;
  readonly users: readonly string[];
  /** Modules for macOS are installed. */
  readonly hasFruit: boolean;
  /** Whom the mounts belong to. */
  readonly owner: string;
}

/**
 * Why a path cannot stand in the configuration: the server would read it as something else. Undefined when it
 * can.
 */
export function pathProblem(path: string): string | undefined {
  if (path.includes('%'))
    return `the mount point ${path} holds a "%", which smbd takes for a variable; choose another mount_point`;
  if (/[\x00-\x1f\x7f]/.test(path))
    return 'the mount point holds a control character; choose another mount_point';
  if (/[\\\s]$/.test(path))
    return `the mount point ${path} ends with a space or a backslash, which smbd cannot take; choose another mount_point`;
  if (/^"|"$/.test(path))
    return `the mount point ${path} begins or ends with a quotation mark, which smbd cannot take; choose another mount_point`;
  return undefined;
}

export function renderConfig(settings: ServerSettings, shares: readonly ServedShare[]): string {
  const sections = [
    section('global', globalKeys(settings)),
    ...byName(shares).map((share) => section(share.name, shareKeys(settings, share))),
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
    ...placeKeys(settings.place),
    ...networkKeys(settings),
    ...accessKeys(settings),
    ...fileSystemKeys(),
    ...(settings.hasFruit ? [['fruit:aapl', 'yes'] as const] : []),
  ];
}

function placeKeys(place: Place): Keys {
  return [
    ['private dir', place.folder('private')],
    ['lock directory', place.folder('lock')],
    ['state directory', place.folder('state')],
    ['cache directory', place.folder('cache')],
    ['pid directory', place.folder('pid')],
    ['ncalrpc dir', place.folder('ncalrpc')],
    ['winbindd socket directory', place.folder('winbindd')],
    ['passdb backend', `tdbsam:${place.passdb}`],
    ['log file', `${place.folder('log')}/log.smbd`],
    ['max log size', '1000'],
    // Neither printers nor shares that users of this machine might have made.
    ['load printers', 'no'],
    ['printcap name', '/dev/null'],
    ['disable spoolss', 'yes'],
    ['usershare max shares', '0'],
  ];
}

function networkKeys({ port, listen }: ServerSettings): Keys {
  return [
    ['server role', 'standalone server'],
    // The accounts hang on it: it must not change with the host's name.
    ['netbios name', 'MOUNTKEEPER'],
    ['server string', 'Mountkeeper'],
    ['disable netbios', 'yes'],
    ['smb ports', String(port)],
    ...(listen.length > 0 ? [['interfaces', listen.join(' ')] as const] : []),
    ['bind interfaces only', listen.length > 0 ? 'yes' : 'no'],
    ['multicast dns register', 'no'],
    ['idmap config * : backend', 'tdb'],
    ['idmap config * : range', '2000000-2999999'],
    // Clients that vanished free their files within minutes instead of hours.
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

/** What the file system of a mount lacks: extended attributes, access lists, modes. */
function fileSystemKeys(): Keys {
  return [
    ['nt acl support', 'no'],
    ['ea support', 'no'],
    ['store dos attributes', 'no'],
    // Every file shows as one to be archived, as on a Windows disk: clients that are given durable handles
    // look at it.
    ['map archive', 'yes'],
    ['map hidden', 'no'],
    ['map system', 'no'],
    ['map readonly', 'no'],
    // What macOS and Explorer would strew over the NAS.
    ['veto files', '/._*/.DS_Store/.TemporaryItems/.apdisk/'],
    ['delete veto files', 'yes'],
  ];
}

function shareKeys(settings: ServerSettings, share: ServedShare): Keys {
  return [
    ['path', share.path],
    ['read only', share.readOnly ? 'yes' : 'no'],
    ['guest ok', settings.guest ? 'yes' : 'no'],
    ...(settings.guest
      ? []
      : [['valid users', settings.users.map((name) => `"${name}"`).join(', ') || `"${GUEST}"`] as const]),
    // Its group comes with it. Said as well, smbd would look the group up again at every single request.
    ['force user', settings.owner],
    ...(share.isShared ? [['oplocks', 'no'] as const, ['level2 oplocks', 'no'] as const] : []),
    ...(settings.hasFruit ? FRUIT : []),
  ];
}

/**
 * No module for streams: every way to keep them here loses or mixes them up when a file is renamed. So there
 * is no metadata either, and nobody looks for it: kept in an attribute, it would be asked of rclone twice
 * with every request.
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
