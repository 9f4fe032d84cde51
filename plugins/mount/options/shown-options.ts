/**
 * Which options of a connection may be shown to everybody who can read the configuration. An allowlist:
 * backends have hundreds of options, and secrets under names such as `access_grant`, `headers` or
 * `connection_string`. rclone's own flags (`IsPassword`, `Sensitive`) do not help: they miss such secrets,
 * and include host and user names.
 */
import type { Config } from 'mountkeeper';

/**
 * Sizes, counts, times and the like, which mean the same in every backend. Boolean options need not be
 * listed.
 */
const OF_EVERY_BACKEND = `
  description encoding port concurrency connections idle_timeout close_timeout shut_timeout tls_cache_size
  chunk_size
  upload_cutoff copy_cutoff upload_concurrency nextcloud_chunk_size max_upload_parts list_chunk
  list_version list_page_size list_url_encode pacer_min_sleep pacer_burst memory_pool_flush_time hashes
  hash_type time_type batch_mode batch_size batch_timeout batch_commit_timeout info_age max_age
  md5_memory_limit v2_download_min_size
  upload_wait tpslimit tpslimit_burst`;

/** Option names of each backend, by the connection's type. */
const OF_BACKEND: Readonly<Record<string, string>> = {
  sftp: `host user key_file pubkey_file known_hosts_file path_override shell_type subsystem ciphers
    key_exchange macs
    host_key_algorithms socks_proxy http_proxy`,
  smb: 'host user domain spn kerberos_ccache',
  webdav: 'url vendor user',
  ftp: 'host user socks_proxy http_proxy',
  http: 'url',
  s3: `provider region endpoint location_constraint acl bucket_acl server_side_encryption
    sse_customer_algorithm storage_class
    shared_credentials_file profile role_arn role_session_name role_session_duration download_url
    sts_endpoint object_lock_mode`,
  b2: 'endpoint download_url sse_customer_algorithm',
  swift: 'user auth auth_version region endpoint_type storage_policy storage_url domain tenant tenant_domain',
  hdfs: 'namenode username data_transfer_protection',
  drive: 'scope export_formats import_formats',
  'google cloud storage': 'location storage_class endpoint object_acl bucket_acl',
  gcs: 'location storage_class endpoint object_acl bucket_acl',
  onedrive: 'region drive_type link_scope link_type',
  pcloud: 'hostname username',
  koofr: 'provider endpoint user',
  seafile: 'url user',
  alias: 'remote',
  crypt: 'remote filename_encryption filename_encoding suffix',
  chunker: 'remote name_format meta_format transactions',
  compress: 'remote mode level',
  hasher: 'remote',
  cache: 'remote db_path chunk_path chunk_total_size',
  union: 'upstreams action_policy create_policy search_policy',
  combine: 'upstreams',
};

const EVERYWHERE: ReadonlySet<string> = new Set(wordsOf(OF_EVERY_BACKEND));
/** Names that may be shown, by backend; unknown backends show only the common ones. */
export const HARMLESS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries(OF_BACKEND).map(([type, names]) => [type, new Set([...EVERYWHERE, ...wordsOf(names)])]),
);
/** Characters by which an address or a connection string may contain a password, a token or a user. */
const CARRIERS: Readonly<Record<string, readonly string[]>> = {
  remote: [','],
  upstreams: [','],
  socks_proxy: ['@'],
  http_proxy: ['@'],
  url: ['@', '?', '#'],
  endpoint: ['@', '?', '#'],
  download_url: ['@', '?', '#'],
  sts_endpoint: ['@', '?', '#'],
  auth: ['@', '?', '#'],
  storage_url: ['@', '?', '#'],
};

function wordsOf(text: string): string[] {
  return text.trim().split(/\s+/);
}

/** Whether an option's value may be shown. References never are. */
export function isHarmlessOption(type: string, name: string, value: unknown): boolean {
  if (value === 'true' || value === 'false') return true;
  const known = HARMLESS.get(type) ?? EVERYWHERE;
  return known.has(name) && !(CARRIERS[name] ?? []).some((mark) => String(value).includes(mark));
}

/** Paths in the document of the connection options that may be shown. */
export function harmlessOptions(config: Config): readonly string[] {
  return config.connections.flatMap(({ type, options }, index) =>
    Object.entries(options ?? {})
      .filter(([name, value]) => isHarmlessOption(type, name, value))
      .map(([name]) => `connections[${index}].options.${name}`),
  );
}
