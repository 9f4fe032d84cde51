/** What a plugin declares crosses as data, or is refused with the sentence why. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RouteOptions } from '@hapi/hapi';
import Joi from 'joi';
import { pino } from 'pino';
import type { ConfigContribution } from '../../../../../core/contract/config.ts';
import type { Plugin, PluginContext } from '../../../../../core/contract/plugin.ts';
import { buildNode } from '../../../../../core/config/schema/key-tree.ts';
import { describeLedger } from '../../../../../core/plugins/describe-ledger.ts';
import { dryRun } from '../../../../../core/plugins/instance/instance.ts';
import { carriedPlugin } from '../../../../../core/plugins/runner/carried/carried-plugin.ts';
import { checkedDeclaration, declarationOf } from '../../../../../core/plugins/runner/carried/declaration.ts';
import type { Declaration } from '../../../../../core/plugins/runner/carried/declaration.ts';
import { duration, filePath, secret, size } from '../../../../../core/sdk/config-types.ts';
import { openTo } from '../../../../../core/sdk/http/route-access.ts';
import { documented } from '../../../../../core/sdk/http/route-document.ts';

const log = pino({ level: 'silent' });

function plugin(register: (ctx: PluginContext) => void, more: Partial<Plugin> = {}): Plugin {
  return { name: 'garden', version: '1.2.3', apiVersion: 1, description: 'A garden.', register, ...more };
}

/** As the daemon gets it. */
function sentBy(one: Plugin): Declaration {
  return checkedDeclaration(JSON.parse(JSON.stringify(declarationOf(one, dryRun(one, log)))));
}

function carried(one: Plugin): Plugin {
  return carriedFrom(sentBy(one));
}

function carriedFrom(declaration: Declaration): Plugin {
  const begin = { entry: '/none.js', folder: '/', name: declaration.name, declared: {} };
  return carriedPlugin({
    declaration,
    isolation: 'own',
    migrate: () => assert.fail('it is not asked here'),
    launch: () => assert.fail('it is not started here'),
    giveUpSeat: undefined,
    begin,
    onGivenUp: () => undefined,
    onAbsence: () => undefined,
    onLate: () => undefined,
    onNetwork: () => undefined,
    confinement: { entry: '/none.js', folder: '/', permissions: [] },
  });
}

const none = async (): Promise<void> => undefined;
const nothing = (): void => undefined;

