import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { createManualClock, createTestHost } from 'mountkeeper/testing';
import type { TestHostOptions } from 'mountkeeper/testing';
import type { ShareStatus, StatusRecord } from 'mountkeeper';
import { emptyRecord, emptyShareStatus } from '../../support/shares/status-records.ts';
import { CacheFills } from '../../../core/sdk/cache-fills.ts';
import { FillLevels } from '../../../plugins/supervisor-log/fill-levels.ts';
import supervisorLog from '../../../plugins/supervisor-log/index.ts';

interface Line {
  readonly level: number;
  readonly event?: string;
  readonly [field: string]: unknown;
}

const [INFO, WARN] = [30, 40];

async function start(
  t: TestContext,
  cache: object = { max_size: '1000B' },
  services: TestHostOptions['services'] = {},
) {
  const lines: Line[] = [];
  const log = pino(
    { base: null, timestamp: false },
    { write: (text: string) => void lines.push(JSON.parse(text) as Line) },
  );
  let record: StatusRecord = emptyRecord(0);
  const status = {
    get snapshot() {
      return { version: 1, takenAt: 0, record };
    },
    onPublish: () => () => undefined,
    notices: [],
    syncedAgeMs: undefined,
    owners: () => ({ daemon: new Map(), share: new Map() }),
  };
  const host = await createTestHost({
    plugins: [supervisorLog],
    config: { cache },
    services: { status, ...services },
    log,
  });
  t.after(() => host.close());
  /** One cycle of the supervisor with these figures; the events it brought. */
  const cycle = async (...shares: readonly (Partial<ShareStatus> & { name: string })[]): Promise<Line[]> => {
    record = {
      ...emptyRecord(0),
      shares: shares.map((share) => ({ ...emptyShareStatus(share.name), ...share })),
    };
    lines.length = 0;
    await host.hooks.observe('afterCycle', status.snapshot);
    return lines.filter(({ event }) => event !== undefined).map((line) => ({ ...line }));
  };
  return { host, lines, cycle };
}

const events = (lines: readonly Line[]): (string | undefined)[] => lines.map(({ event }) => event);

