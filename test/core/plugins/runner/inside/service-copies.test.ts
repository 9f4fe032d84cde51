/** What a runner is shown of the daemon: plain data, without secrets; and what it is not. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { PluginContext } from '../../../../../core/contract/plugin.ts';
import type { ConfigService, Secrets } from '../../../../../core/contract/config.ts';
import type { SharesService } from '../../../../../core/contract/shares.ts';
import type { Snapshot, StatusService } from '../../../../../core/contract/status.ts';
import type { Declaration } from '../../../../../core/plugins/runner/carried/declaration.ts';
import { createServiceCopies } from '../../../../../core/plugins/runner/inside/service-copies.ts';
import type { Begin, DaemonSnapshot } from '../../../../../core/plugins/runner/protocol.ts';
import { daemonSnapshot } from '../../../../../core/plugins/runner/carried/daemon-snapshot.ts';
import { createClock } from '../../../../../core/platform/clock.ts';

const SECRET = 'hush';
const snapshot = (version: number): Snapshot => ({
  version,
  takenAt: 1,
  record: { shares: [{ name: 'files' }] } as never,
});

/** What the file says in the plugin's own section. */
const WRITTEN = {
  token: { file: '../token' },
  rooms: [{ name: 'roses', key: { env: 'GONE' } }],
  swapped: { env: 'OTHER' },
};

/** The section as the plugin has it: completed by its schema, which can say what it wants. */
const OWN_SECTION = {
  token: { file: '/etc/token' },
  // Its schema's own default, and one that it put in the place of what was written.
  spare: { file: '/etc/shadow' },
  swapped: { credential: 'nas-password' },
  rooms: [{ name: 'roses', key: { env: 'GONE' } }],
  word: 'plain',
};

/** As the daemon has them. */
const services: Readonly<Record<string, unknown>> = {
  status: { snapshot: snapshot(1), notices: [{ level: 'info', message: 'x' }] },
  shares: {
    list: () => [
      {
        spec: {
          share: { name: 'files', connection: 'nas', password: SECRET },
          connection: { name: 'nas', type: 'smb', options: { pass: SECRET } },
        },
        health: 'healthy',
        mount: { seal: () => undefined, secret: SECRET },
        remoteAnswers: true,
      },
    ],
  },
  secrets: {
    resolve: (secret: object) => {
      if ('env' in secret) throw new Error('the environment variable GONE is not set');
      return `content of ${JSON.stringify(secret)}`;
    },
  },
  config: {
    file: '/etc/keeper/mountkeeper.toml',
    current: { text: SECRET, config: { password: SECRET }, document: { plugins: { garden: WRITTEN } } },
    redacted: () => ({ password: '********' }),
  },
};

function shown(requires: readonly string[]): {
  readonly world: DaemonSnapshot;
  readonly lines: readonly string[];
  readonly copies: ReturnType<typeof createServiceCopies>;
} {
  const ctx = { config: OWN_SECTION, use: (name: string) => services[name] } as unknown as PluginContext;
  const declaration = { name: 'garden', requires, shareStatus: [] } as unknown as Declaration;
  const world = JSON.parse(JSON.stringify(daemonSnapshot(ctx, declaration))) as DaemonSnapshot;
  const lines: string[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) });
  const begin = { world, paths: { stateDir: '/none', packageDir: '/none' } } as unknown as Begin;
  return { world, lines, copies: createServiceCopies(begin, createClock(), log) };
}

describe('services in a process of its own', () => {
  it('show what the plugin requires, without any secret', () => {
    const { world, copies } = shown(['status', 'shares', 'config']);
    assert.ok(!JSON.stringify(world).includes(SECRET), JSON.stringify(world));
    const status = copies.service('status', 'garden') as StatusService;
    assert.deepEqual([status.snapshot.version, status.notices.length], [1, 1]);
    assert.throws(() => status.owners(), /"owners" of the service "status" cannot be carried/);
    const shares = copies.service('shares', 'garden') as SharesService;
    const [share] = shares.list();
    assert.deepEqual(
      [share?.spec.share.name, share?.health, share?.remoteAnswers],
      ['files', 'healthy', true],
    );
    assert.equal(share?.figures, undefined);
    assert.deepEqual([shares.get('files'), shares.get('other')], [share, undefined]);
    assert.throws(() => share?.mount, /"mount" of the service "shares" cannot be carried/);
    const config = copies.service('config', 'garden') as ConfigService;
    assert.deepEqual(config.current.config, { password: '********' });
    assert.throws(() => config.current.text, /cannot be carried/);
    assert.throws(() => config.apply({ text: '', origin: 'file' }), /cannot be carried/);
    assert.deepEqual(copies.shares, ['files']);
  });

  it('tell who listens of each new status, and go on when he throws', () => {
    const { copies, lines } = shown(['status']);
    const status = copies.service('status', 'garden') as StatusService;
    const heard: number[] = [];
    status.onPublish(() => {
      throw new Error('deaf');
    });
    const release = status.onPublish(({ version }) => void heard.push(version));
    copies.show({ snapshot: snapshot(2) });
    release();
    copies.show({ snapshot: snapshot(3) });
    assert.deepEqual([heard, status.snapshot.version], [[2], 3]);
    assert.equal(lines.filter((line) => line.includes('deaf')).length, 2);
  });

  it('resolve the secrets of its own section, and no others', () => {
    const { copies, world } = shown(['secrets']);
    const secrets = copies.service('secrets', 'garden') as Secrets;
    assert.equal(secrets.resolve({ file: '/etc/token' }), 'content of {"file":"/etc/token"}');
    assert.equal(secrets.resolve('as it is'), 'as it is');
    assert.throws(() => secrets.resolve({ env: 'GONE' }), /GONE is not set/);
    for (const foreign of [{ file: '/etc/shadow' }, { credential: 'nas-password' }, { env: 'OTHER' }])
      assert.throws(() => secrets.resolve(foreign), /does not stand in the plugin's own section/);
    assert.equal(world.secrets?.length, 2, 'what its schema says alone is never read');
  });

  it('are not there, with one line in the log, when they cannot be carried or were not required', () => {
    const { copies, lines, world } = shown([]);
    assert.deepEqual(world, {});
    for (const [name, why] of [
      ['processes', 'cannot be carried'],
      ['secrets', 'name it in requires'],
      ['status', 'name it in requires'],
      ['config', 'name it in requires'],
    ] as const) {
      assert.equal(copies.service(name, 'garden'), undefined, name);
      copies.service(name, 'garden');
      assert.equal(lines.filter((line) => line.includes(`"${name}"`) && line.includes(why)).length, 1, name);
    }
    assert.ok(copies.service('clock', 'garden'));
    assert.ok(copies.service('store', 'garden'));
  });
});