describe('a plugin that is carried', () => {
  const whole = plugin(
    (ctx) => {
      ctx.tap('afterCycle', none, 7);
      ctx.tap('resolveBandwidth', (budget) => budget);
      ctx.handle('bwlimit', none);
      ctx.status('nasOffline', { default: false, read: () => false });
      ctx.shareStatus({ defaults: {}, read: () => ({}) });
      ctx.route({
        method: ['GET', 'POST'],
        path: '/api/garden',
        options: { auth: false },
        handler: () => 'x',
      });
      ctx.metric({ name: 'garden_beds', help: 'Beds.', labels: ['kind'], read: () => 1 });
      ctx.metric({ name: 'garden_total', help: 'All.', type: 'counter' }).add(0);
      ctx.tab({
        id: 'garden',
        title: { en: 'Garden' },
        place: 'card',
        texts: { en: { a: 'b' } },
        render: () => 'x',
        parts: {},
        actions: { dig: () => ({ ok: true, message: '' }) },
      });
      ctx.webhookFormat({ name: 'card', render: () => ({ body: '' }) });
      ctx.event({
        name: 'garden:watered',
        summary: 'A bed was watered.',
        value: Joi.object({ bed: Joi.string() }),
      });
      ctx.on('lamp:lit', nothing);
      ctx.every({ name: 'tick', ms: () => 1, run: none });
      ctx.job({ name: 'daily', cron: () => '', run: none });
      ctx.effect('a bed', () => none);
    },
    { requires: ['status', 'store'] },
  );

  it('declares in the daemon what it declared in its process', () => {
    const there = dryRun(whole, log);
    const here = dryRun(carried(whole), log);
    for (const list of [
      'taps',
      'handlers',
      'statusFields',
      'shareStatus',
      'tabs',
      'webhookFormats',
      'listeners',
    ] as const)
      assert.deepEqual(
        describeLedger({ [list]: here[list] } as never),
        describeLedger({ [list]: there[list] } as never),
      );
    assert.deepEqual(
      here.events.map(({ name, summary }) => [name, summary]),
      [['garden:watered', 'A bed was watered.']],
    );
    assert.deepEqual(
      here.routes.map(({ method, path }) => [method, path]),
      [[['GET', 'POST'], '/api/garden']],
    );
    assert.deepEqual(
      here.metrics.map(({ name, type, labels }) => [name, type, labels]),
      [
        ['garden_beds', 'gauge', ['kind']],
        ['garden_total', 'counter', []],
      ],
    );
    assert.deepEqual(
      here.effects.map(({ label }) => label),
      ['a process of its own', 'a bed', 'every tick', 'job daily'],
    );
    assert.deepEqual([here.jobs, here.intervals, here.services], [[], [], []]);
    assert.deepEqual(carried(whole).requires, ['status', 'store']);
  });

  it('gives no value while its process does not run', () => {
    const ledger = dryRun(carried(whole), log);
    assert.throws(() => ledger.statusFields[0]?.read(), /its process is not running now/);
    assert.throws(() => ledger.metrics[0]?.read(), /its process is not running now/);
    assert.deepEqual(ledger.shareStatus[0]?.read('files'), {});
    const tap = ledger.taps[1]?.fn as ((budget: object) => unknown) | undefined;
    assert.equal(tap?.({ up: 1, down: 1 }), undefined);
  });

  it('brings the descriptions of its keys in other languages', () => {
    const descriptions = { zh: { 'plugins.garden.beds': '花坛。' } };
    const schema = Joi.object({ beds: Joi.number().default(1) });
    assert.deepEqual(carried(plugin(nothing, { config: { schema, descriptions } })).config?.descriptions, {
      ...descriptions,
    });
    const bad = { ...sentBy(whole), config: { schema: {}, descriptions: { zh: { beds: 7 } } } };
    assert.throws(() => checkedDeclaration(bad), /what it declares cannot be used/);
  });

  it('has the same schema', () => {
    const schema = Joi.object({
      word: Joi.string().pattern(/^a+$/i).default('a').description('A word.').meta({ tier: 'live' }),
      beds: Joi.array()
        .items(Joi.object({ width: Joi.number().integer().min(1).default(2) }))
        .default([]),
      rules: Joi.array().items(Joi.string()).default([]),
      kind: Joi.string().valid('x', 'y').default('x'),
      least: Joi.number().default(1),
      every: duration({ min: '5s', max: '1h' })
        .default('10s')
        .description('How often.')
        .meta({ tier: 'live' }),
      large: size().default('1M'),
      folder: filePath().default(''),
      password: secret().default(''),
      most: Joi.number().min(Joi.ref('least')).default(9),
    });
    const rebuilt = carried(plugin(nothing, { config: { schema } })).config?.schema as Joi.ObjectSchema;
    const types = (of: Joi.ObjectSchema) => [
      ...buildNode(of.describe(), { path: '', owner: 'x', tier: 'global' }).children.values(),
    ];
    assert.deepEqual(types(rebuilt), types(schema), 'documented alike');
    for (const value of [
      {},
      { word: 'b' },
      { beds: [{}] },
      { beds: [{ width: 0 }] },
      { kind: 'y' },
      { rules: ['a'] },
      { rules: 1 },
      { least: 5, most: 4 },
      { every: '1s' },
      { every: '2h' },
      { every: 'often' },
      { every: 5 },
      { every: '' },
      { large: '5X' },
      { password: '********' },
      { password: { env: 'X' } },
      { password: { env: 'X', file: 'y' } },
      { folder: '\0' },
      { odd: 1 },
    ])
      assert.deepEqual(
        [rebuilt.validate(value).value, rebuilt.validate(value).error?.message],
        [schema.validate(value).value, schema.validate(value).error?.message],
      );
  });
});