describe("the supervisor's log", () => {
  it('has a line for each share every 60 s', async (t) => {
    const { host, lines, cycle } = await start(t);
    await cycle(
      { name: 'photos', health: 'healthy', cacheBytes: 500, speed: 2048, transfers: 2 },
      { name: '照片', health: 'failed', healthMessage: 'away' },
    );
    lines.length = 0;
    await host.advance(59_000);
    assert.deepEqual(events(lines), []);
    await host.advance(2_000);
    assert.deepEqual(
      lines.map((line) => ({ ...line, plugin: undefined })),
      [
        {
          level: INFO,
          event: 'stats.snapshot',
          share: 'photos',
          health: 'healthy',
          cache: '500 B',
          cachePercent: 50,
          dirty: 0,
          errored: 0,
          speed: '2.0 KiB/s',
          transfers: 2,
          errors: 0,
          msg: 'share',
          plugin: undefined,
        },
        {
          level: INFO,
          event: 'stats.snapshot',
          share: '照片',
          health: 'failed',
          cache: '0 B',
          dirty: 0,
          errored: 0,
          speed: '0 B/s',
          transfers: 0,
          errors: 0,
          trouble: 'away',
          msg: 'share',
          plugin: undefined,
        },
      ],
    );
    await host.advance(60_000);
    assert.equal(lines.length, 4);
  });

  it('warns once when a cache passes 80 and 95 %, and again only after it was 5 points below', async (t) => {
    const { cycle } = await start(t);
    const at = async (cacheBytes: number): Promise<(string | undefined)[]> =>
      events(await cycle({ name: 'photos', cacheBytes }));
    assert.deepEqual(await at(799), []);
    const passed = (await cycle({ name: 'photos', cacheBytes: 800 })).map(
      ({ level, event, share, percent, used, limit }) => [level, event, share, percent, used, limit],
    );
    assert.deepEqual(passed, [[WARN, 'cache.above-80', 'photos', 80, '800 B', '1000 B']]);
    for (const quiet of [820, 799, 760, 801]) assert.deepEqual(await at(quiet), [], String(quiet));
    assert.deepEqual(await at(960), ['cache.above-95']);
    for (const quiet of [940, 901, 999]) assert.deepEqual(await at(quiet), [], String(quiet));
    assert.deepEqual(await at(700), ['cache.below-80', 'cache.below-95']);
    assert.deepEqual(await at(990), ['cache.above-80', 'cache.above-95']);
  });

  it('warns once over a restart, too', async (t) => {
    const paths = { stateDir: await mkdtemp(join(tmpdir(), 'mk-supervisor-log-')), packageDir: '' };
    t.after(() => rm(paths.stateDir, { recursive: true, maxRetries: 5 }));
    const former = await start(t, { max_size: '1000B' }, { paths });
    assert.deepEqual(events(await former.cycle({ name: 'photos', cacheBytes: 850 })), ['cache.above-80']);
    await former.host.close();
    const next = await start(t, { max_size: '1000B' }, { paths });
    assert.deepEqual(events(await next.cycle({ name: 'photos', cacheBytes: 0 })), []);
    assert.deepEqual(events(await next.cycle({ name: 'photos', cacheBytes: 870 })), []);
    assert.deepEqual(events(await next.cycle({ name: 'photos', cacheBytes: 970 })), ['cache.above-95']);
    await next.host.close();
    await writeFile(join(paths.stateDir, 'supervisor-log', 'levels.json'), '{"passed":{"photos":[8');
    const torn = await start(t, { max_size: '1000B' }, { paths });
    assert.deepEqual(
      events(await torn.cycle({ name: 'photos', cacheBytes: 970 })),
      ['cache.above-80', 'cache.above-95'],
      'a torn file is no file',
    );
  });

  it('does not take a share that is being mounted anew for one with an empty cache', async (t) => {
    const { cycle } = await start(t);
    assert.deepEqual(events(await cycle({ name: 'photos', cacheBytes: 900 })), ['cache.above-80']);
    assert.deepEqual(events(await cycle({ name: 'photos', cacheBytes: 0 })), []);
    assert.deepEqual(events(await cycle({ name: 'photos', cacheBytes: 900 })), []);
    assert.deepEqual(events(await cycle()), []);
    assert.deepEqual(events(await cycle({ name: 'photos', cacheBytes: 900 })), ['cache.above-80']);
  });

  it('tells each change of the counts, a busy one every 5 s and with its last value', async (t) => {
    const { host, cycle } = await start(t);
    const figures = (dirtyCount: number, erroredFiles = 0, errors = 0) => ({
      name: 'photos',
      dirtyCount,
      erroredFiles,
      errors,
    });
    assert.deepEqual(await cycle(figures(0)), []);
    const told = async (...counts: readonly [number, number, number]) =>
      (await cycle(figures(...counts))).map(({ event, level, from, to }) => [event, level, from, to]);
    assert.deepEqual(await told(3, 1, 7), [
      ['dirty.changed', INFO, 0, 3],
      ['errored.changed', WARN, 0, 1],
      ['errors.changed', WARN, 0, 7],
    ]);
    await host.advance(1_000);
    assert.deepEqual(await cycle(figures(4, 1, 7)), []);
    await host.advance(1_000);
    assert.deepEqual(await cycle(figures(9, 1, 7)), []);
    await host.advance(3_000);
    assert.deepEqual(await told(9, 1, 7), [['dirty.changed', INFO, 3, 9]]);
    await host.advance(5_000);
    assert.deepEqual(await told(0, 0, 7), [
      ['dirty.changed', INFO, 9, 0],
      ['errored.changed', INFO, 1, 0],
    ]);
  });

  it('looks at the file system where the caches have no limit of their own', async () => {
    let usedBytes = 50;
    const clock = createManualClock();
    const fills = new CacheFills({
      clock,
      cache: () => ({ dir: '/cache', max_size: '0', max_age: '', min_free_space: '' }),
      disk: async () => ({ usedBytes, limitBytes: 100 }),
    });
    const levels = new FillLevels();
    const look = async () => {
      await clock.advance(30_000);
      fills.of([]);
      await clock.advance(1);
      return levels.look(fills.of([]).map(({ share, ...fill }) => ({ name: share ?? '', ...fill })));
    };
    assert.deepEqual(await look(), []);
    usedBytes = 85;
    assert.deepEqual(await look(), [
      { fill: { name: '', usedBytes: 85, limitBytes: 100 }, threshold: 80, percent: 85, isUp: true },
    ]);
    assert.deepEqual(await look(), []);
  });
});
