import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { Joi } from 'mountkeeper';
import type { Config, Exporter, PluginContext } from 'mountkeeper';
import { createExporters, GuardedExporters } from '../../../core/plugins/guarded-exporters.ts';
import { createManualClock, createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin, TestHost } from 'mountkeeper/testing';
import type { Member } from '../../../core/plugins/plugin-set.ts';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Diary } from '../../support/plugins/small-plugins.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { until } from '../../support/platform/wait.ts';

async function open(t: TestContext, plugins: readonly AnyPlugin[]): Promise<TestHost> {
  const test = await createTestHost({ plugins });
  t.after(() => test.close());
  return test;
}

const states = (test: TestHost) => Object.fromEntries(test.list().map((info) => [info.name, info.state]));
const off = (...names: string[]) => ({
  plugins: Object.fromEntries(names.map((name) => [name, { enabled: false }])),
});
const lamp = (name: string, diary: Diary, color: string, version = '1.0.0') =>
  small(name, diary, { version, declare: (ctx) => ctx.provide('lamp', () => ({ color })) });
const reader = (name: string, diary: Diary, colors: string[]) =>
  small(name, diary, {
    requires: ['lamp'],
    declare: (ctx) =>
      ctx.effect('read', () => {
        colors.push(ctx.use('lamp').color);
        return () => undefined;
      }),
  });

