import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { LiveShare, MetricFamily, ShareStatus } from 'mountkeeper';
import { emptyRecord, emptyShareStatus } from '../../support/shares/status-records.ts';
import metrics from '../../../plugins/metrics/index.ts';
import { render } from '../../../plugins/metrics/render.ts';
import { small } from '../../support/plugins/small-plugins.ts';
import { sharesOf } from '../../support/shares/fake-shares.ts';

interface Figures {
  readonly dirtyBytes?: number;
  readonly oldestDirtyAt?: number;
  readonly remoteAnswers?: boolean;
  readonly remoteTookMs?: number;
}

async function start(
  t: TestContext,
  shares: readonly (Partial<ShareStatus> & { name: string })[],
  figures: Readonly<Record<string, Figures>> = {},
  served: readonly string[] = ['smb', 'nfs'],
) {
  const record = {
    ...emptyRecord(1_000),
    allSynced: true,
    smbdRunning: true,
    shares: shares.map((share) => ({ ...emptyShareStatus(share.name), ...share })),
  };
  const status = {
    snapshot: { version: 7, takenAt: 5_000, record },
    syncedAgeMs: undefined,
    onPublish: () => () => undefined,
    owners: () => ({ daemon: new Map(), share: new Map() }),
    notices: [{ level: 'warning', message: 'm' } as const],
  };
  const live = Object.entries(figures).map(
    ([name, { remoteAnswers, remoteTookMs, ...stats }]) =>
      ({
        spec: { share: { name } },
        remoteAnswers,
        remoteTookMs,
        figures: { stats, takenAtMs: 0, tookMs: 12 },
      }) as unknown as LiveShare,
  );
  const stranger = small('garden', [], {
    declare: (ctx) =>
      ctx.metric({
        name: 'garden_beds',
        help: 'Beds of a "stranger".',
        labels: ['bed'],
        read: () => [{ value: 2, labels: { bed: 'a "b"\\c\nd' } }],
      }),
  });
  const host = await createTestHost({
    plugins: [metrics, stranger, ...served.map(serving)],
    services: { status, shares: sharesOf(() => live) },
  });
  t.after(() => host.close());
  const get = async (accept?: string) => {
    const answer = await host.inject({ url: '/metrics', headers: accept === undefined ? {} : { accept } });
    return { ...answer, lines: answer.payload.split('\n') as readonly string[] };
  };
  /** Values of one metric by the share that they are about. */
  const values = async (name: string): Promise<Record<string, number>> =>
    Object.fromEntries(
      (await get()).lines.flatMap((line) => {
        const [, share = '', value] =
          new RegExp(`^${name}\\{(?:[^}]*,)?share="([^"]*)"[^}]*\\} (\\S+)$`).exec(line) ?? [];
        return value === undefined ? [] : [[share, Number(value)]];
      }),
    );
  return { host, get, values };
}

/** Its exporter is on where its protocol is not webdav. */
const serving = (protocol: string) =>
  small(`serves-${protocol}`, [], {
    declare: (ctx) =>
      ctx.provide(`exporter:${protocol}`, () => ({
        isEnabled: protocol !== 'webdav',
        add: () => Promise.resolve(),
        remove: () => Promise.resolve(),
      })),
  });

async function promtoolCheck(text: string): Promise<string> {
  const child = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] });
  let said = '';
  child.stdout.on('data', (piece: Buffer) => (said += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => (said += piece.toString()));
  child.stdin.end(text);
  const [code] = (await once(child, 'close')) as [number | null];
  return `${String(code)}${said}`;
}

