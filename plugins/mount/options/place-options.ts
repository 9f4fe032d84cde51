/**
 * Which options of a connection say where it leads, and as whom. What was written for one NAS must not go to another,
 * so whether two connections lead to the same place is judged by these. All other options only say how to get there;
 * so do keys, tokens and passwords, which are renewed while what waits still belongs to the same account.
 */

/** Options that lead to another host than `host` says, or run a program that does. */
export const DETOURS = ['ssh', 'server_command', 'unix_socket', 'socks_proxy', 'http_proxy'] as const;

/** Behind one address each port may lead to another NAS. */
const LONG_KNOWN = new Set([
  'host',
  'port',
  'url',
  'endpoint',
  'remote',
  'upstreams',
  'user',
  'username',
  'account',
  'account_id',
  'domain',
  'provider',
  'region',
  'bucket',
  'auth',
  'storage_url',
  'user_id',
  'tenant_id',
  'tenant_domain',
  'namenode',
  'root_folder_id',
  'team_drive',
  'drive_id',
  'site_id',
  'tenant',
  'storage_zone',
]);

/** What former versions left out; by the lists of `rclone config providers`. */
const KNOWN_SINCE = new Set<string>([
  ...DETOURS,
  // sftp: which server is started at the other end.
  'subsystem',
  // Addresses under other names: pixeldrain and sia, pcloud, storj, onedrive, internetarchive, doi.
  'api_url',
  'hostname',
  'satellite_address',
  'tenant_url',
  'front_endpoint',
  'doi',
  'doi_resolver_api_url',
  // azureblob and azurefiles, without the keys that are in them (`withoutKey`).
  'connection_string',
  'sas_url',
  'share_name',
  'use_emulator',
  // s3 and oracleobjectstorage: whose buckets; qingstor: in which zone.
  'profile',
  'role_arn',
  'ibm_resource_instance_id',
  'namespace',
  'compartment',
  'config_profile',
  'zone',
  // Accounts under other names: cloudinary, filescom, linkbox and others, iclouddrive.
  'cloud_name',
  'site',
  'email',
  'apple_id',
  'service',
  // Whose files an account works on: drive, dropbox, box.
  'impersonate',
  'owned_by',
  // A library, a workspace, a device or a folder in an account.
  'library',
  'mountid',
  'workspace_id',
  'device',
  'mountpoint',
  'root_id',
  'root_folder_slug',
  'root_prefix',
  'root_namespace',
  'shared_folder',
  'shared_folders',
  'shared_files',
  'shared_with_me',
  'scope',
]);

type Pair = readonly [name: string, value: string];

/** In the order of their names. `options`: with secrets resolved. */
export function placeOptions(options: ReadonlyMap<string, string>): readonly Pair[] {
  return sorted(options).flatMap(([name, value]): readonly Pair[] => {
    if (LONG_KNOWN.has(name)) return [[name, value]];
    // As good as left out.
    if (!KNOWN_SINCE.has(name) || value === '' || value === 'false') return [];
    return [[name, withoutKey(name, value)]];
  });
}

/** The same as versions saw it that left some out. */
export function formerPlaceOptions(options: ReadonlyMap<string, string>): readonly Pair[] {
  return sorted(options).filter(([name]) => LONG_KNOWN.has(name));
}

function sorted(options: ReadonlyMap<string, string>): readonly Pair[] {
  return [...options].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A key that is renewed leads to the same place. */
function withoutKey(name: string, value: string): string {
  if (name === 'sas_url') return value.replace(/\?.*$/s, '');
  if (name !== 'connection_string') return value;
  return value
    .split(';')
    .filter((part) => !/^\s*(AccountKey|SharedAccessSignature)\s*=/i.test(part))
    .join(';');
}
