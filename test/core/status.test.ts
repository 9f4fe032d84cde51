import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import type { Snapshot, StatusRecord, WarmupRuleStatus } from 'mountkeeper';
import { Contributions } from '../../core/plugins/contributions.js';
import { emptyLedger } from '../../core/plugins/instance/ledger.js';
import { StatusStore, emptyRecord as coreRecord } from '../../core/status.js';
import { emptyRecord, emptyShareStatus } from '../support/shares/status-records.ts';
import { collectLog } from '../support/platform/collected-log.ts';

function store() {
  const clock = createManualClock();
  const lines = collectLog();
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
  it('begins with version 0, and with the defaults of plugins until something is published', () => {
    const { status, clock } = store();
    assert.deepEqual(status.snapshot, { version: 0, takenAt: clock.now(), record: coreRecord(clock.now()) });
    status.startWith({ nasOffline: false });
    assert.equal(status.snapshot.record.nasOffline, false);
    status.publish(record({ nasOffline: true }));
    status.startWith({ nasOffline: false });
    assert.equal(status.snapshot.record.nasOffline, true);
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

  it('counts from the question to the shares whether all is synced, not from when it was told', async () => {
    const { status, clock } = store();
    await clock.advance(10_000);
    assert.equal(status.syncedAgeMs, undefined);
    status.publish(record({ allSynced: true }), 7_000);
    assert.equal(status.syncedAgeMs, 3_000);
    await clock.advance(1_000);
    status.confirm(8_000);
    assert.equal(status.syncedAgeMs, 3_000);
    await clock.advance(1_500);
    assert.deepEqual([status.syncedAgeMs, status.snapshot.record.allSynced], [4_500, true]);
    await clock.advance(1);
    assert.deepEqual([status.syncedAgeMs, status.snapshot.record.allSynced], [undefined, false]);
  });

  it('counts the time since the start by what has passed, whatever the clock is set to', async () => {
    const clock = createManualClock();
    let set = 0;
    const status = new StatusStore({
      clock: { ...clock, monotonic: () => clock.monotonic(), now: () => clock.now() + set },
      log: collectLog().log,
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
    assert.equal(lines.messages().filter((text) => text === 'status listener failed').length, 2);
  });
});

describe('contributions to the status', () => {
  it('keep the defaults where a plugin fails or has nothing to say', () => {
    const { log } = collectLog();
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
          {
            read: () => {
              throw new Error('defect');
            },
          },
        ],
      },
      {
        ...emptyLedger('quiet', false),
        statusFields: [{ field: 'smbdRunning' as const, read: () => undefined }],
        shareStatus: [{ read: () => ({ warmupDone: undefined }) }],
      },
      {
        ...emptyLedger('good', false),
        statusFields: [{ field: 'nfsExported' as const, read: () => true }],
        shareStatus: [{ read: (share: string) => ({ warmupTotal: share.length }) }],
      },
    ];
    const contributions = new Contributions({ ledgers: () => ledgers, clock: createManualClock(), log });
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
      const { log, entries } = collectLog();
      const ledgers = [
        {
          ...emptyLedger('odd', false),
          statusFields: [{ field: 'oddCount' as never, read: () => value }],
          shareStatus: [{ read: () => ({ oddShare: value }) }],
        },
        {
          ...emptyLedger('good', false),
          statusFields: [{ field: 'nfsExported' as const, read: () => true }],
        },
      ];
      const contributions = new Contributions({ ledgers: () => ledgers, clock: createManualClock(), log });
      for (let cycle = 0; cycle < 3; cycle += 1) {
        assert.deepEqual(contributions.statusFields(), { nfsExported: true });
        assert.deepEqual(contributions.shareStatus('photos'), {});
      }
      assert.deepEqual(
        entries.map(({ plugin, field }) => [plugin, field]),
        [
          ['odd', 'oddCount'],
          ['odd', 'oddShare'],
        ],
      );
    });
  }

  it("are of their default's kind, and leave what is the core's or another's", () => {
    const { log, entries } = collectLog();
    const said = {
      mounted: true,
      dirtyCount: 0,
      health: 'healthy',
      name: 'other',
      warmupState: 1,
      warmupDone: '1',
      lastDirRefreshAt: 5,
      warmupTotal: 5,
      surprise: 1,
    };
    const defaults = { warmupState: 'none', warmupDone: 0, lastDirRefreshAt: null, warmupTotal: 0 };
    const ledgers = [
      {
        ...emptyLedger('a', false),
        statusFields: [
          { field: 'nasOffline', default: false, read: () => 'no' },
          { field: 'allSynced', default: true, read: () => true },
          { field: 'warmup', default: [], read: () => ({ share: 'x' }) },
          { field: 'nasOfflineSince', default: null, read: () => 7 },
        ],
      },
      { ...emptyLedger('b', false), shareStatus: [{ read: () => said, defaults }] },
      {
        ...emptyLedger('c', false),
        shareStatus: [{ read: () => ({ warmupTotal: 7, warmupDone: 2, ownField: { deep: [1] } }) }],
      },
    ];
    const contributions = new Contributions({ ledgers: () => ledgers, clock: createManualClock(), log });
    assert.deepEqual(contributions.statusFields(), { nasOffline: false, warmup: [], nasOfflineSince: 7 });
    assert.deepEqual(contributions.shareStatus('photos'), {
      warmupState: 'none',
      warmupDone: 0,
      lastDirRefreshAt: 5,
      warmupTotal: 5,
      ownField: { deep: [1] },
    });
    const refused = entries.map(({ plugin, field }) => `${String(plugin)} ${String(field)}`);
    assert.deepEqual(refused, [
      'a nasOffline',
      'a warmup',
      'b mounted',
      'b dirtyCount',
      'b health',
      'b name',
      'b warmupState',
      'b warmupDone',
      'b surprise',
      'c warmupTotal',
      'c warmupDone',
    ]);
    const { daemon, share } = contributions.owners();
    assert.deepEqual(
      [daemon.get('nasOffline'), share.get('warmupDone'), share.get('ownField')],
      ['a', 'b', 'c'],
    );
  });

  it('have the default of a plugin that is off, of one that is on before that', () => {
    const off = (plugin: string, value: number) => ({
      ...emptyLedger(plugin, false),
      statusFields: [{ field: 'beds', default: value, read: () => value }],
      shareStatus: [{ read: () => ({}), defaults: { bed: value } }],
    });
    const known = [off('first', 1), off('second', 2)];
    const active: (typeof known)[number][] = [];
    const contributions = new Contributions({
      ledgers: () => active,
      known: () => known,
      clock: createManualClock(),
      log: collectLog().log,
    });
    assert.deepEqual(
      [contributions.statusFields(), contributions.shareStatus('a')],
      [{ beds: 1 }, { bed: 1 }],
    );
    assert.deepEqual([...contributions.owners().daemon], []);
    active.push(off('second', 2));
    assert.deepEqual([contributions.defaults(), contributions.shareStatus('a')], [{ beds: 2 }, { bed: 2 }]);
  });

  it('are of the kind that a plugin that is off declares, whoever gives them', () => {
    const known = [
      {
        ...emptyLedger('off', false),
        statusFields: [{ field: 'beds', default: 0, read: () => 1 }],
        shareStatus: [{ read: () => ({}), defaults: { bed: 0, pillow: 0 } }],
      },
    ];
    const stranger = {
      ...emptyLedger('stranger', false),
      statusFields: [{ field: 'beds', read: () => 'many' }],
      shareStatus: [{ read: () => ({ bed: 'wide', pillow: 2 }) }],
    };
    const contributions = new Contributions({
      ledgers: () => [stranger],
      known: () => known,
      clock: createManualClock(),
      log: collectLog().log,
    });
    assert.deepEqual(contributions.statusFields(), { beds: 0 });
    assert.deepEqual(contributions.shareStatus('a'), { bed: 0, pillow: 2 });
  });

  it('that are named anew in each cycle do not fill the memory', () => {
    let cycle = 0;
    const odd = {
      ...emptyLedger('odd', false),
      shareStatus: [{ read: () => ({ constant: 1, [`field${(cycle += 1)}`]: 1 }) }],
    };
    const contributions = new Contributions({
      ledgers: () => [odd],
      clock: createManualClock(),
      log: collectLog().log,
    });
    for (let count = 0; count < 1_000; count += 1) contributions.shareStatus('a');
    const { share } = contributions.owners();
    assert.deepEqual([share.size, share.get('constant'), share.get('field1000')], [200, 'odd', 'odd']);
  });

  it('that are named anew and cannot be used are told of a few times', () => {
    const { log, entries } = collectLog();
    let cycle = 0;
    let good = false;
    const odd = {
      ...emptyLedger('odd', false),
      shareStatus: [{ read: () => ({ same: good ? 1 : NaN, [`field${(cycle += 1)}`]: NaN }) }],
    };
    const clock = createManualClock();
    const contributions = new Contributions({ ledgers: () => [odd], clock, log });
    for (let count = 0; count < 20_000; count += 1) contributions.shareStatus('a');
    assert.equal(entries.length, 200);
    good = true;
    contributions.shareStatus('a');
    good = false;
    contributions.shareStatus('a');
    assert.equal(entries.at(-1)?.['field'], 'field20001', 'there is room again for one');
    const { length } = entries;
    contributions.shareStatus('a');
    assert.equal(entries.length, length);
  });

  it('have names of 100 characters at the most, which are kept and shown', () => {
    const { log, entries } = collectLog();
    const odd = {
      ...emptyLedger('odd', false),
      shareStatus: [{ read: () => ({ a: 1, ['b'.repeat(101)]: 1 }) }],
    };
    const contributions = new Contributions({ ledgers: () => [odd], clock: createManualClock(), log });
    assert.deepEqual(contributions.shareStatus('a'), {});
    assert.match(String(entries[0]?.['reason']), /^has a field whose name is longer than 100 characters$/);
    assert.deepEqual([...contributions.owners().share], []);
  });

  it('of a stranger that is slow have their default until it is asked again', async () => {
    const { log, entries } = collectLog();
    let nowMs = 0;
    let asked = 0;
    const slow = {
      ...emptyLedger('slow', false),
      statusFields: [
        {
          field: 'beds',
          default: 0,
          read: () => {
            asked += 1;
            nowMs += 201;
            return 3;
          },
        },
      ],
    };
    const strange = { ledgers: () => [slow], clock: { monotonic: () => nowMs }, log };
    const contributions = new Contributions({ ...strange, isStranger: (plugin) => plugin === 'slow' });
    for (let cycle = 0; cycle < 3; cycle += 1) assert.deepEqual(contributions.statusFields(), { beds: 0 });
    assert.deepEqual([asked, entries.length], [1, 1]);
    nowMs += 60_000;
    contributions.statusFields();
    assert.deepEqual([asked, entries.length], [2, 1]);
    // What comes with the package is believed, however long the machine took.
    assert.deepEqual(new Contributions(strange).statusFields(), { beds: 3 });
  });

  it('of one plugin are no more than a megabyte in all, of one share 64 KiB', () => {
    const text = 'x'.repeat(60_000);
    const many = Array.from({ length: 20 }, (_, index) => `field${index}`);
    const large = {
      ...emptyLedger('large', false),
      // What is refused uses up nothing of what the others have.
      statusFields: [
        { field: 'refused', default: '', read: () => Array.from({ length: 20 }, () => text) },
        ...many.map((field) => ({ field, default: '', read: () => text })),
      ],
      shareStatus: [{ read: () => Object.fromEntries(many.map((field) => [field, text])) }],
    };
    const options = { ledgers: () => [large], clock: createManualClock(), log: collectLog().log };
    const contributions = new Contributions(options);
    assert.equal(
      Object.values<unknown>(contributions.statusFields()).filter((value) => value === text).length,
      17,
    );
    assert.equal(Object.keys(contributions.shareStatus('a')).length, 1);
    const names = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`n${index}`, 1]));
    const wide = { ...emptyLedger('wide', false), shareStatus: [{ read: () => names }] };
    assert.deepEqual(new Contributions({ ...options, ledgers: () => [wide] }).shareStatus('a'), {});
  });

  it("of a third party's plugin are no more than 20,000 values of the daemon, and as many of all shares", () => {
    const values = Array.from({ length: 3_000 }, () => 1);
    const many = Array.from({ length: 10 }, (_, index) => `field${index}`);
    const large = {
      ...emptyLedger('large', false),
      statusFields: many.map((field) => ({ field, default: [], read: () => values })),
      shareStatus: [{ read: () => ({ beds: values }) }],
    };
    const options = { ledgers: () => [large], clock: createManualClock(), log: collectLog().log };
    const given = (isStranger: boolean): readonly number[] => {
      const contributions = new Contributions({ ...options, isStranger: () => isStranger });
      const ofShare = contributions.shareReader();
      const fields = Object.values<unknown>(contributions.statusFields());
      const shares = many.map((share) => (ofShare(share) as { beds?: unknown }).beds);
      return [fields, shares].map(
        (list) => list.filter((one) => Array.isArray(one) && one.length > 0).length,
      );
    };
    assert.deepEqual(given(true), [6, 6]);
    assert.deepEqual(given(true), [6, 6], 'in each cycle anew');
    assert.deepEqual(given(false), [10, 10]);
  });

  it('of a stranger that is slow in many little pieces, or in what is refused, are not asked for a minute', () => {
    const { log, entries } = collectLog();
    let [nowMs, asked] = [0, 0];
    const piece = (): number => {
      asked += 1;
      nowMs += 50;
      if (asked % 2 === 0) throw new Error('defect');
      return 3;
    };
    const fields = Array.from({ length: 10 }, (_, index) => `field${index}`);
    const slow = {
      ...emptyLedger('slow', false),
      statusFields: fields.map((field) => ({ field, default: 0, read: piece })),
      shareStatus: [{ defaults: { beds: 0 }, read: () => ({ beds: piece() }) }],
    };
    const options = { ledgers: () => [slow], clock: { monotonic: () => nowMs }, log, isStranger: () => true };
    const ofDaemon = new Contributions(options);
    ofDaemon.statusFields();
    assert.equal(asked, 5, 'the fifth makes it more than 200 ms');
    ofDaemon.statusFields();
    ofDaemon.shareStatus('photos');
    assert.equal(asked, 5);
    assert.match(
      String(entries.at(-1)?.['reason']),
      /^takes more than 200 ms with what else the plugin says/,
    );
    nowMs += 60_000;
    ofDaemon.statusFields();
    assert.equal(asked, 10);
    const ofShare = new Contributions(options).shareReader();
    for (const share of fields) ofShare(share);
    assert.equal(asked, 15, 'so do all shares together');
  });
});
