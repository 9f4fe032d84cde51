/** Events between plugins: who may give which, who hears them, and what a bad listener or giver does to others. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { Joi } from 'mountkeeper';
import type { EventDeclaration, PluginContext } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin, TestHost } from 'mountkeeper/testing';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { stepUntil, turn } from '../../../support/platform/wait.ts';
import { small } from '../../../support/plugins/small-plugins.ts';

declare module 'mountkeeper' {
  interface Events {
    'lamp:lit': { readonly colour: string; readonly at?: readonly number[] };
    'lamp:counted': number;
    'bell:rung': null;
  }
}

const LIT: EventDeclaration<'lamp:lit'> = {
  name: 'lamp:lit',
  summary: 'It was lit.',
  value: Joi.object({ colour: Joi.string().required(), at: Joi.array() }),
};
const COUNTED: EventDeclaration<'lamp:counted'> = {
  name: 'lamp:counted',
  summary: 'It was counted.',
  value: Joi.number(),
};

type Register = (ctx: PluginContext<never>) => void;

/** A plugin, and the plugins of a test; the first gives. */
const plugin = (name: string, declare: Register): AnyPlugin => small(name, [], { declare });

async function open(
  t: TestContext,
  plugins: readonly AnyPlugin[],
  config: object = {},
): Promise<{ readonly test: TestHost; readonly said: () => readonly string[] }> {
  const { log, entries } = collectLog();
  const test = await createTestHost({ plugins, log, config: { ...config } });
  t.after(() => test.close());
  const told = (entry: Readonly<Record<string, unknown>>): string =>
    `${String(entry['plugin'])} ${String(entry['event'])}: ${String(entry['reason'] ?? entry['msg'])}`;
  return { test, said: () => entries.filter((entry) => 'event' in entry).map(told) };
}

/** A lamp with the functions that give its events. */
function lamp(): {
  readonly plugin: AnyPlugin;
  light(colour: unknown): void;
  count(value: number): void;
} {
  const given: Record<string, (value: never) => void> = {};
  return {
    plugin: plugin('lamp', (ctx) => {
      given['lit'] = ctx.event(LIT);
      given['counted'] = ctx.event(COUNTED);
    }),
    light: (value) => given['lit']?.(value as never),
    count: (value) => given['counted']?.(value as never),
  };
}

