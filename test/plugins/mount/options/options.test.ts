import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Config } from 'mountkeeper';
import { complete, defaultRclone } from '../../../../plugins/mount/config.ts';
import { connectionProblems, parseProviders } from '../../../../plugins/mount/options/providers.ts';
import { tooOld } from '../../../../plugins/mount/rclone/installed.ts';
import { isPasswordOption } from '../../../../plugins/mount/options/secret-options.ts';
import {
  HARMLESS,
  harmlessOptions,
  isHarmlessOption,
} from '../../../../plugins/mount/options/shown-options.ts';
import { currentRclone, nasRclone } from '../../../support/nas/rclone-binaries.ts';

const providers = parseProviders(
  JSON.stringify([
    {
      Name: 'sftp',
      Prefix: 'sftp',
      Options: [{ Name: 'host', Sensitive: true }, { Name: 'pass', IsPassword: true }, { Name: 'ssh' }],
    },
    { Name: 'google cloud storage', Prefix: 'gcs', Options: [] },
  ]),
);

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
      harmlessOptions({ connections: [{ name: 'nas', type, options }] } as unknown as Config).map((path) =>
        path.replace('connections[0].options.', ''),
      );
    const options = {
      host: 'h',
      port: 22,
      user: 'u',
      pass: 'x',
      key_pem: 'x',
      key_file: '/k',
      ssh: 'ssh -p',
      set_env: 'A=b',
      md5sum_command: 'x',
      '2fa': 123,
    };
    assert.deepEqual(shown('sftp', options), ['host', 'port', 'user', 'key_file']);
    assert.deepEqual(shown('http', { url: 'https://h/', headers: 'Cookie,geheim' }), ['url']);
    assert.deepEqual(
      shown('azureblob', {
        account: 'a',
        key: 'k',
        sas_url: 'https://h/?sig=s',
        connection_string: 'x',
        chunk_size: '4M',
      }),
      ['chunk_size'],
    );
    assert.deepEqual(shown('storj', { access_grant: 'x', satellite_address: 'y' }), []);
    assert.deepEqual(
      shown('s3', { provider: 'AWS', region: 'r', endpoint: 'e', access_key_id: 'x', session_token: 'x' }),
      ['provider', 'region', 'endpoint'],
    );
    assert.deepEqual(shown('no such backend', { host: 'h', user: 'u', use_it: 'true' }), ['use_it']);
  });

  it('are hidden where an address or a connection string may carry a password', () => {
    const isShown = (type: string, name: string, value: string): boolean =>
      isHarmlessOption(type, name, value);
    for (const url of ['https://u:p@h/', 'https://token@h/', 'https://h/?sig=x', 'https://h/#x', 'h/x?y'])
      assert.ok(!isShown('webdav', 'url', url), url);
    assert.ok(isShown('webdav', 'url', 'https://h:8443/dav/files/me'));
    assert.ok(
      !isShown('crypt', 'remote', ':sftp,host=a,pass=b:p') && isShown('crypt', 'remote', 'other:folder'),
    );
    assert.ok(
      !isShown('union', 'upstreams', 'a:x :sftp,pass=b:p') && isShown('union', 'upstreams', 'a:x b:y'),
    );
    assert.ok(!isShown('ftp', 'socks_proxy', 'u:p@h:1080') && isShown('ftp', 'socks_proxy', 'h:1080'));
  });

  it('that are shown are none that an installed rclone calls a password', () => {
    const commands = new Set([nasRclone(), currentRclone()]);
    const told = [...commands].flatMap((command) =>
      parseProviders(
        execFileSync(command, ['config', 'providers'], { encoding: 'utf8', maxBuffer: 64 * 1_048_576 }),
      ),
    );
    // Who and where, which rclone counts as sensitive, so that nobody pastes it into a forum.
    const named = new Set([
      'host',
      'namenode',
      'user',
      'username',
      'domain',
      'spn',
      'url',
      'tenant',
      'tenant_domain',
    ]);
    for (const [type, names] of HARMLESS) {
      const options = told
        .filter(({ types }) => types.includes(type))
        .flatMap((provider) => provider.options);
      assert.ok(options.length > 0, type);
      const risky = options.filter(
        ({ name, isPassword, isSensitive }) =>
          names.has(name) && (isPassword || (isSensitive && !named.has(name))),
      );
      assert.deepEqual(
        risky.map(({ name }) => name),
        [],
        type,
      );
    }
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
      assert.match(
        tooOld(old) ?? '',
        /too old, Mountkeeper needs 1\.70 or later: run "mountkeeper rclone install"/,
        old,
      );
    }
    for (const fine of [
      'rclone v1.70.0',
      'rclone v1.75.2',
      'rclone v1.100.0-beta.8500.abc',
      'rclone v2.0.0',
      'rclone',
    ]) {
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
