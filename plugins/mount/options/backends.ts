/**
 * The backends that a document over HTTP may use, with the options it may set: only options that, by
 * rclone's source, name no file, no program, no socket, no variable and no other remote (checked in 1.60
 * and 1.75; newer options are not listed).
 * `place`: where the data goes, as whom, and how well the connection is protected. `tuning`: everything
 * else.
 */
import type { ConnectionOption } from 'mountkeeper';

/** The form of a value; all text values have a maximum length and no control characters. */
export type ValueKind = 'text' | 'word' | 'url' | 'secret' | 'pem' | 'number' | 'flag' | 'off' | 'amount';

export interface Backend {
  readonly place: Readonly<Record<string, ValueKind>>;
  readonly tuning: Readonly<Record<string, ValueKind>>;
}

const COMMON = { description: 'text', encoding: 'text' } as const;
const OBJECTS = {
  upload_cutoff: 'amount',
  chunk_size: 'amount',
  copy_cutoff: 'amount',
  upload_concurrency: 'number',
  disable_checksum: 'flag',
} as const;

export const BACKENDS: Readonly<Record<string, Backend>> = {
  // Left out: key_file, pubkey_file, known_hosts_file, key_use_agent, ask_password, ssh, server_command,
  // subsystem, set_env, proxies, …_command.
  sftp: {
    place: {
      host: 'word',
      port: 'number',
      user: 'text',
      pass: 'secret',
      key_pem: 'pem',
      key_file_pass: 'secret',
      pubkey: 'text',
      host_keys: 'text',
      use_insecure_cipher: 'flag',
      ciphers: 'text',
      key_exchange: 'text',
      macs: 'text',
      host_key_algorithms: 'text',
      // How rclone talks to a shell on the remote, where there is one: with "cmd", a path is not quoted for
      // any other shell.
      path_override: 'text',
      shell_type: 'word',
      hashes: 'text',
    },
    tuning: {
      ...COMMON,
      disable_hashcheck: 'flag',
      set_modtime: 'flag',
      skip_links: 'flag',
      use_fstat: 'flag',
      disable_concurrent_reads: 'flag',
      disable_concurrent_writes: 'flag',
      idle_timeout: 'amount',
      chunk_size: 'amount',
      concurrency: 'number',
      connections: 'number',
      copy_is_hardlink: 'flag',
    },
  },
  // Left out: use_kerberos and kerberos_ccache.
  smb: {
    place: { host: 'word', port: 'number', user: 'text', pass: 'secret', domain: 'text', spn: 'text' },
    tuning: { ...COMMON, idle_timeout: 'amount', hide_special_share: 'flag', case_insensitive: 'flag' },
  },
  // Left out: bearer_token_command and unix_socket.
  webdav: {
    place: {
      url: 'url',
      vendor: 'word',
      user: 'text',
      pass: 'secret',
      bearer_token: 'secret',
      headers: 'secret',
      auth_redirect: 'flag',
    },
    tuning: {
      ...COMMON,
      pacer_min_sleep: 'amount',
      nextcloud_chunk_size: 'amount',
      owncloud_exclude_shares: 'flag',
      owncloud_exclude_mounts: 'flag',
    },
  },
  // Left out: ask_password and proxies.
  ftp: {
    place: {
      host: 'word',
      port: 'number',
      user: 'text',
      pass: 'secret',
      tls: 'flag',
      explicit_tls: 'flag',
      no_check_certificate: 'flag',
      disable_tls13: 'flag',
      allow_insecure_tls_ciphers: 'flag',
    },
    tuning: {
      ...COMMON,
      concurrency: 'number',
      disable_epsv: 'flag',
      disable_mlsd: 'flag',
      disable_utf8: 'flag',
      writing_mdtm: 'flag',
      force_list_hidden: 'flag',
      idle_timeout: 'amount',
      close_timeout: 'amount',
      shut_timeout: 'amount',
      tls_cache_size: 'number',
      no_check_upload: 'flag',
    },
  },
  http: {
    place: { url: 'url', headers: 'secret' },
    tuning: { description: 'text', no_slash: 'flag', no_head: 'flag', no_escape: 'flag' },
  },
  // Left out: shared_credentials_file, profile, role_…, sts_endpoint, ibm_…, sdk_log_mode, download_url;
  // env_auth only as false.
  s3: {
    place: {
      provider: 'word',
      env_auth: 'off',
      access_key_id: 'secret',
      secret_access_key: 'secret',
      session_token: 'secret',
      region: 'word',
      endpoint: 'word',
      location_constraint: 'word',
      acl: 'word',
      bucket_acl: 'word',
      requester_pays: 'flag',
      v2_auth: 'flag',
      server_side_encryption: 'word',
      sse_kms_key_id: 'word',
      sse_customer_algorithm: 'word',
      sse_customer_key: 'secret',
      sse_customer_key_base64: 'secret',
      sse_customer_key_md5: 'secret',
      storage_class: 'word',
      force_path_style: 'flag',
      use_accelerate_endpoint: 'flag',
      use_dual_stack: 'flag',
    },
    tuning: {
      ...COMMON,
      ...OBJECTS,
      max_upload_parts: 'number',
      leave_parts_on_error: 'flag',
      list_chunk: 'number',
      list_version: 'number',
      list_url_encode: 'flag',
      no_check_bucket: 'flag',
      no_head: 'flag',
      no_head_object: 'flag',
      disable_http2: 'flag',
      use_multipart_etag: 'flag',
      use_presigned_request: 'flag',
      decompress: 'flag',
      might_gzip: 'flag',
      no_system_metadata: 'flag',
      directory_markers: 'flag',
      use_accept_encoding_gzip: 'flag',
      use_multipart_uploads: 'flag',
      use_unsigned_payload: 'flag',
    },
  },
  // Left out: download_url and test_mode.
  b2: {
    place: { account: 'secret', key: 'secret', endpoint: 'word' },
    tuning: {
      ...COMMON,
      ...OBJECTS,
      hard_delete: 'flag',
      download_auth_duration: 'amount',
      lifecycle: 'number',
    },
  },
  // env_auth only as false.
  swift: {
    place: {
      env_auth: 'off',
      user: 'text',
      key: 'secret',
      auth: 'url',
      user_id: 'text',
      domain: 'text',
      tenant: 'text',
      tenant_id: 'text',
      tenant_domain: 'text',
      region: 'word',
      storage_url: 'url',
      auth_token: 'secret',
      application_credential_id: 'text',
      application_credential_name: 'text',
      application_credential_secret: 'secret',
      auth_version: 'number',
      endpoint_type: 'word',
      storage_policy: 'word',
    },
    tuning: {
      ...COMMON,
      leave_parts_on_error: 'flag',
      chunk_size: 'amount',
      no_chunk: 'flag',
      no_large_objects: 'flag',
    },
  },
};

