import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config, ShareSpec } from 'mountkeeper';
import { mountArguments } from '../../../../plugins/mount/rclone/arguments.ts';
import { schema } from '../../../../plugins/mount/config.ts';
import {
  createPlans,
  LeadsElsewhere,
  remoteIdentity,
  planMount,
  planReady,
  requireSamePlace,
} from '../../../../plugins/mount/lifecycle/mount-plan.ts';

const secrets = { resolve: (): string => 'clear' };
const config = {
  mount: schema.validate({}).value,
  cache: { dir: '/c', max_size: '0', max_age: '30d', min_free_space: '1G' },
} as unknown as Config;
const spec = (options: Record<string, unknown> = {}, share: Partial<ShareSpec['share']> = {}): ShareSpec => ({
  share: {
    name: 'photos',
    connection: 'nas',
    remote_path: 'p',
    mount_point: '/m/photos',
    read_only: false,
    protocols: [],
    ...share,
  },
  connection: {
    name: 'nas',
    type: 'sftp',
    options: { host: 'a', pass: 'secret-1', ...options },
  } as ShareSpec['connection'],
});
const plan = (one: ShareSpec, over: Config = config): ReturnType<typeof planMount> =>
  planMount(one, over, secrets);

describe('the plan of a mount', () => {
  it('changes its fingerprint with everything that rclone is given', () => {
    const prints = [
      plan(spec()),
      plan(spec({ pass: 'secret-2' })),
      plan(spec({ shell_type: 'none' })),
      plan(spec({}, { read_only: true })),
      plan(spec({}, { mount_point: '/n' })),
      plan(spec(), { ...config, cache: { ...config.cache, max_age: '1d' } }),
    ].map((one) => one.fingerprint);
    assert.equal(new Set(prints).size, prints.length);
    assert.equal(plan(spec()).fingerprint, plan(spec()).fingerprint);
  });

  it('is that of a daemon that did not know of programs on shares, unless they may be run', () => {
    const { exec: _exec, ...before } = spec({}, { exec: false }).share;
    assert.equal(plan(spec({}, { exec: false })).fingerprint, plan({ ...spec(), share: before }).fingerprint);
    assert.notEqual(plan(spec({}, { exec: true })).fingerprint, plan(spec()).fingerprint);
  });

  it('does not depend on where other builds of rclone come from, nor on when they are taken', () => {
    const other = {
      rclone_mirror: 'https://mirror.example.org',
      rclone_proxy: 'http://gate.example.org:3128',
      rclone_renew_after: '0',
    };
    const { fingerprint } = plan(spec(), {
      ...config,
      mount: { ...config.mount, ...other },
    });
    assert.equal(fingerprint, plan(spec()).fingerprint);
  });

  it('keeps its identity unless dirty files would go elsewhere', () => {
    const { identity } = plan(spec());
    assert.equal(
      plan(spec({ pass: 'other', shell_type: 'none' }, { read_only: true, mount_point: '/n' })).identity,
      identity,
    );
    for (const other of [spec({ host: 'b' }), spec({ port: 2202 }), spec({}, { remote_path: 'q' })])
      assert.notEqual(plan(other).identity, identity);
    assert.notEqual(plan(spec(), { ...config, cache: { ...config.cache, dir: '/d' } }).identity, identity);
  });

  const LEADING: readonly (readonly [string, string, string])[] = [
    ['ssh', 'ssh me@nas1', 'ssh me@nas2'],
    ['server_command', 'sudo sftp-server -d /one', 'sudo sftp-server -d /two'],
    ['subsystem', 'sftp', 'sftp-other'],
    ['unix_socket', '/run/one.sock', '/run/two.sock'],
    ['socks_proxy', 'one.lan:1080', 'two.lan:1080'],
    ['http_proxy', 'http://one.lan:3128', 'http://two.lan:3128'],
    ['library', 'one', 'two'],
    ['mountid', '1', '2'],
    ['satellite_address', 'one.example', 'two.example'],
    ['hostname', 'api.pcloud.com', 'eapi.pcloud.com'],
    ['connection_string', 'AccountName=one;AccountKey=k', 'AccountName=two;AccountKey=k'],
    ['sas_url', 'https://one.example/c?sig=1', 'https://two.example/c?sig=1'],
    ['profile', 'one', 'two'],
    ['impersonate', 'one@lan', 'two@lan'],
    ['shared_with_me', 'false', 'true'],
  ];
  for (const [option, one, other] of LEADING) {
    it(`changes its identity with ${option}, which says where the connection leads`, () => {
      const [first, second, without] = [spec({ [option]: one }), spec({ [option]: other }), spec()];
      assert.notEqual(plan(first).identity, plan(second).identity);
      assert.notEqual(remoteIdentity(first, secrets), remoteIdentity(second, secrets));
      assert.notEqual(plan(second).identity, plan(without).identity);
      assert.equal(plan(spec({ [option]: '' })).identity, plan(without).identity, 'left out');
    });
  }

  it('keeps its identity when a key is renewed that stands in the same value as the place', () => {
    for (const [option, one, renewed] of [
      ['sas_url', 'https://nas.example/c?sig=1&se=2', 'https://nas.example/c?sig=3&se=4'],
      ['connection_string', 'AccountName=a;AccountKey=1=;X=y', 'AccountName=a;AccountKey=2=;X=y'],
      ['connection_string', 'B=https://a/;SharedAccessSignature=1', 'B=https://a/;SharedAccessSignature=2'],
    ] as const)
      assert.equal(plan(spec({ [option]: one })).identity, plan(spec({ [option]: renewed })).identity, one);
  });

  it('is what it was for a connection without options that former versions left out', () => {
    // As caches on disks of users are marked.
    const [PLACE, IDENTITY] = ['b1bd477c994836e8ca465ac76cd98849', '9d7a89142dfd1ad537a1cee5af70632d'];
    assert.equal(remoteIdentity(spec(), secrets), PLACE);
    assert.equal(plan(spec()).identity, IDENTITY);
    const plans = createPlans(() => config, secrets);
    assert.equal(plans.of(spec()).lesser, undefined);
    const { lesser, mount, place } = plans.of(spec({ ssh: 'ssh me@nas1' }));
    assert.deepEqual([lesser?.place, lesser?.mount.identity], [PLACE, IDENTITY]);
    assert.notEqual(lesser?.mount.fingerprint, mount.fingerprint);
    assert.notEqual(lesser?.place, place);
  });

  it('refuses what is handed to rclone where a secret leads elsewhere by now', () => {
    const one = spec({ pass: { file: '/pass' }, host: { file: '/host' } });
    const made = { plan: plan(one), cacheDir: '/c/photos' };
    const clear = (changes: Record<string, string>): Map<string, string> =>
      new Map(Object.entries({ host: 'clear', pass: 'clear', ...changes }));
    requireSamePlace(one, clear({}), made);
    requireSamePlace(one, clear({ pass: 'another', chunk_size: '1M' }), made);
    for (const changes of [{ host: 'other' }, { ssh: 'ssh me@nas2' }, { port: '23' }])
      assert.throws(() => requireSamePlace(one, clear(changes), made), LeadsElsewhere);
  });

  it('marks a cache by the place alone: it may be moved to another folder', () => {
    const place = remoteIdentity(spec(), secrets);
    assert.equal(remoteIdentity(spec({ pass: 'other' }, { mount_point: '/n' }), secrets), place);
    for (const other of [
      spec({ host: 'b' }),
      spec({ port: 2202 }),
      spec({ user: 'u' }),
      spec({}, { remote_path: 'q' }),
    ])
      assert.notEqual(remoteIdentity(other, secrets), place);
  });

  it('names the same place while a secret of the connection is missing', () => {
    const missing = {
      resolve: (): string => {
        throw new Error('X is not set');
      },
    };
    assert.equal(
      remoteIdentity(spec({ pass: { env: 'X' } }), missing),
      remoteIdentity(spec({ pass: { env: 'X' } }), secrets),
    );
  });

  it('shows no secret', () => {
    assert.doesNotMatch(JSON.stringify(plan(spec())), /secret-1/);
  });

  it('can be made while a secret is missing', () => {
    const missing = {
      resolve: (): string => {
        throw new Error('X is not set');
      },
    };
    assert.ok(planMount(spec({ pass: { env: 'X' } }), config, missing).fingerprint);
  });
});

