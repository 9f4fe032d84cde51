import assert from 'node:assert/strict';
import { hostname, networkInterfaces } from 'node:os';
import { describe, it } from 'node:test';
import type { Config, ConnectionConfig, ShareConfig } from 'mountkeeper';
import { checkUntrusted } from '../../../../plugins/mount/options/untrusted-options.ts';

type Options = Record<string, unknown>;
const PASS = { pass: 'known' };

function connection(type: string, options: Options = {}, name = 'nas'): ConnectionConfig {
  return { name, type, options } as ConnectionConfig;
}

function share(changes: Partial<ShareConfig> = {}): ShareConfig {
  return {
    name: 'photos',
    connection: 'nas',
    remote_path: 'p',
    mount_point: '/mnt/mk/photos',
    read_only: false,
    protocols: [],
    ...changes,
  };
}

function config(connections: readonly ConnectionConfig[], shares: readonly ShareConfig[] = []): Config {
  return { mount: { root: '/mnt/mk' }, connections, shares } as unknown as Config;
}

const paths = (next: Config, current: Config): readonly string[] =>
  checkUntrusted(next, current).map(({ path }) => path ?? '');
const refused = (next: ConnectionConfig, ...current: ConnectionConfig[]): readonly string[] =>
  paths(config([next]), config(current));

describe('a connection of the file', () => {
  const local = connection('local', { nounc: true });
  const keyed = connection('sftp', {
    host: 'a',
    user: 'u',
    key_file: '/k',
    known_hosts_file: '/h',
    concurrency: 4,
  });
  const referring = connection('sftp', { host: 'a', pass: { file: '/s' } });
  const plain = connection('sftp', { host: 'a', pass: 'known' });
  const over = ({ name, type, options }: ConnectionConfig, changes: Options): ConnectionConfig =>
    connection(type, { ...options, ...changes }, name);

  it('passes as it is, and may go', () => {
    for (const one of [local, keyed, referring, plain]) {
      assert.deepEqual(refused(structuredClone(one), one), []);
      assert.deepEqual(paths(config([]), config([one])), []);
    }
  });

  it('that holds nothing of this machine may be changed like a new one', () => {
    assert.deepEqual(refused(over(plain, { host: 'b', user: 'v', ciphers: 'x' }), plain), []);
    assert.deepEqual(refused(connection('webdav', { url: 'https://b/' }), plain), []);
    assert.deepEqual(refused(over(plain, { ssh: 'x' }), plain), ['connections[0].options.ssh']);
    assert.deepEqual(refused(connection('local'), plain), ['connections[0].type']);
  });

  it('that does stays where it leads: no secret of the file and no key is used with another machine', () => {
    for (const one of [keyed, referring]) {
      assert.deepEqual(refused(over(one, { host: 'evil' }), one), ['connections[0].options.host']);
      assert.deepEqual(refused(over(one, { port: 2222, user: 'x' }), one).toSorted(), [
        'connections[0].options.port',
        'connections[0].options.user',
      ]);
      assert.deepEqual(refused(over(one, { use_insecure_cipher: true }), one), [
        'connections[0].options.use_insecure_cipher',
      ]);
      assert.deepEqual(refused({ ...one, type: 'ftp' }, one), ['connections[0].type']);
    }
    assert.deepEqual(refused(over(referring, { pass: 'literal' }), referring), [
      'connections[0].options.pass',
    ]);
    assert.deepEqual(refused(over(keyed, { key_file: '/other' }), keyed), [
      'connections[0].options.key_file',
    ]);
  });

  it('that does loses nothing that guards it', () => {
    const { known_hosts_file: _gone, ...rest } = keyed.options;
    assert.deepEqual(refused({ ...keyed, options: rest } as ConnectionConfig, keyed), [
      'connections[0].options.known_hosts_file',
    ]);
  });

  it('that does says nothing else to a shell of the remote', () => {
    for (const changes of [{ path_override: '$(id)' }, { shell_type: 'cmd' }, { hashes: 'md5' }])
      assert.deepEqual(refused(over(keyed, changes), keyed), [
        `connections[0].options.${Object.keys(changes)[0]}`,
      ]);
  });

  it('that does may be tuned', () => {
    assert.deepEqual(refused(over(keyed, { concurrency: 8, idle_timeout: '5m' }), keyed), []);
    const { concurrency: _gone, ...rest } = keyed.options;
    assert.deepEqual(refused({ ...keyed, options: rest } as ConnectionConfig, keyed), []);
    assert.deepEqual(refused(over(keyed, { idle_timeout: 'x\ny' }), keyed), [
      'connections[0].options.idle_timeout',
    ]);
    assert.deepEqual(refused(over(local, { nounc: false }), local), ['connections[0].options.nounc']);
  });

  it('does not lend what it holds to another name', () => {
    for (const one of [local, keyed, referring])
      assert.notDeepEqual(refused({ ...one, name: 'other' }, one), []);
  });
});

