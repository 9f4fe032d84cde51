import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import type { Snapshot, StatusRecord, WarmupRuleStatus } from 'mountkeeper';
import { Contributions } from '../../core/plugins/contributions.js';
import { emptyLedger } from '../../core/plugins/instance/ledger.js';
import { StatusStore, emptyRecord, emptyShareStatus } from '../../core/status.js';
import { listeningLog } from './plugins/fixtures.ts';
import { collectedLines } from './fake-shares.ts';

function store() {
  const clock = createManualClock();
  const lines = collectedLines();
  return { clock, lines, status: new StatusStore({ clock, log: lines.log }) };
}

function record(change: Partial<StatusRecord> = {}): Omit<StatusRecord, 'startedAt'> {
  const { startedAt: _, ...rest } = { ...emptyRecord(0), ...change };
  return rest;
}

const rule: WarmupRuleStatus = {
  share: 'photos',
  path: 'a',
  newerThan: null,
  state: 'pending',
  totalFiles: 1,
  skipped: 0,
  cached: 0,
  errors: 0,
};

describe('status store', () => {
  it('begins with the defaults and version 0', () => {
    const { status, clock } = store();
    assert.deepEqual(status.snapshot, { version: 0, takenAt: clock.now(), record: emptyRecord(clock.now()) });
  });

  it('raises the version and keeps the time of the start', async () => {
    const { status, clock } = store();
    const { startedAt } = status.snapshot.record;
    await clock.advance(5_000);
    status.publish(record({ nasOffline: true }));
    const { version, takenAt, record: published } = status.snapshot;
    assert.deepEqual(
      [version, takenAt, published.startedAt, published.nasOffline],
      [1, startedAt + 5_000, startedAt, true],
    );
  });

  it('takes back that all is synced when nobody has looked for a while, as after a standstill', async () => {
    const { status, clock } = store();
    status.publish(record({ allSynced: true }));
    for (let look = 0; look < 5; look += 1) {
      await clock.advance(3_000);
      assert.equal(status.snapshot.record.allSynced, true);
      status.confirm();
    }
    const { version } = status.snapshot;
    await clock.advance(5_000);
    assert.deepEqual([status.snapshot.record.allSynced, status.snapshot.version], [false, version + 1]);
    assert.equal(status.snapshot, status.snapshot);
    status.publish(record({ allSynced: true }));
    assert.deepEqual([status.snapshot.record.allSynced, status.snapshot.version], [true, version + 2]);
  });

  it('counts the time since the start by what has passed, whatever the clock is set to', async () => {
    const clock = createManualClock();
    let set = 0;
    const status = new StatusStore({
      clock: { ...clock, monotonic: () => clock.monotonic(), now: () => clock.now() + set },
      log: collectedLines().log,
    });
    for (const jumpMs of [30 * 365 * 86_400_000, -40 * 365 * 86_400_000]) {
      await clock.advance(60_000);
      set += jumpMs;
      const { takenAt, record: published } = status.publish(record());
      assert.equal(takenAt - published.startedAt, clock.monotonic());
    }
  });

  it('publishes what nobody can change, not even who handed it in', () => {
    const { status } = store();
    const warmup = [{ ...rule }];
    const shares = [emptyShareStatus('photos')];
    const snapshot = status.publish(record({ warmup, shares }));
    warmup[0]!.totalFiles = 99;
    warmup.push({ ...rule });
    shares[0]!.mounted = true;
    shares.push(emptyShareStatus('video'));
    assert.deepEqual(snapshot.record.warmup, [rule]);
    assert.deepEqual(snapshot.record.shares, [emptyShareStatus('photos')]);
    assert.throws(() => {
      (snapshot.record as { nasOffline: boolean }).nasOffline = true;
    }, TypeError);
    assert.throws(() => {
      snapshot.record.shares[0]!.mounted = true;
    }, TypeError);
    assert.throws(() => {
      (snapshot.record.warmup[0] as { cached: number }).cached = 1;
    }, TypeError);
  });

  it('keeps an old snapshot as it was', () => {
    const { status } = store();
    const before = status.snapshot;
    status.publish(record({ allSynced: true }));
    assert.deepEqual([before.version, before.record.allSynced], [0, false]);
  });

  it('tells every listener until it is released, whatever another one does', () => {
    const { status, lines } = store();
    const seen: number[] = [];
    status.onPublish(() => {
      throw new Error('defect');
    });
    const listener = ({ version }: Snapshot) => void seen.push(version);
    const release = status.onPublish(listener);
    status.onPublish(listener);
    status.publish(record());
    release();
    status.publish(record());
    assert.deepEqual(seen, [1, 1, 2]);
    assert.equal(lines.texts().filter((text) => text === 'status listener failed').length, 2);
  });
});