describe('an event', () => {
  it('reaches all who listen, each with a copy of its own, in the order in which it was given', async (t) => {
    const { plugin: giver, light, count } = lamp();
    const heard: string[] = [];
    const listening = (name: string): AnyPlugin =>
      plugin(name, (ctx) => {
        ctx.on('lamp:counted', async (value) => {
          await turn();
          heard.push(`${name} ${String(value)}`);
        });
        ctx.on('lamp:lit', (value) => {
          heard.push(`${name} ${value.colour}`);
          (value as { colour: string }).colour = 'spoilt';
        });
      });
    await open(t, [giver, listening('a'), listening('b'), plugin('deaf', () => undefined)]);
    count(1);
    light({ colour: 'red' });
    count(2);
    assert.deepEqual(heard, [], 'whoever gives goes on at once');
    await stepUntil('all have heard', () => heard.length === 6, turn);
    for (const name of ['a', 'b'])
      assert.deepEqual(
        heard.filter((one: string) => one.startsWith(name)),
        [`${name} 1`, `${name} red`, `${name} 2`],
      );
  });

  it('is heard by plugins that were there first, and by nobody who is off', async (t) => {
    const heard: number[] = [];
    const eager = plugin('eager', (ctx) => ctx.on('lamp:counted', (value) => void heard.push(value)));
    const { test } = await open(t, [eager]);
    assert.equal(test.info('eager').state, 'active', 'a listener waits for nobody');
    const { plugin: giver, count } = lamp();
    await test.setPlugins([eager, giver]);
    count(1);
    await stepUntil('it has heard', () => heard.length === 1, turn);
    await test.configure({ plugins: { eager: { enabled: false } } });
    count(2);
    await test.configure({});
    count(3);
    await stepUntil('it hears again', () => heard.length === 2, turn);
    await test.configure({ plugins: { lamp: { enabled: false } } });
    count(4);
    await turn();
    await turn();
    assert.deepEqual(heard, [1, 3], 'nothing is kept, and who is off gives nothing');
  });

  it('is not told when its value does not fit, and the log names the plugin once', async (t) => {
    const { plugin: giver, light } = lamp();
    const heard: string[] = [];
    const { said } = await open(t, [
      giver,
      plugin('a', (ctx) => ctx.on('lamp:lit', ({ colour }) => void heard.push(colour))),
    ]);
    const own: Record<string, unknown> = { colour: 'x' };
    own['own'] = own;
    for (const bad of [
      {},
      {},
      { colour: 7 },
      own,
      { colour: 'x'.repeat(20_000) },
      Promise.reject(new Error('no')),
    ])
      light(bad);
    light({ colour: 'red' });
    await stepUntil('the good one has come', () => heard.length > 0, turn);
    assert.deepEqual(heard, ['red']);
    assert.deepEqual(said(), [
      'lamp lamp:lit: does not fit its schema: colour is required',
      'lamp lamp:lit: does not fit its schema: colour must be a string',
      'lamp lamp:lit: is nested more than 8 deep, or holds itself',
      'lamp lamp:lit: holds more than 16384 characters in all',
      'lamp lamp:lit: is a promise; it must be there at once',
    ]);
  });

  it('harms nobody when a listener throws or never comes back', async (t) => {
    const { plugin: giver, count } = lamp();
    const heard: string[] = [];
    const { test, said } = await open(t, [
      giver,
      plugin('hangs', (ctx) => {
        ctx.on('lamp:counted', (value) => {
          heard.push(`hangs ${String(value)}`);
          return new Promise(() => undefined);
        });
        ctx.on('lamp:counted', (value) => void heard.push(`beside ${String(value)}`));
      }),
      plugin('throws', (ctx) =>
        ctx.on('lamp:counted', () => {
          throw new Error('no oil');
        }),
      ),
      plugin('well', (ctx) => ctx.on('lamp:counted', (value) => void heard.push(`well ${String(value)}`))),
    ]);
    count(1);
    count(2);
    await stepUntil('the others have heard', () => heard.includes('well 2') && said().length === 2, turn);
    assert.deepEqual(heard, ['hangs 1', 'well 1', 'well 2']);
    await stepUntil(
      'the time is up',
      () => heard.includes('beside 2'),
      () => test.advance(1_000),
    );
    assert.deepEqual(heard.slice(3), ['beside 1', 'beside 2'], 'it is not asked again while it hangs');
    const failed = (name: string): string =>
      `${name} lamp:counted: plugin failed to take an event; others have heard of it`;
    assert.deepEqual([...said()].sort(), [failed('hangs'), failed('throws'), failed('throws')]);
  });

  it('waits for a slow plugin with 200 others at most', async (t) => {
    const { plugin: giver, count } = lamp();
    let isOpen: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      isOpen = resolve;
    });
    const heard: number[] = [];
    const { test, said } = await open(t, [
      giver,
      plugin('slow', (ctx) =>
        ctx.on('lamp:counted', async (value) => {
          await gate;
          heard.push(value);
        }),
      ),
    ]);
    for (let second = 0; second < 3; second += 1) {
      for (let one = 0; one < 100; one += 1) count(second * 100 + one);
      await test.advance(1_000);
    }
    isOpen();
    await stepUntil('it has caught up', () => heard.length >= 200, turn);
    assert.deepEqual([heard.length, heard[0], heard.at(-1)], [200, 0, 199]);
    assert.deepEqual(said(), [
      'slow lamp:counted: plugin takes events more slowly than they come; ' +
        'it misses those that do not fit into its queue',
    ]);
  });

  it('is not even checked when it comes too often', async (t) => {
    let checked = 0;
    const value = Joi.any().custom(() => {
      checked += 1;
      throw new Error(`no ${checked}`);
    });
    let give: (value: unknown) => void = () => undefined;
    const { said } = await open(t, [
      plugin('lamp', (ctx) => {
        give = (ctx.event as (one: object) => typeof give)({ name: 'lamp:odd', summary: 'Odd.', value });
      }),
    ]);
    for (let one = 0; one < 500; one += 1) give(one);
    assert.equal(checked, 100);
    assert.match(said().at(-1) ?? '', /comes too often/);
  });

  it('is given 100 times a second at most', async (t) => {
    const { plugin: giver, count } = lamp();
    let heard = 0;
    const { test, said } = await open(t, [
      giver,
      plugin('a', (ctx) => ctx.on('lamp:counted', () => void (heard += 1))),
    ]);
    for (let one = 0; one < 150; one += 1) count(one);
    await stepUntil('it has heard what there is', () => heard >= 100, turn);
    await test.advance(1_000);
    count(1);
    await stepUntil('it hears again', () => heard > 100, turn);
    assert.equal(heard, 101);
    assert.deepEqual(said(), [
      'lamp lamp:counted: comes too often: 100 events a second are the most of one plugin',
    ]);
  });
});

describe("an event's name", () => {
  const reasons = async (t: TestContext, declare: Register): Promise<string> => {
    const { test } = await open(t, [plugin('bell', declare)]);
    return test.info('bell').reason ?? '';
  };

  it("is the plugin's own", async (t) => {
    assert.match(
      await reasons(t, (ctx) => ctx.event(LIT)),
      /needs a name such as "bell:done", not "lamp:lit"/,
    );
    assert.match(
      await reasons(t, (ctx) => ctx.event({ ...LIT, name: 'bell:Rung' as 'lamp:lit' })),
      /needs a name such as "bell:done", not "bell:Rung"/,
    );
  });

  it('has a summary and a schema, and is declared once', async (t) => {
    const rung = { name: 'bell:rung', summary: 'It was rung.', value: Joi.valid(null) } as const;
    assert.equal(await reasons(t, (ctx) => ctx.event(rung)), '');
    assert.match(await reasons(t, (ctx) => ctx.event({ ...rung, summary: '' })), /needs a summary/);
    assert.match(await reasons(t, (ctx) => ctx.event({ ...rung, value: {} as never })), /needs a Joi schema/);
    const twice: Register = (ctx) => void [ctx.event(rung), ctx.event(rung)];
    assert.match(await reasons(t, twice), /gives the event "bell:rung" twice/);
  });

  it('is whole where somebody listens', async (t) => {
    assert.match(await reasons(t, (ctx) => ctx.on('lit' as never, () => undefined)), /needs the whole name/);
    assert.match(
      await reasons(t, (ctx) => ctx.on('lamp:lit', 7 as never)),
      /ctx\.on\("lamp:lit"\) needs a function/,
    );
  });
});
