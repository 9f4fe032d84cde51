import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Config } from 'mountkeeper';
import { complete, defaultRclone } from '../../../plugins/mount/config.ts';
import { connectionProblems, parseProviders } from '../../../plugins/mount/providers.ts';
import { tooOld } from '../../../plugins/mount/rclone.ts';
import { isPasswordOption, isSecretOption, secretPaths } from '../../../plugins/mount/secret-options.ts';

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

  it('are secret by what they hold, not by how they sound', () => {
    for (const name of ['pass', 'key_pem', 'secret_access_key', 'access_key_id', 'token', 'bearer_token', 'key', 'client_secret', 'service_account_credentials', 'key_file_pass']) assert.ok(isSecretOption(name), name);
    for (const name of ['host', 'user', 'key_file', 'token_url', 'key_use_agent', 'known_hosts_file', 'bearer_token_command', 'port', 'pubkey_file']) assert.ok(!isSecretOption(name), name);
  });

  it('show connection strings that carry passwords as secrets', () => {
    assert.deepEqual(secretPaths(config({ host: 'h', pass: 'x', remote: ':sftp,host=a,pass=b:p', root: { env: 'X' } })),
      ['connections[0].options.pass', 'connections[0].options.remote', 'connections[0].options.root']);
  });

  it('are obscured when the installed rclone marks them as passwords', () => {
    assert.ok(isPasswordOption(providers, 'sftp', 'pass'));
    assert.ok(!isPasswordOption(providers, 'sftp', 'host'));
    assert.ok(isPasswordOption(undefined, 'sftp', 'pass'));
  });
});

describe('defaults of a document', () => {
  it('mount shares below the root', () => {
    const document = config({});
    complete(document);
    assert.equal(document.shares[0]?.mount_point, '/mnt/mk/照片');
  });
});

describe('the installed rclone', () => {
  it('is refused below 1.70, with the sentence how to get a newer one', () => {
    for (const old of ['rclone v1.60.1-DEV', 'rclone v1.69.3', 'rclone v0.99.0']) {
      assert.match(tooOld(old) ?? '', /too old, Mountkeeper needs 1\.70 or later: run "npm run setup"/, old);
    }
    for (const fine of ['rclone v1.70.0', 'rclone v1.75.2', 'rclone v1.100.0-beta.8500.abc', 'rclone v2.0.0', 'rclone']) {
      assert.equal(tooOld(fine), undefined, fine);
    }
  });

  it('is the one that the environment names, else the one that the set-up fetched, else the one on the PATH', () => {
    const here = fileURLToPath(import.meta.url);
    assert.equal(defaultRclone({ MOUNTKEEPER_RCLONE: '/opt/rclone' }, here), '/opt/rclone');
    assert.equal(defaultRclone({ MOUNTKEEPER_RCLONE: '' }, here), here);
    assert.equal(defaultRclone({}, `${here}.none`), 'rclone');
  });
});
