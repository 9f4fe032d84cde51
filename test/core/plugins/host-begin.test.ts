import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import type { Plugin } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import type { AnyPlugin } from 'mountkeeper/testing';
import type { LoadedConfig } from '../../../core/contract/config.js';
import { createHost } from '../../../core/plugins/host.js';
import type { PluginHost } from '../../../core/plugins/host.js';
import { isEmptyLedger } from '../../../core/plugins/instance/ledger.js';
import type { Ledger } from '../../../core/plugins/instance/ledger.js';
import { offer } from '../../../core/testing/test-host.js';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Diary } from '../../support/plugins/small-plugins.ts';

const log = pino({ level: 'silent' });
const CONFIG = { config: { plugins: {} } } as unknown as LoadedConfig;

interface Begun {
  readonly host: PluginHost;
  /** Of the plugins whose routes are in force; undefined before any are. */
  readonly routes: () => readonly string[] | undefined;
  /** Of these, who lets people in; one that is not active lets nobody in. */
  readonly guards: () => readonly string[];
}

/** A host after `begin`, with a web server that refuses the routes of the plugins named. */
async function begun(
  t: TestContext,
  plugins: readonly AnyPlugin[],
  refused: readonly string[] = [],
): Promise<Begun> {
  let inForce: readonly Ledger[] | undefined;
  const host = createHost(
    {
      dirs: { inTree: '' },
      projectors: [
        {
          name: 'http',
          build: async (ledgers) => {
            const bad = ledgers.find((one) => refused.includes(one.plugin) && !isEmptyLedger(one));
            if (bad) throw new Error(`the route of ${bad.plugin} is taken`);
            return { commit: () => void (inForce = ledgers), discard: async () => undefined };
          },
        },
      ],
      clock: createManualClock(),
      log,
      scheduler: { add: async () => () => undefined },
      send: async () => undefined,
      services: {},
    },
    async () => plugins.map((plugin) => offer(plugin as Plugin, log)),
  );
  t.after(() => host.stop('shutdown'));
  await host.discover({ thirdPartyDirs: [], stateDir: '', enabled: new Set() });
  await host.begin(CONFIG);
  const names = (ledgers?: readonly Ledger[]) => ledgers?.map(({ plugin }) => plugin);
  const guards = (): readonly string[] => names(inForce?.filter(({ guard }) => guard)) ?? [];
  return { host, routes: () => names(inForce), guards };
}

const states = ({ host }: Begun): object =>
  Object.fromEntries(host.list().map(({ name, state }) => [name, state]));

describe('a plugin host that has begun', () => {
  it('has its plugins and their hooks, and no routes before the next change', async (t) => {
    const diary: Diary = [];
    const veto = small('a', diary, { declare: (ctx) => ctx.tap('beforeMount', () => 'not now') });
    const test = await begun(t, [veto, small('b', diary)]);
    assert.deepEqual([states(test), test.routes()], [{ a: 'active', b: 'active' }, undefined]);
    assert.equal(await test.host.hooks.veto('beforeMount', 'photos'), 'not now');
    await test.host.apply(CONFIG);
    assert.deepEqual(test.routes(), ['a', 'b']);
    assert.equal(await test.host.hooks.veto('beforeMount', 'photos'), 'not now');
    assert.deepEqual(diary, ['+a', '+b'], 'nobody came up twice');
  });

  it('puts away a plugin whose routes are refused then, and goes on with the others', async (t) => {
    const diary: Diary = [];
    const test = await begun(t, [small('a', diary), small('b', diary), small('c', diary)], ['b']);
    await test.host.apply(CONFIG);
    assert.deepEqual(states(test), { a: 'active', b: 'failed', c: 'active' });
    assert.match(test.host.list()[1]?.reason ?? '', /the route of b is taken/);
    assert.deepEqual(test.routes(), ['a', 'c']);
    assert.deepEqual(diary, ['+a', '+b', '+c', '-b']);
  });

  it('lets wait whoever needs a service of such a plugin', async (t) => {
    const diary: Diary = [];
    const lamp = small('a', diary, { declare: (ctx) => void ctx.provide('lamp', () => ({ color: 'red' })) });
    const test = await begun(t, [lamp, small('b', diary, { requires: ['lamp'] })], ['a']);
    await test.host.apply(CONFIG);
    assert.deepEqual(states(test), { a: 'failed', b: 'waiting' });
    assert.deepEqual(diary, ['+a', '+b', '-b', '-a']);
  });

  it('keeps all shut while the routes of who lets people in are refused', async (t) => {
    const test = await begun(t, [small('a', [], { guard: true }), small('b', [])], ['a']);
    await test.host.apply(CONFIG);
    assert.deepEqual([states(test), test.guards()], [{ a: 'failed', b: 'active' }, ['a']]);
  });
});