describe('the plans of shares', () => {
  it('are worked out once for each configuration, secrets included, and anew for each mount', () => {
    let reads = 0;
    let now = config;
    const counting = { resolve: (): string => `clear-${(reads += 1)}` };
    const plans = createPlans(() => now, counting);
    const one = spec({ pass: { env: 'X' } });
    const first = plans.of(one);
    const after = reads;
    assert.equal(plans.of(one), first);
    assert.equal(reads, after, 'no secret was read again');
    now = { ...config };
    const second = plans.of(one);
    assert.notEqual(second.mount.fingerprint, first.mount.fingerprint);
    assert.equal(second.place, first.place);
    const renewed = plans.renewed(one);
    assert.notEqual(renewed.mount.fingerprint, second.mount.fingerprint);
    assert.equal(plans.of(one), renewed);
    assert.notEqual(plans.of({ ...one, connection: { ...one.connection } }), renewed);
  });

  it('are those of the settings by which a share is mounted, when these changed while its cache was made ready', () => {
    let now = config;
    const plans = createPlans(() => now, secrets);
    const { place } = plans.renewed(spec());
    const ready = (): ReturnType<typeof planReady> =>
      planReady(spec(), { place, cacheDir: '/c/photos' }, { plans, config: () => now });
    now = { ...config, cache: { ...config.cache, max_age: '1d' } };
    assert.equal(ready().fingerprint, plan(spec(), now).fingerprint);
    now = { ...config, cache: { ...config.cache, dir: '/d' } };
    assert.throws(() => ready(), /settings changed while the cache was made ready/);
  });
});

describe('the arguments of rclone', () => {
  const around = {
    configFile: '/s/photos.conf',
    cacheDir: '/c/photos',
    rcAddress: '127.0.0.1:5',
    allowOther: true,
    uid: 0,
    gid: 0,
  };

  it('have the cache counted every 15 s, so that the status is no older', () => {
    assert.ok(mountArguments(spec(), config, around).includes('--vfs-cache-poll-interval=15s'));
  });

  it('limit the cache and keep room free as the configuration says', () => {
    const limited = { ...config, cache: { ...config.cache, max_size: '5k' } };
    assert.ok(mountArguments(spec(), config, around).includes('--vfs-cache-max-size=off'));
    assert.ok(mountArguments(spec(), limited, around).includes('--vfs-cache-max-size=5120B'));
    assert.ok(
      mountArguments(spec(), limited, { ...around, isWritable: true }).includes('--vfs-cache-max-size=3840B'),
      'what users write has the rest',
    );
    assert.ok(mountArguments(spec(), config, around).includes('--vfs-cache-min-free-space=1073741824B'));
  });

  it('let rclone only read', () => {
    for (const isLower of [false, true])
      assert.ok(mountArguments(spec(), config, { ...around, isLower }).includes('--read-only'));
  });

  it('hold no option of the connection', () => {
    assert.doesNotMatch(mountArguments(spec(), config, around).join(' '), /secret|host/);
  });
});
