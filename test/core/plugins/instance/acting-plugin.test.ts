/** For whom code runs that the host has called, and what that code has begun. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PluginContext } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import { actAs, actorNow, entryOf, serviceOf } from '../../../../core/plugins/instance/acting-plugin.ts';
import { small } from '../../../support/plugins/small-plugins.ts';

/** Notes by `what` for whom code runs that it has begun. */
function notebook(): { readonly notes: Map<string, string>; note(what: string): Promise<void> } {
  const notes = new Map<string, string>();
  return {
    notes,
    note: async (what) => {
      await new Promise((resolve) => setImmediate(resolve));
      notes.set(what, actorNow()?.name ?? 'the core');
    },
  };
}

describe('code that the host calls', () => {
  for (const [who, strangers] of [
    ['odd', ['odd']],
    ['the core', []],
  ] as const)
    it(`runs for ${who} where the plugin is ${strangers.length > 0 ? 'a third party’s' : 'ours'}`, async (t) => {
      const { notes, note } = notebook();
      const declare = (ctx: PluginContext<never>): void => {
        void note('register');
        ctx.tap('beforeMount', () => void note('tap'));
        ctx.handle('bwlimit', () => note('handle'));
        (ctx.status as (field: string, read: () => unknown) => void)('oddField', () => void note('status'));
        ctx.metric({ name: 'mountkeeper_odd', help: 'Odd.', read: () => (void note('metric'), 1) });
        ctx.every({ name: 'odd', ms: () => 1_000, run: () => note('every') });
        ctx.job({ name: 'odd', cron: () => '* * * * *', run: () => note('job') });
        ctx.effect('odd', async () => {
          await note('effect');
          await ctx.send('reconnect', 'photos');
          return () => note('release');
        });
        ctx.onConfigChange(() => void note('config'));
        ctx.route({ method: 'GET', path: '/ext/odd/odd', handler: () => note('route').then(() => 'lit') });
        ctx.hapi(
          {
            name: 'native',
            register: (server) => {
              void note('native');
              server.route({
                method: 'GET',
                path: '/ext/odd/own',
                handler: () => note('native route').then(() => 'lit'),
              });
            },
          },
          {},
        );
        ctx.tab({
          id: 'odd',
          title: 'Odd',
          render: () => note('render').then(() => ''),
          parts: { one: () => note('part').then(() => '') },
        });
      };
      const test = await createTestHost({
        plugins: [small('odd', [], { declare })],
        strangers,
        config: { plugins: { odd: { enabled: true } } },
        send: (command) => note(command),
      });
      t.after(() => test.close());
      assert.equal(test.info('odd').state, 'active', test.info('odd').reason);
      await test.hooks.veto('beforeMount', 'photos');
      await test.host.handle('bwlimit', [{ up: '0', down: '0' }]);
      test.status();
      test.host.service('metrics')?.read();
      await test.advance(1_000);
      await test.runJob('odd/odd');
      for (const path of ['odd', 'own']) assert.equal((await test.inject(`/ext/odd/${path}`)).payload, 'lit');
      const tab = test.host.ledgers()[0]?.tabs[0];
      await tab?.render({} as never);
      await tab?.parts?.['one']?.({} as never);
      await test.configure({ plugins: { odd: { enabled: false } } });
      await note('the test');
      const ours = new Set(['reconnect', 'the test']);
      assert.ok(notes.size >= 14, [...notes.keys()].join(', '));
      for (const [what, whose] of notes) assert.equal(whose, ours.has(what) ? 'the core' : who, what);
    });

  it('is called as it was declared: with its object, its getters and its own classes', () => {
    class Bed {
      depth = 3;
      look = (): string | undefined => actorNow()?.name;
    }
    const bed = new Bed();
    const entry = entryOf(
      { name: 'odd' },
      {
        bed,
        get size() {
          return bed.depth;
        },
        read(this: { size: number }) {
          return [this.size, actorNow()?.name];
        },
        deep: { deeper: { fn: () => actorNow()?.name } },
      },
    );
    assert.deepEqual(entry.read(), [3, 'odd']);
    assert.equal(entry.bed, bed);
    bed.depth = 4;
    assert.equal(entry.size, 4);
    assert.equal(entry.deep.deeper.fn(), undefined);
    assert.equal(
      actAs({ name: 'garden' }, () => entry.read()[1]),
      'odd',
    );
    assert.equal(actorNow(), undefined);
  });
});

