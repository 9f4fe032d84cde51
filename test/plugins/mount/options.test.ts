import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import type { Config } from 'mountkeeper';
import { complete } from '../../../plugins/mount/config.ts';
import { connectionProblems, parseProviders } from '../../../plugins/mount/providers.ts';
import { callsIn, flagsIn } from '../../../plugins/mount/rclone.ts';
import { isPasswordOption } from '../../../plugins/mount/secret-options.ts';
import { HARMLESS, harmlessOptions, isHarmlessOption } from '../../../plugins/mount/shown-options.ts';
import { checkUntrusted } from '../../../plugins/mount/untrusted.ts';
import { currentRclone } from '../../support/rclones.ts';

const providers = parseProviders(JSON.stringify([
  { Name: 'sftp', Prefix: 'sftp', Options: [{ Name: 'host', Sensitive: true }, { Name: 'pass', IsPassword: true }, { Name: 'ssh' }] },
  { Name: 'google cloud storage', Prefix: 'gcs', Options: [] },
]));

function config(options: Record<string, unknown>, mount: Partial<Config['mount']> = {}): Config {
  return {
    mount: { root: '/mnt/mk/', rclone: 'rclone', ...mount },
    connections: [{ name: 'nas', type: 'sftp', options }],
    shares: [{ name: '照片', connection: 'nas', remote_path: 'p', mount_point: '' }],
  } as unknown as Config;
}

describe('connection options', () => {
  it('are compared with what the installed rclone takes, with a suggestion', () => {
    assert.deepEqual(connectionProblems(providers, 'sftp', ['host', 'pass']), []);
    assert.match(connectionProblems(providers, 'sfpt', [])[0]?.message ?? '', /did you mean "sftp"/);
    assert.match(connectionProblems(providers, 'sftp', ['hots'])[0]?.message ?? '', /did you mean "host"/);
    assert.deepEqual(connectionProblems(providers, 'gcs', []), []);
  });

  it('are shown only where they are known to be harmless', () => {
    const shown = (type: string, options: Record<string, unknown>): readonly string[] =>
      harmlessOptions({ connections: [{ name: 'nas', type, options }] } as unknown as Config).map((path) => path.replace('connections[0].options.', ''));
    const options = { host: 'h', port: 22, user: 'u', pass: 'x', key_pem: 'x', key_file: '/k', ssh: 'ssh -p', set_env: 'A=b', md5sum_command: 'x', '2fa': 123 };
    assert.deepEqual(shown('sftp', options), ['host', 'port', 'user', 'key_file']);
    assert.deepEqual(shown('http', { url: 'https://h/', headers: 'Cookie,geheim' }), ['url']);
    assert.deepEqual(shown('azureblob', { account: 'a', key: 'k', sas_url: 'https://h/?sig=s', connection_string: 'x', chunk_size: '4M' }), ['chunk_size']);
    assert.deepEqual(shown('storj', { access_grant: 'x', satellite_address: 'y' }), []);
    assert.deepEqual(shown('s3', { provider: 'AWS', region: 'r', endpoint: 'e', access_key_id: 'x', session_token: 'x' }), ['provider', 'region', 'endpoint']);
    assert.deepEqual(shown('no such backend', { host: 'h', user: 'u', use_it: 'true' }), ['use_it']);
  });

  it('are hidden where an address or a connection string may carry a password', () => {
    const isShown = (type: string, name: string, value: string): boolean => isHarmlessOption(type, name, value);
    for (const url of ['https://u:p@h/', 'https://token@h/', 'https://h/?sig=x', 'https://h/#x', 'h/x?y']) assert.ok(!isShown('webdav', 'url', url), url);
    assert.ok(isShown('webdav', 'url', 'https://h:8443/dav/files/me'));
    assert.ok(!isShown('crypt', 'remote', ':sftp,host=a,pass=b:p') && isShown('crypt', 'remote', 'other:folder'));
    assert.ok(!isShown('union', 'upstreams', 'a:x :sftp,pass=b:p') && isShown('union', 'upstreams', 'a:x b:y'));
    assert.ok(!isShown('ftp', 'socks_proxy', 'u:p@h:1080') && isShown('ftp', 'socks_proxy', 'h:1080'));
  });

  it('that are shown are none that an installed rclone calls a password', () => {
    const commands = new Set(['rclone', currentRclone() ?? 'rclone']);
    const told = [...commands].flatMap((command) => parseProviders(execFileSync(command, ['config', 'providers'], { encoding: 'utf8', maxBuffer: 64 * 1_048_576 })));
    // Who and where, which rclone counts as sensitive, so that nobody pastes it into a forum.
    const named = new Set(['host', 'namenode', 'user', 'username', 'domain', 'spn', 'url', 'tenant', 'tenant_domain']);
    for (const [type, names] of HARMLESS) {
      const options = told.filter(({ types }) => types.includes(type)).flatMap((provider) => provider.options);
      assert.ok(options.length > 0, type);
      const risky = options.filter(({ name, isPassword, isSensitive }) => names.has(name) && (isPassword || (isSensitive && !named.has(name))));
      assert.deepEqual(risky.map(({ name }) => name), [], type);
    }
  });

  it('are obscured when the installed rclone marks them as passwords', () => {
    assert.ok(isPasswordOption(providers, 'sftp', 'pass'));
    assert.ok(!isPasswordOption(providers, 'sftp', 'host'));
    assert.ok(isPasswordOption(undefined, 'sftp', 'pass'));
  });
});