describe('a share over HTTP', () => {
  const disk = connection('local', {}, 'disk');
  const nas = connection('sftp', PASS);
  const shares = (
    next: readonly ShareConfig[],
    current: readonly ShareConfig[] = [share()],
  ): readonly string[] => paths(config([nas, disk], next), config([nas, disk], current));

  it('is mounted below the root of mounts, or where the file has it', () => {
    assert.deepEqual(
      shares([
        share({ mount_point: '/mnt/mk/deep/er' }),
        share({ name: 'new', mount_point: '/mnt/mk/new/' }),
      ]),
      [],
    );
    for (const at of [
      '/etc',
      '/mnt/mk',
      '/mnt/mk/',
      '/mnt/mkx/a',
      '/mnt/mk/../x',
      '/mnt/mk/a\nb',
      `/mnt/mk/${'x'.repeat(5_000)}`,
      '',
    ]) {
      assert.deepEqual(shares([share({ mount_point: at })]), ['shares[0].mount_point'], at);
    }
    const outside = share({ mount_point: '/srv/photos' });
    assert.deepEqual(shares([outside], [outside]), []);
    assert.deepEqual(
      shares([{ ...outside, name: 'other' }], [outside]),
      ['shares[0].mount_point'],
      'a place is not handed on',
    );
  });

  it('names a path, no other remote', () => {
    for (const path of [
      ':sftp,ssh="touch x":',
      ':local:/',
      'a,ssh=x:b',
      '/p, sftp_ssh = x:',
      'x'.repeat(5_000),
    ])
      assert.deepEqual(shares([share({ remote_path: path })]), ['shares[0].remote_path'], path);
    for (const path of ['', '/volume1/Müller: Bilder', 'a,b', '2024 = gut, sehr', 'a:b'])
      assert.deepEqual(shares([share({ remote_path: path })]), [], path);
    assert.deepEqual(shares([share({ remote_path: ':x:' })], [share({ remote_path: ':x:' })]), []);
  });

  it('on the disk of this machine stays as the file says', () => {
    const there = share({ connection: 'disk', remote_path: '/srv', read_only: true });
    assert.deepEqual(shares([there], [there]), []);
    assert.deepEqual(shares([{ ...there, protocols: ['smb'], mount_point: '/mnt/mk/b' }], [there]), []);
    assert.deepEqual(shares([{ ...there, read_only: true }], [{ ...there, read_only: false }]), []);
    for (const changed of [
      { ...there, remote_path: '/' },
      { ...there, read_only: false },
      { ...there, name: 'other' },
    ])
      assert.deepEqual(shares([changed], [there]), ['shares[0]'], JSON.stringify(changed));
    assert.deepEqual(shares([share({ connection: 'disk' })]), ['shares[0]'], 'no share is led there');
    assert.deepEqual(shares([{ ...there, connection: 'nas' }], [there]), [], 'it may be led away');
  });

  it("on this machine's own server, with a key of the file, stays as the file says, too", () => {
    const nasWith = (options: Options): ConnectionConfig =>
      connection('sftp', { user: 'root', key_file: '/k', ...options });
    const [address = ''] = Object.values(networkInterfaces()).flatMap((all = []) =>
      all.map((one) => one.address),
    );
    const added = (nasOfFile: ConnectionConfig): readonly string[] =>
      paths(config([nasOfFile], [share({ remote_path: '/etc' })]), config([nasOfFile]));
    for (const host of [
      'localhost',
      '127.0.0.1',
      '127.9.9.9',
      '::1',
      '0.0.0.0',
      'LOCALHOST.',
      hostname(),
      address,
    ])
      assert.deepEqual(added(nasWith({ host })), ['shares[0]'], host);
    for (const detour of [{ ssh: 'ssh me@nas' }, { socks_proxy: 'nas:1080' }])
      assert.deepEqual(added(nasWith({ host: 'nas.example', ...detour })), ['shares[0]']);
    assert.deepEqual(
      added(connection('webdav', { url: 'http://localhost:81/x', bearer_token_command: 'x' })),
      ['shares[0]'],
    );
    assert.deepEqual(added(connection('webdav', { url: 'http://nas.example', unix_socket: '/run/x' })), [
      'shares[0]',
    ]);
    assert.deepEqual(
      added(nasWith({ host: 'nas.example' })),
      [],
      "the NAS's own rights say what is shown there",
    );
    assert.deepEqual(
      added(connection('sftp', { host: '127.0.0.1', pass: 'known' })),
      [],
      'whoever knows the password',
    );
    const there = share({ remote_path: '/srv', read_only: true });
    const here = nasWith({ host: '127.0.0.1' });
    for (const changed of [
      { ...there, read_only: false },
      { ...there, remote_path: '/' },
    ])
      assert.deepEqual(paths(config([here], [changed]), config([here], [there])), ['shares[0]']);
    assert.deepEqual(paths(config([here], [{ ...there, protocols: ['smb'] }]), config([here], [there])), []);
  });

  it('from which programs may be run leads where the file says', () => {
    const trusted = share({ exec: true });
    const moved = (
      next: readonly ConnectionConfig[],
      changes: Partial<ShareConfig> = {},
    ): readonly string[] => paths(config(next, [{ ...trusted, ...changes }]), config([nas, disk], [trusted]));
    assert.deepEqual(moved([nas, disk]), []);
    assert.deepEqual(moved([nas, disk], { read_only: true }), []);
    assert.deepEqual(moved([nas, disk], { remote_path: 'other' }), ['shares[0]']);
    assert.deepEqual(moved([nas, connection('sftp', PASS, 'b')], { connection: 'b' }), ['shares[0]']);
    assert.deepEqual(moved([connection('sftp', { ...PASS, host: 'evil' })]), ['shares[0]']);
    assert.deepEqual(moved([connection('sftp', { ...PASS, host: 'evil' })], { exec: false }), []);
  });
});
