import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Counter, Histogram, Metric, MetricFamily, MetricsService, PluginContext } from 'mountkeeper';
import { createMetricReadings } from '../../../../core/plugins/metric-readings.ts';
import { emptyLedger } from '../../../../core/plugins/instance/ledger.ts';
import { declareMetric } from '../../../../core/plugins/instance/metric.ts';
import { createTestHost } from 'mountkeeper/testing';
import { small } from '../../../support/plugins/small-plugins.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const base = { name: 'garden_beds', help: 'Beds.' };
const declare = (metric: object) => declareMetric(metric as Metric);
const read = (metric: object): MetricFamily => declare(metric).declared.read();

describe('ctx.metric', () => {
  it('reads gauges and counters, one number or a sample for each series', () => {
    assert.deepEqual(read({ ...base, read: () => 3 }), {
      ...base,
      type: 'gauge',
      samples: [{ value: 3, labels: {} }],
    });
    const samples = [
      { value: 1, labels: { bed: 'a', side: 'n' } },
      { value: 2, labels: { side: 's', bed: 'a' } },
    ];
    const family = read({
      name: 'garden_beds_total',
      help: '',
      type: 'counter',
      labels: ['side', 'bed'],
      read: () => samples,
    });
    assert.deepEqual(family.samples, [
      { value: 1, labels: { bed: 'a', side: 'n' } },
      { value: 2, labels: { bed: 'a', side: 's' } },
    ]);
  });

  it('shares the copy of labels that can never change, and takes no others for known', () => {
    const frozen = Object.freeze({ side: 'n', bed: 'a' });
    const open = { side: 'n', bed: 'b' };
    const samples = [
      { value: 1, labels: frozen },
      { value: 2, labels: open },
    ];
    const [beds, weeds] = [0, 1].map(() =>
      declare({ ...base, labels: ['side', 'bed'], read: () => samples }),
    );
    const first = beds?.declared.read().samples[0]?.labels;
    assert.deepEqual(Object.entries(first ?? {}), [
      ['bed', 'a'],
      ['side', 'n'],
    ]);
    assert.equal(weeds?.declared.read().samples[0]?.labels, first);
    open.bed = 'c';
    assert.deepEqual(beds?.declared.read().samples[1]?.labels, { bed: 'c', side: 'n' });
    const one = samples.slice(0, 1);
    assert.throws(() => read({ ...base, labels: ['bed'], read: () => one }), /exactly the labels bed/);
    assert.throws(() => read({ ...base, read: () => one }), /exactly the labels/);
  });

  it('takes a label that every object has', () => {
    const sample = { value: 1, labels: { constructor: 'a' } };
    assert.deepEqual(read({ ...base, labels: ['constructor'], read: () => [sample] }).samples, [sample]);
    assert.throws(() => read({ ...base, labels: ['constructor'], read: () => 1 }), /exactly the labels/);
  });

  it('counts from 0 on, and by label', () => {
    const plain = declare({ name: 'a_total', help: '', type: 'counter' });
    assert.deepEqual(plain.declared.read().samples, [{ labels: {}, value: 0 }]);
    const { declared, handle } = declare({ name: 'a_total', help: '', type: 'counter', labels: ['bed'] });
    const counter = handle as Counter;
    counter.add(1, { bed: 'x' });
    counter.add(2.5, { bed: 'x' });
    counter.add(0, { bed: 'y' });
    assert.deepEqual(declared.read().samples, [
      { labels: { bed: 'x' }, value: 3.5 },
      { labels: { bed: 'y' }, value: 0 },
    ]);
    for (const wrong of [
      () => counter.add(-1, { bed: 'x' }),
      () => counter.add(Number.NaN, { bed: 'x' }),
      () => counter.add(1),
      () => counter.add(1, { bed: 'x', row: '1' }),
    ])
      assert.throws(wrong);
    assert.equal(declared.read().samples.length, 2);
  });

  it('observes into buckets that hold all below them', () => {
    const { declared, handle } = declare({ ...base, type: 'histogram', buckets: [1, 2] });
    for (const value of [0.5, 1, 1.5, 7]) (handle as Histogram).observe(value);
    assert.deepEqual(declared.read(), {
      ...base,
      type: 'histogram',
      buckets: [1, 2],
      samples: [{ labels: {}, counts: [2, 3, 4], sum: 10 }],
    });
    assert.throws(() => (handle as Histogram).observe(Infinity));
  });

  const faults: readonly (readonly [string, object, RegExp])[] = [
    [
      'a name that Prometheus does not take',
      { ...base, name: 'garden-beds', read: () => 1 },
      /lower-case letters/,
    ],
    [
      'a name that every object has',
      { ...base, name: 'constructor', read: () => 1 },
      /be called "constructor"/,
    ],
    [
      'a counter whose family has such a name',
      { ...base, name: 'constructor_total', type: 'counter' },
      /"constructor_total"\) cannot be called "constructor"; choose another name/,
    ],
    ['a type that is none', { ...base, type: 'sum', read: () => 1 }, /must be gauge, counter or histogram/],
    ['a counter without _total', { ...base, type: 'counter' }, /must end in _total/],
    ['a gauge that is not read', base, /lacks a function/],
    ['a label that histograms need', { ...base, labels: ['le'], read: () => 1 }, /labels/],
    ['buckets that fall', { ...base, type: 'histogram', buckets: [2, 1] }, /rising/],
    ['no buckets', { ...base, type: 'histogram' }, /rising/],
  ];
  for (const [what, metric, reason] of faults)
    it(`refuses ${what}`, () => assert.throws(() => declare(metric), reason));

  const lies: readonly (readonly [string, unknown, RegExp])[] = [
    ['texts', '3', /needs a number/],
    ['labels that are not declared', [{ value: 1, labels: { row: '1' } }], /exactly the labels bed/],
    ['labels that are no texts', [{ value: 1, labels: { bed: 1 } }], /each a text/],
    [
      'a label that is too long',
      [{ value: 1, labels: { bed: 'x'.repeat(501) } }],
      /more than 500 characters/,
    ],
    ['a value that is none', [{ value: undefined, labels: { bed: 'a' } }], /as the value/],
    [
      'one series twice',
      [
        { value: 1, labels: { bed: 'a' } },
        { value: 2, labels: { bed: 'a' } },
      ],
      /same labels/,
    ],
  ];
  for (const [what, given, reason] of lies)
    it(`leaves out a metric that gives ${what}`, () =>
      assert.throws(() => read({ ...base, labels: ['bed'], read: () => given }), reason));
});

