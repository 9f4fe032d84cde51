import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config, ConnectionConfig } from 'mountkeeper';
import { BACKENDS } from '../../../../plugins/mount/options/backends.ts';
import { checkUntrusted } from '../../../../plugins/mount/options/untrusted-options.ts';

type Options = Record<string, unknown>;
const PASS = { pass: 'known' };

function connection(type: string, options: Options = {}, name = 'nas'): ConnectionConfig {
  return { name, type, options } as ConnectionConfig;
}

function config(connections: readonly ConnectionConfig[]): Config {
  return { mount: { root: '/mnt/mk' }, connections, shares: [] } as unknown as Config;
}

const paths = (next: Config, current: Config): readonly string[] =>
  checkUntrusted(next, current).map(({ path }) => path ?? '');
const refused = (next: ConnectionConfig, ...current: ConnectionConfig[]): readonly string[] =>
  paths(config([next]), config(current));

/**
 * What rclone 1.60 and 1.75 have beside what is taken: each names a file, a program, a socket, a variable
 * or another way out.
 */
const KEPT_OUT: Readonly<Record<string, readonly string[]>> = {
  sftp: [
    'key_file',
    'pubkey_file',
    'known_hosts_file',
    'key_use_agent',
    'ask_password',
    'md5sum_command',
    'sha1sum_command',
    'sha256sum_command',
    'crc32sum_command',
    'blake3sum_command',
    'xxh3sum_command',
    'xxh128sum_command',
    'subsystem',
    'server_command',
    'set_env',
    'ssh',
    'socks_proxy',
    'http_proxy',
  ],
  smb: ['use_kerberos', 'kerberos_ccache'],
  webdav: ['bearer_token_command', 'unix_socket'],
  ftp: ['ask_password', 'socks_proxy', 'http_proxy'],
  s3: [
    'shared_credentials_file',
    'profile',
    'role_arn',
    'sts_endpoint',
    'sdk_log_mode',
    'ibm_iam_endpoint',
    'download_url',
  ],
  b2: ['test_mode', 'download_url'],
};

describe('a connection over HTTP', () => {
  it('is of a kind that leads to another machine', () => {
    for (const type of [
      'local',
      'alias',
      'crypt',
      'union',
      'combine',
      'chunker',
      'compress',
      'cache',
      'hasher',
      'archive',
      'memory',
      'drive',
      'SFTP',
      'Local',
      '__proto__',
      'constructor',
    ]) {
      assert.deepEqual(refused(connection(type, { remote: '/' })), ['connections[0].type'], type);
    }
    for (const type of Object.keys(BACKENDS))
      assert.deepEqual(
        refused(connection(type, PASS)).filter((path) => path.endsWith('.type')),
        [],
        type,
      );
  });

  for (const [type, options] of Object.entries(KEPT_OUT)) {
    it(`of the type ${type} sets nothing that names what lies here`, () => {
      const fill = type === 'sftp' ? PASS : {};
      for (const option of options)
        for (const value of ['/tmp/x', true])
          assert.deepEqual(
            refused(connection(type, { ...fill, [option]: value })),
            [`connections[0].options.${option}`],
            option,
          );
    });
  }

  it('spells options as rclone does, to the letter', () => {
    for (const option of [
      'SSH',
      'sftp_ssh',
      'sftp-ssh',
      '--sftp-ssh',
      'override.ssh',
      'global.metadata_mapper',
      'ssh ',
      'key-file',
      'Host',
      '__proto__',
      'constructor',
      'toString',
      'metadata_mapper',
      'password_command',
    ]) {
      const options = Object.fromEntries([...Object.entries(PASS), [option, 'x']]);
      assert.deepEqual(
        refused(connection('sftp', options)).filter((path) => path !== `connections[0].options.${option}`),
        [],
        option,
      );
      assert.equal(refused(connection('sftp', options)).length, 1, option);
    }
  });

  it('takes no credentials from the machine', () => {
    assert.deepEqual(refused(connection('s3', { env_auth: true })), ['connections[0].options.env_auth']);
    assert.deepEqual(refused(connection('swift', { env_auth: 'TRUE' })), ['connections[0].options.env_auth']);
    assert.deepEqual(refused(connection('s3', { env_auth: false })), []);
    // rclone would ask the ssh-agent.
    assert.deepEqual(refused(connection('sftp', { host: 'h' })), ['connections[0].options']);
    assert.deepEqual(refused(connection('sftp', { host: 'h', pass: '', key_pem: '' })), [
      'connections[0].options',
    ]);
    assert.deepEqual(refused(connection('sftp', { host: 'h', key_pem: '-----BEGIN\nx\r\n' })), []);
  });

  it('has values of their kind, bounded and on one line', () => {
    const bad: readonly Options[] = [
      { host: 'a\nssh = x' },
      { host: 'a\rb' },
      { host: 'a\0b' },
      { user: 'a\u0085b' },
      { user: 'a\u2028b' },
      { user: 'x'.repeat(1_025) },
      { pass: 'x'.repeat(4_097) },
      { host: 'a b' },
      { port: '22; x' },
      { port: 2.5 },
      { disable_hashcheck: 'maybe' },
      { idle_timeout: '1m\tx' },
      { key_pem: 'a\x1bb' },
      { key_pem: 'x'.repeat(20_000) },
      { host: { env: 'PATH' } },
      { pass: { file: '/etc/shadow' } },
    ];
    for (const options of bad)
      assert.deepEqual(
        refused(connection('sftp', { ...PASS, ...options })),
        [`connections[0].options.${Object.keys(options)[0]}`],
        JSON.stringify(options).slice(0, 60),
      );
    for (const url of ['file:///etc/passwd', '/tmp/sock', 'unix:///x', 'http://a b', 'javascript:x'])
      assert.deepEqual(refused(connection('webdav', { url })), ['connections[0].options.url'], url);
    const good: Options = {
      host: 'nas',
      port: '22',
      user: 'a b',
      shell_type: 'none',
      idle_timeout: '1m0s',
      concurrency: 4,
      disable_hashcheck: 'true',
      skip_links: false,
    };
    assert.deepEqual(refused(connection('sftp', { ...PASS, ...good })), []);
  });

  it('is told where it may stand', () => {
    assert.match(
      checkUntrusted(config([connection('local')]), config([]))[0]?.message ?? '',
      /; it may stand in the configuration file, written by somebody with a shell$/,
    );
  });
});