/**
 * Undefined for backends that only the configuration file may use. Names are rclone's own, compared
 * exactly.
 */
export function backendOf(type: string): Backend | undefined {
  return Object.hasOwn(BACKENDS, type) ? BACKENDS[type] : undefined;
}

export function kindOf(backend: Backend, option: string): ValueKind | undefined {
  if (Object.hasOwn(backend.place, option)) return backend.place[option];
  return Object.hasOwn(backend.tuning, option) ? backend.tuning[option] : undefined;
}

const FORM_TYPES: Partial<Record<ValueKind, ConnectionOption['type']>> = {
  pem: 'lines',
  number: 'integer',
  flag: 'boolean',
  off: 'boolean',
};

/** What a document over HTTP may set, for a form. */
export function optionsOf(type: string): readonly ConnectionOption[] {
  const { place = {}, tuning = {} } = backendOf(type) ?? {};
  return Object.entries({ ...place, ...tuning }).map(([name, kind]) => ({
    name,
    type: FORM_TYPES[kind] ?? 'string',
  }));
}

const LONGEST = {
  word: 512,
  text: 1_024,
  url: 2_048,
  secret: 4_096,
  pem: 16_384,
  number: 12,
  flag: 5,
  off: 5,
  amount: 32,
} as const;

const FORMS: Readonly<Record<ValueKind, { readonly pattern: RegExp; readonly wanted: string }>> = {
  text: { pattern: /^[^]*$/, wanted: 'a text' },
  secret: { pattern: /^[^]*$/, wanted: 'a text' },
  pem: { pattern: /^[^]*$/, wanted: 'a text' },
  word: { pattern: /^\S*$/, wanted: 'a text without blanks' },
  url: { pattern: /^(https?:\/\/\S+)?$/i, wanted: 'an address that begins with http:// or https://' },
  number: { pattern: /^-?\d+$/, wanted: 'a whole number' },
  flag: { pattern: /^(true|false|)$/i, wanted: 'true or false' },
  off: { pattern: /^false$/i, wanted: 'false' },
  amount: { pattern: /^[\w.-]*$/, wanted: 'a size, a number or a duration' },
};

/** What is wrong with a value that came over HTTP, as the end of a sentence; undefined when it is fine. */
export function valueProblem(kind: ValueKind, value: string | number | boolean): string | undefined {
  const text = String(value);
  if (text.length > LONGEST[kind]) return `is longer than ${LONGEST[kind]} characters`;
  // The lines of a key are joined; in any other value, a line break would start a new line of rclone's
  // configuration.
  const line = kind === 'pem' ? text.replaceAll(/\r?\n/g, '') : text;
  if (/[\x00-\x1f\x7f-\x9f\u2028\u2029]/.test(line)) return 'holds a control character';
  return FORMS[kind].pattern.test(text) ? undefined : `is not ${FORMS[kind].wanted}`;
}