describe('the metrics of all plugins', () => {
  it("are 5,000 series at the most of one third party's plugin; what comes behind is not even read", () => {
    const counts: Record<string, number> = {};
    const metric = (name: string, series: number) =>
      declare({
        name,
        help: '',
        labels: ['bed'],
        read: () => {
          counts[name] = (counts[name] ?? 0) + 1;
          return Array.from({ length: series }, (_, index) => ({ value: 1, labels: { bed: `${index}` } }));
        },
      }).declared;
    const metrics = [metric('a', 3_000), metric('b', 2_000), metric('c', 1), metric('d', 5_000)];
    const { log, entries } = collectLog();
    const ledgers = [
      { ...emptyLedger('garden', false, '/ext/garden'), metrics },
      { ...emptyLedger('pond', false, '/ext/pond'), metrics: [metric('e', 5_000)] },
      { ...emptyLedger('ours', false), metrics: [metric('f', 5_000), metric('g', 5_000)] },
    ];
    const service = createMetricReadings({ ledgers: () => ledgers, log });
    for (let scrape = 0; scrape < 2; scrape += 1)
      assert.deepEqual(
        service.read().map(({ name }) => name),
        ['a', 'b', 'e', 'f', 'g'],
      );
    assert.deepEqual(counts, { a: 2, b: 2, c: 2, e: 2, f: 2, g: 2 });
    assert.deepEqual(
      entries.map(({ plugin, metric: name }) => [plugin, name]),
      [['garden', 'c']],
    );
    assert.match(String(entries[0]?.['reason']), /more than 5000 series .*those behind it are left out/);
  });

  it('are read each by itself; what cannot be used is left out and told once', () => {
    let answer: unknown = 'nonsense';
    const good = declare({ name: 'good', help: '', read: () => 1 }).declared;
    const bad = declare({ name: 'bad', help: '', read: () => answer }).declared;
    const { log, entries } = collectLog();
    const service = createMetricReadings({
      ledgers: () => [{ ...emptyLedger('garden', false), metrics: [bad, good] }],
      log,
    });
    const names = () => service.read().map(({ name }) => name);
    assert.deepEqual([names(), names()], [['good'], ['good']]);
    assert.deepEqual(
      entries.map(({ plugin, metric }) => [plugin, metric]),
      [['garden', 'bad']],
    );
    answer = 2;
    assert.deepEqual(names(), ['bad', 'good']);
    answer = 'nonsense';
    names();
    assert.equal(entries.length, 2, 'told again once it was well between');
  });

  it('are named with their plugin where they cannot be shown, once until that changes', () => {
    const good = declare({ name: 'good', help: '', read: () => 1 }).declared;
    const { log, entries } = collectLog();
    const service = createMetricReadings({
      ledgers: () => [emptyLedger('tools', false), { ...emptyLedger('garden', false), metrics: [good] }],
      log,
    });
    const show = (why: string): void => {
      assert.equal(service.read().length, 1);
      service.leftOut('good', new Error(why));
      service.leftOut('nobodys', new Error(why));
    };
    for (const why of ['too odd', 'too odd', 'too long']) show(why);
    assert.deepEqual(
      entries.map(({ plugin, metric, reason }) => [plugin, metric, reason]),
      [
        ['garden', 'good', 'too odd'],
        ['garden', 'good', 'too long'],
      ],
    );
  });

  it('come and go with their plugin', async (t) => {
    let metrics: MetricsService | undefined;
    const reader = small('reader', [], {
      declare: (ctx: PluginContext) =>
        ctx.effect('read', () => {
          metrics = ctx.use('metrics');
          return () => undefined;
        }),
    });
    const counting = small('counting', [], {
      declare: (ctx: PluginContext) => ctx.metric({ ...base, read: () => 1 }),
    });
    const host = await createTestHost({ plugins: [reader, counting] });
    t.after(() => host.close());
    assert.deepEqual(
      metrics?.read().map(({ name }) => name),
      ['garden_beds'],
    );
    await host.configure({ plugins: { counting: { enabled: false } } });
    assert.deepEqual(metrics?.read(), []);
  });
});