describe('services', () => {
  it('are up before those who require them, whatever their names', async (t) => {
    const colors: string[] = [];
    const diary: Diary = [];
    const test = await open(t, [reader('a', diary, colors), lamp('z', diary, 'red')]);
    assert.deepEqual(states(test), { a: 'active', z: 'active' });
    assert.deepEqual([diary, colors], [['+z', '+a'], ['red']]);
    assert.equal(test.host.service('lamp')?.color, 'red');
    assert.deepEqual(
      test.host.services('la').map(([name]) => name),
      ['lamp'],
    );
  });

  it('that nobody provides keep a plugin waiting, and it says for what', async (t) => {
    const test = await open(t, [reader('a', [], [])]);
    assert.deepEqual(states(test), { a: 'waiting' });
    assert.equal(test.info('a').reason, 'it waits for the service "lamp", which no plugin provides');
  });

  it('that a plugin can do without are found while somebody provides them', async (t) => {
    const finds = small('a', [], {
      declare: (ctx) => {
        assert.throws(() => ctx.find('lamp'), /reached for ctx\.find\("lamp"\) before it was active/);
        ctx.tap('beforeMount', () => ctx.find('lamp')?.color ?? 'dark');
      },
    });
    const test = await open(t, [finds, lamp('z', [], 'red')]);
    assert.equal(await test.hooks.veto('beforeMount', 'files'), 'red');
    await test.configure(off('z'));
    assert.equal(await test.hooks.veto('beforeMount', 'files'), 'dark');
  });

  it('that show shares are listed by protocol, whoever brings them', async (t) => {
    const exporter = { isEnabled: false, add: async () => undefined, remove: async () => undefined };
    const listed: string[][] = [];
    const serving: boolean[][] = [];
    const test = await open(t, [
      // Its plugin is on and cannot come up: a server of before may still run.
      small('ftp', [], {
        requires: ['exporter:none'],
        declare: (ctx) => ctx.provide('exporter:ftp', () => exporter),
      }),
      small('http', [], { declare: (ctx) => ctx.provide('exporter:http', () => exporter) }),
      small('reader', [], {
        declare: (ctx) =>
          ctx.tap('afterMount', () => {
            const all = ctx.use('exporters').list();
            listed.push(all.map((one) => `${one.protocol} ${String(one.exporter.isEnabled)}`));
            serving.push(['http', 'ftp', 'gopher'].map((name) => ctx.use('exporters').mayServe(name)));
          }),
      }),
    ]);
    await test.hooks.observe('afterMount', 'files');
    await test.configure(off('http'));
    await test.hooks.observe('afterMount', 'files');
    await test.configure(off('http', 'ftp'));
    await test.hooks.observe('afterMount', 'files');
    assert.deepEqual(listed, [['http false'], [], []]);
    assert.deepEqual(serving, [
      [false, true, false],
      [false, true, false],
      [false, false, false],
    ]);
    assert.deepEqual(test.host.protocols(), [
      { name: 'ftp', plugin: 'ftp', isProvided: true, isNameable: true },
      { name: 'http', plugin: 'http', isProvided: true, isNameable: true },
    ]);
  });

  it('that show shares never throw to those who ask them, and say only what can be used', async (t) => {
    const silent = { add: async () => undefined, remove: async () => undefined };
    const broken = {
      ...silent,
      get isEnabled(): boolean {
        throw new Error('defect');
      },
      listensAt: { port: 'x' as never, addresses: [] },
      offers: () => {
        throw new Error('defect');
      },
    };
    const good = { service: '_http._tcp', port: 80, addresses: ['192.0.2.1'], details: { path: '/' } };
    const odd = [
      null,
      { ...good, service: '_HTTP' },
      { ...good, port: 0 },
      { ...good, port: 65_536 },
      { ...good, addresses: '::' },
      { ...good, addresses: [1] },
      { ...good, details: { path: 1 } },
      good,
    ];
    const strange = { ...silent, isEnabled: false, offers: () => odd as never };
    const late = { ...strange, offers: () => Promise.reject(new Error('late')) as never };
    const provider = (name: string, exporter: Exporter) =>
      small(name, [], { declare: (ctx) => ctx.provide(`exporter:${name}`, () => exporter) });
    const test = await open(t, [provider('a', broken), provider('b', strange), provider('c', late)]);
    const list = () => test.host.service('exporters')?.list() ?? [];
    for (let look = 0; look < 3; look += 1)
      assert.deepEqual(
        list().map(({ protocol, exporter }) => [
          protocol,
          exporter.isEnabled,
          exporter.listensAt,
          exporter.offers?.(),
        ]),
        [
          ['a', undefined, undefined, []],
          ['b', false, undefined, [good]],
          ['c', false, undefined, []],
        ],
      );
    assert.equal(list()[0]?.exporter, list()[0]?.exporter);
    const mayServe = (protocol: string) => test.host.service('exporters')?.mayServe(protocol);
    assert.deepEqual(['a', 'b', 'd'].map(mayServe), [true, false, false]);
  });

  it('that show shares hold up whoever asks, from when they are switched off until their server is gone', async (t) => {
    const exporter: Exporter = {
      add: async () => undefined,
      remove: async () => undefined,
      enforce: async () => undefined,
    };
    let isReleased = false;
    let letGo = (): void => undefined;
    const gone = new Promise<void>((resolve) => (letGo = resolve));
    const clock = createManualClock();
    const test = await createTestHost({
      clock,
      plugins: [
        small('http', [], {
          declare: (ctx) => {
            ctx.provide('exporter:http', () => exporter);
            ctx.effect('server', () => () => {
              isReleased = true;
              return gone;
            });
          },
        }),
      ],
    });
    t.after(() => test.close());
    const exporters = test.host.service('exporters') ?? assert.fail('there is no such service');
    assert.deepEqual(await exporters.enforce(), []);
    let sure: readonly string[] | undefined;
    const switched = test.configure(off('http'));
    await until('its server is being stopped', () => isReleased, { timeoutMs: 10_000 });
    const asked = exporters.enforce().then((left) => void (sure = left));
    await clock.advance(1_000);
    const isSureTooSoon = sure !== undefined;
    letGo();
    await switched;
    await clock.advance(1_000);
    await asked;
    assert.deepEqual([isSureTooSoon, sure], [false, []]);
  });

  it('that show shares count as open once the running document switches them off', async () => {
    const { log, entries } = collectLog();
    const clock = createManualClock();
    const ledger = { services: [{ name: 'exporter:http' }] };
    const exporter = { enforce: async () => undefined };
    const instance = { active: true, plugin: { name: 'http' }, ledger, provided: () => exporter };
    const member = { found: { name: 'http', thirdParty: false, ledger }, enabled: true, instance };
    let running = { plugins: {} };
    const exporters = createExporters(
      {
        members: () => [member as unknown as Member],
        leaving: () => [],
        config: () => running as unknown as Config,
      },
      { clock, log },
    );
    assert.deepEqual(await exporters.enforce(), []);
    running = off('http');
    const asked = exporters.enforce();
    await clock.advance(6_000);
    assert.deepEqual(await asked, ['http']);
    assert.match(String(entries[0]?.['reason']), /is just being switched off/);
  });

  it('that show shares and fail are named in the log once, until it is another problem', () => {
    const { log, entries } = collectLog();
    let problem = 'first';
    const offers = () => {
      throw new Error(problem);
    };
    const exporter: Exporter = { add: async () => undefined, remove: async () => undefined, offers };
    const guarded = new GuardedExporters(log).guard({ plugin: 'stranger', protocol: 'http', exporter });
    for (problem of ['first', 'first', 'second', 'second']) assert.deepEqual(guarded.exporter.offers?.(), []);
    assert.deepEqual(
      entries.map(({ plugin, what, reason }) => [plugin, what, reason]),
      [
        ['stranger', 'offers', 'first'],
        ['stranger', 'offers', 'second'],
      ],
    );
  });

  it('that show shares and cannot be asked who is connected keep no other from being listed', () => {
    const { log, entries } = collectLog();
    const broken = (): never => {
      throw new Error('broken');
    };
    const exporter = Object.defineProperties(
      { add: async () => undefined, remove: async () => undefined } as Exporter,
      { sessions: { get: broken }, endSession: { get: broken } },
    );
    const guarded = new GuardedExporters(log).guard({ plugin: 'stranger', protocol: 'http', exporter });
    assert.deepEqual([guarded.exporter.sessions, guarded.exporter.endSession], [undefined, undefined]);
    assert.deepEqual(
      entries.map(({ what, reason }) => [what, reason]),
      [
        ['sessions', 'broken'],
        ['endSession', 'broken'],
      ],
    );
  });

  it('that go take their dependants to waiting, and bring them back when they return', async (t) => {
    const diary: Diary = [];
    const test = await open(t, [reader('a', diary, []), lamp('z', diary, 'red'), small('b', diary)]);
    await test.configure(off('z'));
    assert.deepEqual(states(test), { a: 'waiting', b: 'active', z: 'disabled' });
    assert.equal(
      test.info('a').reason,
      'it waits for the service "lamp" of the plugin "z", which is disabled',
    );
    assert.equal(test.host.service('lamp'), undefined);
    await test.configure({});
    assert.deepEqual(states(test), { a: 'active', b: 'active', z: 'active' });
    assert.deepEqual(
      diary.filter((line) => line !== '+b'),
      ['+z', '+a', '-a', '-z', '+z', '+a'],
    );
    assert.equal(diary.filter((line) => line === '+b').length, 1);
  });

  it('that are replaced restart their dependants, and theirs in turn, and nobody else', async (t) => {
    const diary: Diary = [];
    const colors: string[] = [];
    const middle = small('m', diary, {
      requires: ['lamp'],
      declare: (ctx) => ctx.provide('socket', () => ({ volts: ctx.use('lamp').color.length })),
    });
    const last = small('a', diary, {
      requires: ['socket'],
      declare: (ctx) =>
        ctx.effect('volts', () => {
          colors.push(String(ctx.use('socket').volts));
          return () => undefined;
        }),
    });
    const bystander = small('b', diary);
    const test = await open(t, [last, middle, bystander, lamp('z', diary, 'red')]);
    diary.length = 0;
    await test.setPlugins([last, middle, bystander, lamp('z', diary, 'yellow', '2.0.0')]);
    assert.deepEqual(diary, ['-a', '-m', '-z', '+z', '+m', '+a']);
    assert.deepEqual(colors, ['3', '6']);
  });

  it('of a plugin that fails keep its dependants waiting', async (t) => {
    const failing = small('z', [], {
      declare: (ctx) => {
        ctx.provide('lamp', () => {
          throw new Error('no bulb');
        });
      },
    });
    const test = await open(t, [reader('a', [], []), failing]);
    assert.deepEqual(states(test), { a: 'waiting', z: 'failed' });
    assert.equal(test.info('z').reason, 'no bulb');
    assert.equal(test.info('a').reason, 'it waits for the service "lamp" of the plugin "z", which is failed');
  });

  it('whose new version fails are there again in the former one, dependants included', async (t) => {
    const diary: Diary = [];
    const colors: string[] = [];
    const dependant = reader('a', diary, colors);
    const test = await open(t, [dependant, lamp('z', diary, 'red')]);
    await test.setPlugins([
      dependant,
      small('z', diary, {
        version: '2.0.0',
        declare: (ctx) => {
          ctx.provide('lamp', () => ({ color: 'blue' }));
          ctx.effect('fuse', () => {
            throw new Error('blown');
          });
        },
      }),
    ]);
    assert.deepEqual(states(test), { a: 'active', z: 'failed' });
    assert.deepEqual(colors, ['red', 'red']);
    assert.equal(test.host.service('lamp')?.color, 'red');
  });

  it('required in a circle leave everybody waiting who is part of it', async (t) => {
    const test = await open(t, [
      small('a', [], { requires: ['socket'], declare: (ctx) => ctx.provide('lamp', () => ({ color: '' })) }),
      small('b', [], { requires: ['lamp'], declare: (ctx) => ctx.provide('socket', () => ({ volts: 1 })) }),
      small('c', []),
    ]);
    assert.deepEqual(states(test), { a: 'waiting', b: 'waiting', c: 'active' });
    assert.match(test.info('a').reason!, /a, b wait for each other in a circle/);
  });

  it('of another provider take over when the first is switched off', async (t) => {
    const colors: string[] = [];
    const test = await open(t, [lamp('x', [], 'red'), lamp('y', [], 'blue'), reader('a', [], colors)]);
    assert.deepEqual(states(test), { a: 'active', x: 'active', y: 'failed' });
    await test.configure(off('x'));
    assert.deepEqual([states(test), colors], [{ a: 'active', x: 'disabled', y: 'active' }, ['red', 'blue']]);
  });

  it('of the core cannot be taken over by a plugin', async (t) => {
    const test = await open(t, [
      small('a', [], { declare: (ctx) => ctx.provide('clock', () => ({}) as never) }),
    ]);
    assert.deepEqual(states(test), { a: 'failed' });
    assert.equal(
      test.info('a').reason,
      'it provides the service "clock", which is the core\'s own; choose another name',
    );
  });
});