describe('contributions to the status', () => {
  it('keep the defaults where a plugin fails or has nothing to say', () => {
    const { log } = collectedLines();
    const ledgers = [
      {
        ...emptyLedger('broken', false),
        statusFields: [
          {
            field: 'nasOffline' as const,
            read: () => {
              throw new Error('defect');
            },
          },
        ],
        shareStatus: [
          () => {
            throw new Error('defect');
          },
        ],
      },
      {
        ...emptyLedger('quiet', false),
        statusFields: [{ field: 'smbdRunning' as const, read: () => undefined }],
        shareStatus: [() => ({ warmupDone: undefined }) as never],
      },
      {
        ...emptyLedger('good', false),
        statusFields: [{ field: 'nfsExported' as const, read: () => true }],
        shareStatus: [(share: string) => ({ warmupTotal: share.length })],
      },
    ];
    const contributions = new Contributions({ ledgers: () => ledgers, log });
    assert.deepEqual(contributions.statusFields(), { nfsExported: true });
    assert.deepEqual(contributions.shareStatus('photos'), { warmupTotal: 6 });
  });

  const endless: Record<string, unknown> = {};
  endless['self'] = endless;
  const UNFIT: Readonly<Record<string, unknown>> = {
    'what holds itself': endless,
    'a list that holds itself': ((list: unknown[]) => {
      list.push(list);
      return list;
    })([]),
    'a function': () => 1,
    'a symbol': Symbol('x'),
    'a big integer': 1n,
    'not a number': NaN,
    infinity: Infinity,
    'a date': new Date(0),
    'a map': new Map(),
    'a promise': Promise.resolve(true),
    'a long text': 'x'.repeat(100_000),
    'a long list': Array.from({ length: 200_000 }, () => 1),
    'a getter that throws': {
      get x() {
        throw new Error('defect');
      },
    },
    'a proxy that throws': new Proxy(
      {},
      {
        ownKeys() {
          throw new Error('defect');
        },
      },
    ),
  };
  for (const [what, value] of Object.entries(UNFIT)) {
    it(`leave out ${what}, and name the plugin once`, () => {
      const { log, lines } = listeningLog();
      const ledgers = [
        {
          ...emptyLedger('odd', false),
          statusFields: [{ field: 'oddCount' as never, read: () => value }],
          shareStatus: [() => ({ oddShare: value }) as never],
        },
        {
          ...emptyLedger('good', false),
          statusFields: [{ field: 'nfsExported' as const, read: () => true }],
        },
      ];
      const contributions = new Contributions({ ledgers: () => ledgers, log });
      for (let cycle = 0; cycle < 3; cycle += 1) {
        assert.deepEqual(contributions.statusFields(), { nfsExported: true });
        assert.deepEqual(contributions.shareStatus('photos'), {});
      }
      assert.deepEqual(
        lines().map(({ plugin, field }) => [plugin, field]),
        [
          ['odd', 'oddCount'],
          ['odd', 'oddShare'],
        ],
      );
    });
  }

  it("are of the contract's kind, and leave what is the core's or another's", () => {
    const { log, lines } = listeningLog();
    const said = {
      mounted: true,
      dirtyCount: 0,
      health: 'healthy',
      name: 'other',
      warmupState: 'done',
      warmupDone: -1,
      lastDirRefreshAt: 'now',
      warmupTotal: 5,
    };
    const ledgers = [
      {
        ...emptyLedger('a', false),
        statusFields: [
          { field: 'nasOffline' as const, read: () => 'no' },
          { field: 'allSynced' as const, read: () => true },
          { field: 'warmup' as const, read: () => [{ share: 'x' }] },
        ],
      },
      { ...emptyLedger('b', false), shareStatus: [() => said as never] },
      {
        ...emptyLedger('c', false),
        shareStatus: [() => ({ warmupTotal: 7, warmupDone: 2, ownField: { deep: [1] } }) as never],
      },
    ];
    const contributions = new Contributions({ ledgers: () => ledgers, log });
    assert.deepEqual(contributions.statusFields(), {});
    assert.deepEqual(contributions.shareStatus('photos'), {
      warmupTotal: 5,
      warmupDone: 2,
      ownField: { deep: [1] },
    });
    const refused = lines().map(({ plugin, field }) => `${String(plugin)} ${String(field)}`);
    assert.deepEqual(refused, [
      'a nasOffline',
      'a warmup',
      'b mounted',
      'b dirtyCount',
      'b health',
      'b name',
      'b warmupState',
      'b warmupDone',
      'b lastDirRefreshAt',
      'c warmupTotal',
    ]);
  });
});