describe('a document over HTTP', () => {
  const refused = (next: Config, current = config({ host: 'a' })): readonly string[] => checkUntrusted(next, current).map((problem) => problem.path ?? '');

  it('brings in no option that runs a program', () => {
    for (const name of ['ssh', 'server_command', 'bearer_token_command', 'password_command', 'md5sum_command', 'sha1sum_command', 'metadata_mapper', 'ssh_command', 'SSH']) {
      assert.deepEqual(refused(config({ [name]: 'touch /tmp/x' })), [`connections[0].options.${name}`], name);
    }
  });

  it('hides none in a connection string', () => {
    for (const value of [':sftp,ssh="touch /tmp/x":', ':sftp,host=a,sftp-ssh=x:', 'a: :webdav,bearer_token_command=x:', ':crypt,remote=":sftp,ssh=x:":', ':sftp, SSH =x:']) {
      assert.deepEqual(refused(config({ remote: value })), ['connections[0].options.remote'], value);
      assert.deepEqual(refused(config({ upstreams: `a:/x ${value}` })), ['connections[0].options.upstreams'], value);
    }
  });

  it('hides none behind a reference, which may lead to another text by the time it is read', () => {
    for (const name of ['remote', 'upstreams']) assert.deepEqual(refused(config({ [name]: { file: '/tmp/x' } })), [`connections[0].options.${name}`], name);
    assert.deepEqual(refused(config({ remote: { file: '/b' } }), config({ remote: { file: '/a' } })), ['connections[0].options.remote']);
    assert.deepEqual(refused(config({ remote: { file: '/a' }, pass: { env: 'X' } }), config({ remote: { file: '/a' } })), []);
  });

  it('changes neither the program nor an option that names one', () => {
    assert.deepEqual(refused(config({}, { rclone: '/tmp/evil' })), ['mount.rclone']);
    assert.deepEqual(refused(config({ ssh: 'b' }), config({ ssh: 'a' })), ['connections[0].options.ssh']);
  });

  it('keeps what the file on disk had, and takes harmless changes', () => {
    assert.deepEqual(refused(config({ ssh: 'a', host: 'b' }), config({ ssh: 'a', host: 'a' })), []);
    assert.deepEqual(refused(config({ host: 'a', ciphers: 'x', remote: 'other:path' })), []);
  });
});

describe('defaults of a document', () => {
  it('mount shares below the root', () => {
    const document = config({});
    complete(document);
    assert.equal(document.shares[0]?.mount_point, '/mnt/mk/照片');
  });
});

describe('the installed rclone\'s own tables', () => {
  it('name its flags, without those that prose mentions', () => {
    assert.deepEqual(flagsIn('Use --daemon to…\n      --vfs-refresh     Refresh\n  -o, --option string   Opt\n  see --other\n'), ['vfs-refresh', 'option']);
  });
  it('name its calls', () => {
    assert.deepEqual(callsIn('{"commands":[{"Path":"vfs/queue"},{}]}'), ['vfs/queue']);
  });
});