describe('configuration of a plugin', () => {
  const schema = Joi.object({
    depth: Joi.number().default(1).description('d').meta({ tier: 'live' }),
    port: Joi.number().default(1).description('p').meta({ tier: 'protocol' }),
    rules: Joi.array()
      .items(Joi.object({ path: Joi.string().description('x') }))
      .default([])
      .description('r')
      .meta({ tier: 'live' }),
  });
  const bench = async (t: TestContext) => {
    const heard: unknown[] = [];
    const diary: Diary = [];
    const jobs: { cron: string } = { cron: '' };
    const test = await open(t, [
      small('a', diary, {
        config: { section: 'garden', schema },
        declare: (ctx) => {
          ctx.onConfigChange((next, previous) => heard.push([previous, next, ctx.config]));
          ctx.job({
            name: 'j',
            cron: () => ((ctx.config as { depth: number }).depth > 1 ? '0 3 * * *' : jobs.cron),
            run: async () => undefined,
          });
        },
      }),
      small('b', diary),
    ]);
    diary.length = 0;
    return { test, heard, diary };
  };

  it('of the live tier is handed over to the living instance, jobs included', async (t) => {
    const { test, heard, diary } = await bench(t);
    assert.deepEqual(test.jobs(), []);
    await test.configure({ garden: { depth: 2, rules: [{ path: 'x' }] } });
    const before = { depth: 1, port: 1, rules: [] };
    const after = { depth: 2, port: 1, rules: [{ path: 'x' }] };
    assert.deepEqual(heard, [[before, after, after]]);
    assert.deepEqual(diary, []);
    assert.deepEqual(test.jobs(), ['a/j']);
  });

  it('of another tier makes a new instance of that plugin alone', async (t) => {
    const { test, heard, diary } = await bench(t);
    await test.configure({ garden: { port: 2, depth: 2 } });
    assert.deepEqual([heard, diary], [[], ['-a', '+a']]);
  });

  it("that does not change, and other sections, are nobody's business", async (t) => {
    const { test, heard, diary } = await bench(t);
    await test.configure({ bandwidth: { up: '1M' }, garden: { depth: 1 } });
    assert.deepEqual([heard, diary], [[], []]);
  });

  it('is only its own keys, though the section is shared', async (t) => {
    let seen: unknown;
    const test = await open(t, [
      small('a', [], {
        config: {
          section: 'web',
          schema: Joi.object({ motto: Joi.string().default('hi').description('m').meta({ tier: 'live' }) }),
        },
        declare: (ctx) =>
          ctx.effect('look', () => {
            seen = ctx.config;
            return () => undefined;
          }),
      }),
    ]);
    assert.deepEqual(states(test), { a: 'active' });
    assert.deepEqual(seen, { motto: 'hi' });
    assert.throws(() => {
      (seen as { motto: string }).motto = 'x';
    }, TypeError);
  });

  it("is nobody else's keys where it is a third party's, whatever its schema says of the section", async (t) => {
    const copy = Joi.any().meta({ tier: 'live' });
    const schemas = [
      Joi.object({ copy: copy.default(Joi.ref('password')) }),
      Joi.object({ copy }).rename('password', 'copy'),
      Joi.object({ copy }).prefs({ noDefaults: true }),
    ];
    for (const schema of schemas) {
      let seen: unknown;
      const { log } = collectLog();
      const test = await createTestHost({
        plugins: [
          small('guard', [], {
            config: { section: 'web', schema: Joi.object({ password: Joi.string().default('') }) },
          }),
          small('a', [], {
            config: { section: 'web', schema },
            declare: (ctx) =>
              ctx.effect('look', () => {
                seen = ctx.config;
                return () => undefined;
              }),
          }),
        ],
        strangers: ['a'],
        config: { web: { password: 'p' }, plugins: { a: { enabled: true } } },
        log,
      });
      t.after(() => test.close());
      const { web } = test.config.current.config as unknown as { web: Record<string, unknown> };
      assert.deepEqual([seen, web['password'], web['copy']], [{}, 'p', undefined]);
      assert.equal(typeof web['port'], 'number');
    }
  });

  it('reaches the other listeners though one of them throws', async (t) => {
    const heard: string[] = [];
    const test = await open(t, [
      small('a', [], {
        config: { schema },
        declare: (ctx) => {
          ctx.onConfigChange(() => {
            throw new Error('oops');
          });
          ctx.onConfigChange(() => heard.push('second'));
        },
      }),
    ]);
    await test.configure({ plugins: { a: { depth: 5 } } });
    assert.deepEqual([heard, states(test)], [['second'], { a: 'active' }]);
  });

  it('is logged, and ends nothing, where a listener rejects afterwards', async (t) => {
    const { log, entries } = collectLog();
    const late: () => unknown = async () => {
      await Promise.resolve();
      throw new Error('oops');
    };
    const declare = (ctx: PluginContext<never>): void => ctx.onConfigChange(late);
    const test = await createTestHost({ plugins: [small('a', [], { config: { schema }, declare })], log });
    t.after(() => test.close());
    await test.configure({ plugins: { a: { depth: 5 } } });
    const said = () =>
      entries
        .filter(({ msg }) => msg === 'plugin failed to take over its changed configuration')
        .map(({ plugin, err }) => [plugin, (err as { message: string }).message]);
    await until('it is logged', () => said().length > 0, { timeoutMs: 5_000 });
    assert.deepEqual([said(), states(test)], [[['a', 'oops']], { a: 'active' }]);
  });
});