describe('/metrics', () => {
  it('has the figures of each share as the status has them', async (t) => {
    const { values } = await start(t, [
      {
        name: 'photos',
        mounted: true,
        health: 'healthy',
        cacheBytes: 500,
        dirtyCount: 2,
        erroredFiles: 1,
        speed: 2048,
        transfers: 3,
        errors: 4,
        warmupTotal: 9,
        warmupDone: 8,
        lastDirRefreshAt: 2_000,
      },
      // A default of null says no kind: while its plugin is off, another may give anything.
      { name: '照片', health: 'failed', lastDirRefreshAt: 'x' as never },
    ]);
    const expected = {
      mounted: 1,
      cache_bytes: 500,
      dirty_files: 2,
      errored_files: 1,
      transfer_bytes_per_second: 2048,
      transfers: 3,
      errors_total: 4,
      warmup_files: 9,
      warmup_done_files: 8,
    };
    for (const [name, value] of Object.entries(expected))
      assert.deepEqual(await values(`mountkeeper_share_${name}`), { photos: value, 照片: 0 }, name);
    assert.deepEqual(await values('mountkeeper_share_listing_refresh_timestamp_seconds'), { photos: 2 });
    assert.deepEqual(
      await values('mountkeeper_share_health'),
      { photos: 0, 照片: 1 },
      'the last of the four is failed',
    );
  });

  it('leaves out what is not known, and says 0 only where it is', async (t) => {
    const { values, host } = await start(
      t,
      [
        { name: 'known', dirtyCount: 1 },
        { name: 'unknown', dirtyCount: 1 },
        { name: 'clean' },
        { name: 'uncounted', isDirtyCountUnknown: true },
      ],
      {
        known: { dirtyBytes: 77, oldestDirtyAt: 0, remoteAnswers: true, remoteTookMs: 250 },
        unknown: {},
        clean: { dirtyBytes: 5, remoteAnswers: false },
      },
    );
    assert.deepEqual(await values('mountkeeper_share_dirty_files'), { known: 1, unknown: 1, clean: 0 });
    assert.deepEqual(await values('mountkeeper_share_dirty_bytes'), { known: 77, clean: 0 });
    assert.deepEqual(await values('mountkeeper_share_oldest_dirty_seconds'), {
      known: host.clock.now() / 1000,
      clean: 0,
    });
    assert.deepEqual(await values('mountkeeper_share_remote_up'), { known: 1, clean: 0 });
    assert.deepEqual(await values('mountkeeper_share_remote_check_seconds'), { known: 0.25 });
    assert.deepEqual(await values('mountkeeper_share_control_seconds'), {
      known: 0.012,
      unknown: 0.012,
      clean: 0.012,
    });
  });

  it('counts failures and heals from 0 on', async (t) => {
    const { host, values } = await start(t, [{ name: 'photos' }]);
    const change = (from: 'healthy' | 'failed', to: 'healthy' | 'failed') =>
      host.hooks.observe('shareHealthChanged', { share: 'photos', from, to, reason: null });
    await host.hooks.observe(
      'afterCycle',
      { version: 1, takenAt: 0, record: { ...emptyRecord(0), shares: [emptyShareStatus('photos')] } },
      30,
    );
    assert.deepEqual(
      [await values('mountkeeper_share_failures_total'), await values('mountkeeper_share_heals_total')],
      [{ photos: 0 }, { photos: 0 }],
    );
    await change('failed', 'healthy');
    await change('healthy', 'failed');
    await change('failed', 'healthy');
    assert.deepEqual(
      [await values('mountkeeper_share_failures_total'), await values('mountkeeper_share_heals_total')],
      [{ photos: 1 }, { photos: 1 }],
      'the first was no heal',
    );
  });

  it('measures cycles, and how late timers come', async (t) => {
    const { host, get } = await start(t, []);
    await host.hooks.observe('afterCycle', { version: 1, takenAt: 0, record: emptyRecord(0) }, 30);
    await host.advance(3_500);
    const { lines } = await get();
    for (const line of [
      'mountkeeper_cycle_seconds_bucket{le="0.025"} 0',
      'mountkeeper_cycle_seconds_bucket{le="0.05"} 1',
      'mountkeeper_cycle_seconds_sum 0.03',
      'mountkeeper_cycle_seconds_count 1',
    ])
      assert.ok(lines.includes(line), line);
    assert.match(
      lines.find((line) => line.startsWith('mountkeeper_event_loop_delay_seconds_count')) ?? '',
      / [23]$/,
    );
  });

  it('says of each protocol that is on whether it serves, and nothing of one that is off', async (t) => {
    const { get } = await start(t, [], {}, ['smb', 'nfs', 'webdav']);
    assert.deepEqual(
      (await get()).lines.filter((line) => line.startsWith('mountkeeper_server_up')),
      ['mountkeeper_server_up{protocol="smb"} 1', 'mountkeeper_server_up{protocol="nfs"} 0'],
    );
  });

  it("has what every plugin contributes, also a stranger's", async (t) => {
    const { get } = await start(t, []);
    assert.ok((await get()).lines.includes(String.raw`garden_beds{bed="a \"b\"\\c\nd"} 2`));
  });

  it('is clean to promtool, and OpenMetrics to those that ask for it', async (t) => {
    const { get } = await start(t, [{ name: 'photos' }, { name: 'a "b"' }], { photos: {} });
    const plain = await get();
    assert.equal(plain.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    assert.equal(await promtoolCheck(plain.payload), '0');
    assert.notEqual(
      await promtoolCheck('# TYPE a_total gauge\na_total 1\n'),
      '0',
      'promtool finds what is wrong',
    );
    const open = await get('application/openmetrics-text;version=1.0.0,text/plain;q=0.5');
    assert.match(open.headers['content-type'] ?? '', /^application\/openmetrics-text; version=1\.0\.0/);
    assert.ok(
      open.lines.includes('# TYPE mountkeeper_share_errors counter') &&
        open.lines.includes('mountkeeper_share_errors_total{share="photos"} 0'),
    );
    assert.ok(open.payload.endsWith('\n# EOF\n'));
  });

  it('has no label that a path could stand in', async (t) => {
    const { get } = await start(t, [{ name: 'photos' }], { photos: {} });
    const names = new Set(
      (await get()).lines.flatMap((line) => [...line.matchAll(/[{,]([a-z_]+)="/g)].map(([, name]) => name)),
    );
    assert.deepEqual(
      [...names].sort((a = '', b = '') => (a < b ? -1 : 1)),
      ['bed', 'direction', 'health', 'le', 'level', 'node', 'protocol', 'share', 'state'],
    );
  });

  it('is text of its own for each family that is rendered', async () => {
    const families: readonly MetricFamily[] = [
      { name: 'a_total', help: 'A.', type: 'counter', samples: [{ value: Number.NaN }] },
      { name: 'b', help: 'B.', type: 'gauge', samples: [{ value: Infinity }] },
    ];
    const { text } = await render(families, 'text', () => assert.fail('none is left out'));
    assert.equal(
      text,
      '# HELP a_total A.\n# TYPE a_total counter\na_total Nan\n\n# HELP b B.\n# TYPE b gauge\nb +Inf\n',
    );
  });

  it('serves the others where a family cannot be written, and names the plugin that gives it', async (t) => {
    const families: readonly MetricFamily[] = [
      { name: 'a_total', help: 'A.', type: 'counter', samples: [{ value: 1 }] },
      { name: 'constructor', help: 'B.', type: 'gauge', samples: [{ value: 2 }] },
      { name: 'a', help: 'C.', type: 'gauge', samples: [{ value: 3 }] },
      { name: 'd', help: 'D.', type: 'histogram', buckets: [1], samples: null as never },
    ];
    const left: string[] = [];
    const rendered = async (format: 'text' | 'openmetrics') =>
      (await render(families, format, (name) => left.push(name))).text;
    assert.equal(
      await rendered('text'),
      '# HELP a_total A.\n# TYPE a_total counter\na_total 1\n\n# HELP a C.\n# TYPE a gauge\na 3\n',
    );
    assert.equal(
      await rendered('openmetrics'),
      '# HELP a A.\n# TYPE a counter\na_total 1\n# EOF\n',
      'to OpenMetrics the counter and the gauge are one family',
    );
    assert.deepEqual(left, ['constructor', 'd', 'constructor', 'a', 'd']);

    const told: unknown[] = [];
    const broken = { read: () => families, leftOut: (name: string) => told.push(name) };
    const host = await createTestHost({
      plugins: [metrics],
      services: { metrics: broken, shares: sharesOf(() => []) },
    });
    t.after(() => host.close());
    const { statusCode, payload } = await host.inject('/metrics');
    assert.equal(statusCode, 200);
    assert.match(payload, /^a_total 1$/m);
    assert.deepEqual(told, ['constructor', 'd']);
  });
});