describe('a service of a third party', () => {
  class Pump {
    readonly #litres = 4;
    isOn = true;
    get litres(): readonly unknown[] {
      return [this.#litres, actorNow()?.name];
    }
    water(bed: string): readonly unknown[] {
      return [bed, this.#litres, actorNow()?.name];
    }
  }

  it('looks like what the plugin has made, and runs for it', () => {
    for (const pump of [new Pump(), Object.freeze(new Pump())]) {
      const service = serviceOf({ name: 'odd' }, pump) as Pump;
      assert.ok(service instanceof Pump);
      assert.deepEqual(
        [service.isOn, service.litres, service.water('roses')],
        [true, [4, 'odd'], ['roses', 4, 'odd']],
      );
      const { water } = service;
      assert.deepEqual(
        actAs({ name: 'garden' }, () => water('tulips')),
        ['tulips', 4, 'odd'],
      );
      assert.deepEqual(Object.keys(service), ['isOn']);
      assert.throws(() => Object.assign(service, { isOn: false }), TypeError);
      assert.throws(() => Object.assign(service, { more: 1 }), TypeError);
    }
    const plain = serviceOf({ name: 'odd' }, { who: () => actorNow()?.name, color: 'red' });
    assert.deepEqual(
      [(plain as { who(): string }).who(), (plain as { color: string }).color],
      ['odd', 'red'],
    );
    assert.equal((serviceOf({ name: 'odd' }, () => actorNow()?.name) as () => string)(), 'odd');
    for (const value of [undefined, null, 7, 'text']) assert.equal(serviceOf({ name: 'odd' }, value), value);
  });

  it('runs for it, whoever calls, the core and exporters included', async (t) => {
    const { notes, note } = notebook();
    const lamp = { color: 'red', blink: () => note('blink') };
    let made: unknown;
    const odd = small('odd', [], {
      declare: (ctx) => {
        const own = ctx.provide('lamp', () => (void note('create'), lamp));
        ctx.effect('own', () => {
          made = own();
          return () => undefined;
        });
        ctx.provide('exporter:http', () => ({
          add: () => note('add'),
          remove: () => note('remove'),
          quiesce: () => note('quiesce'),
          get isEnabled() {
            void note('isEnabled');
            return true;
          },
        }));
      },
    });
    const blinks = (name: string) =>
      small(name, [], {
        declare: (ctx) =>
          ctx.tap('beforeMount', async () => {
            await (ctx.use('lamp') as unknown as typeof lamp).blink();
            await note(name);
            return undefined;
          }),
      });
    const test = await createTestHost({
      plugins: [odd, blinks('caller'), blinks('ours')],
      strangers: ['odd', 'caller'],
      config: { plugins: { odd: { enabled: true }, caller: { enabled: true } } },
    });
    t.after(() => test.close());
    assert.equal(test.info('odd').state, 'active', test.info('odd').reason);
    await test.hooks.veto('beforeMount', 'photos');
    const exporter = test.host.service('exporters')?.list()[0]?.exporter;
    assert.equal(exporter?.isEnabled, true);
    await exporter?.add({} as never, {} as never);
    await exporter?.remove('photos');
    await exporter?.quiesce?.('photos');
    await note('the test');
    assert.deepEqual(Object.fromEntries(notes), {
      create: 'odd',
      blink: 'odd',
      caller: 'caller',
      ours: 'the core',
      isEnabled: 'odd',
      add: 'odd',
      remove: 'odd',
      quiesce: 'odd',
      'the test': 'the core',
    });
    assert.equal(made, lamp, 'the plugin itself has what it made');
    assert.equal(test.host.service('lamp'), test.host.service('lamp'));
    assert.equal(test.host.service('exporters')?.list()[0]?.exporter, exporter);
  });
});