describe('what cannot be carried', () => {
  const schema = (keys: Joi.SchemaMap): { config: ConfigContribution } => ({
    config: { schema: Joi.object(keys) },
  });
  const cases: readonly (readonly [
    sentence: RegExp,
    register: (ctx: PluginContext) => void,
    more?: Partial<Plugin>,
  ])[] = [
    [/ctx\.hapi\(\) cannot/, (ctx) => ctx.hapi({ name: 'x', register: none }, {})],
    [/ctx\.provide\(\) cannot/, (ctx) => void ctx.provide('exporter:x', () => ({}) as never)],
    [/ctx\.cli\(\) cannot/, (ctx) => ctx.cli({ name: 'x', usage: '', summary: '', run: async () => 0 })],
    [
      /controls of ctx\.tab\("x"\) cannot/,
      (ctx) => ctx.tab({ id: 'x', title: 'X', render: () => 'x', controls: () => 'x' }),
    ],
    [/worker file cannot/, (ctx) => ctx.job({ name: 'x', cron: () => '', worker: { file: '/x.js' } })],
    [/histogram cannot/, (ctx) => void ctx.metric({ name: 'x', help: '', type: 'histogram', buckets: [1] })],
    [/ctx\.tap\("beforeReload"\) cannot .*secrets/, (ctx) => ctx.tap('beforeReload', () => undefined)],
    [
      /ctx\.tap\("afterRequest"\) cannot .*requests of everybody/,
      (ctx) => ctx.tap('afterRequest', () => undefined),
    ],
    [/ctx\.handle\("reload"\) cannot .*secrets/, (ctx) => ctx.handle('reload', none)],
    [
      /ctx\.handle\("count"\) cannot .*only bwlimit, reconnect, notify can/,
      (ctx) => ctx.handle('count' as 'reload', none),
    ],
    [/the service "processes" cannot/, nothing, { requires: ['processes'] }],
    [/guard cannot/, nothing, { guard: true }],
    [/config\.check cannot/, nothing, { config: { schema: Joi.object(), check: () => [] } }],
    [
      /config\.schema\.odd cannot .*function/,
      nothing,
      schema({ odd: Joi.any().custom((value: unknown) => value) }),
    ],
    [/config\.schema\.at\.flags\.default cannot/, nothing, schema({ at: Joi.number().default(() => 1) })],
    [/config\.schema\.at cannot/, nothing, schema({ at: Joi.number().external(() => undefined) })],
    [
      /GET \/x cannot .*plain function/,
      (ctx) => ctx.route({ method: 'GET', path: '/x', handler: { proxy: {} } as never }),
    ],
    [
      /GET \/x cannot .*"plugins\.other"/,
      (ctx) => {
        const options = { plugins: { other: {} } } as object;
        ctx.route({ method: 'GET', path: '/x', options, handler: () => 'x' });
      },
    ],
    [
      /GET \/x cannot .*"pre"/,
      (ctx) => ctx.route({ method: 'GET', path: '/x', options: { pre: [] }, handler: () => 'x' }),
    ],
    [
      /GET \/x cannot .*"auth"/,
      (ctx) =>
        ctx.route({ method: 'GET', path: '/x', options: { auth: { mode: 'try' } }, handler: () => 'x' }),
    ],
  ];
  for (const [expected, register, more] of cases)
    it(`says ${expected.source}`, () => {
      assert.throws(
        () => sentBy(plugin(register, more)),
        (error: Error) => {
          assert.match(error.message, expected);
          return error.message.startsWith('it cannot run in a process of its own: ');
        },
      );
    });

  it('says who may use its routes, but for what its process would have to leave out', () => {
    const one = plugin((ctx) => {
      const add = (path: string, options: object): void =>
        ctx.route({ method: 'GET', path, options, handler: () => 'x' });
      add('/a', {});
      add('/b', openTo({ role: 'viewer' }));
      add(
        '/c/{share}',
        documented({ summary: 'C.', answers: {} }, { role: 'operator', verb: 'refresh', share: 'share' }),
      );
      add('/d', openTo({ role: 'viewer', verb: 'status', share: { filtered: true } }));
    });
    assert.deepEqual(
      dryRun(carried(one), log).routes.map(({ options }) => (options as RouteOptions | undefined)?.plugins),
      [
        undefined,
        { access: { role: 'viewer' } },
        { access: { role: 'operator', verb: 'refresh', share: 'share' } },
        { access: { role: 'viewer', verb: 'status' } },
      ],
    );
  });

  it("has its events' values checked in its own process alone", () => {
    const ways = Array.from({ length: 400 }, () => Joi.link('#t'));
    const value = Joi.object({ a: Joi.alternatives(...ways, Joi.valid(1)) }).id('t');
    const here = dryRun(
      carried(
        plugin((ctx) => (ctx.event as (one: object) => void)({ name: 'garden:dug', summary: 'x', value })),
      ),
      log,
    );
    assert.equal(here.events[0]?.value.validate({ a: { a: 2 } }).error, undefined);
  });

  it("does not give another plugin's event, whatever its process says", () => {
    const events = [{ name: 'lamp:lit', summary: 'x' }];
    const sent = { ...sentBy(plugin(() => undefined)), events };
    assert.throws(
      () => dryRun(carriedFrom(checkedDeclaration(sent)), log),
      /needs a name such as "garden:done", not "lamp:lit"/,
    );
  });

  it('has schemas that the daemon builds at once, however many there are and however deep', () => {
    const good = sentBy(plugin(() => undefined));
    const keys = (count: number): object =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, { type: 'string' }]));
    const deep = (levels: number): object =>
      levels === 0 ? { type: 'string' } : { type: 'object', keys: { a: deep(levels - 1) } };
    const large = {
      'many keys': { ...good, config: { schema: { type: 'object', keys: keys(20_000) } } },
      'many keys of shares': {
        ...good,
        config: { schema: { type: 'object' }, share: { type: 'object', keys: keys(600) } },
      },
      'many values': {
        ...good,
        config: { schema: { type: 'any', allow: Array.from({ length: 500_000 }, () => 0) } },
      },
      'deep keys': { ...good, config: { schema: deep(1_000) } },
      'many texts': {
        ...good,
        tabs: [{ id: 'x', title: 'X', texts: { en: keys(30_000) }, parts: [], actions: [] }],
      },
      'a deep default': { ...good, statusFields: [{ field: 'x', default: deep(2_000) }] },
    };
    for (const [what, sent] of Object.entries(large)) {
      const begun = process.cpuUsage();
      assert.throws(
        () => checkedDeclaration(sent),
        /nested more than 40 deep|more than 500 keys|more than 20000 values/,
        what,
      );
      const { user, system } = process.cpuUsage(begun);
      // Minutes for the deep one before; the machine may have much else to do.
      assert.ok(user + system < 1_000_000, `${what}: ${(user + system) / 1_000} ms of processor`);
    }
    const most = { ...good, config: { schema: { type: 'object', keys: { ...keys(400), a: deep(15) } } } };
    assert.equal(carriedFrom(checkedDeclaration(most)).config?.schema.validate({ k1: 'x' }).error, undefined);
  });

  it('has no routes that the web server would look for without an end', () => {
    const good = sentBy(plugin(() => undefined));
    const route = (path: string) => ({ method: 'GET', path, options: {} });
    const at = (...paths: string[]) => ({ ...good, routes: paths.map(route) });
    const TWO = /two parameters between two slashes/;
    const MANY = /more than 20 parts between slashes/;
    const evil = {
      '/{a}x{b}x{c}x{d}x{e}x{f}x{g}x{h}z': TWO,
      '/beds/{a}-{b}': TWO,
      '/{p*1000000}': MANY,
      '/{p*21}': MANY,
      '/{p*10}/{q*11}': MANY,
      ['/x'.repeat(21)]: MANY,
    };
    for (const [path, reason] of Object.entries(evil))
      assert.throws(() => checkedDeclaration(at('/', path)), reason, path);
    const fine = ['/', '/{a}/{b}', '/bed-{a}.json', '/{p*20}', '/x/{p*}', '/{p?}', '/x'.repeat(20)];
    assert.equal(checkedDeclaration(at(...fine)).routes.length, fine.length);
  });

  it('is no declaration that a hostile runner made up', () => {
    const good = sentBy(plugin(() => undefined));
    for (const bad of [
      null,
      {},
      { ...good, requires: ['processes'] },
      { ...good, taps: [{ hook: 'beforeReload', stage: 0 }] },
      { ...good, commands: ['reload'] },
      { ...good, events: [{ name: 'garden:dug' }] },
      { ...good, labels: Array.from({ length: 201 }, () => 'x') },
      { ...good, shareStatus: [{ defaults: { a: 'x'.repeat(66_000) } }] },
      { ...good, shareStatus: Array.from({ length: 21 }, () => ({})) },
      { ...good, routes: [{ method: 'GET', path: '/x', options: { cors: true } }] },
      { ...good, routes: [{ method: 'GET', path: '/x', options: { access: { role: 'anybody' } } }] },
      {
        ...good,
        routes: [
          { method: 'GET', path: '/x', options: { access: { role: 'viewer', share: { filtered: true } } } },
        ],
      },
    ])
      assert.throws(() => checkedDeclaration(bad), /what it declares cannot be used/);
  });
});
