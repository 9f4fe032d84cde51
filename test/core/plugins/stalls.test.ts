import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin, TestHost, TestHostOptions } from 'mountkeeper/testing';
import { createClock } from '../../../core/platform/clock.js';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Small } from '../../support/plugins/small-plugins.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { until } from '../../support/platform/wait.ts';

/** Nothing else runs meanwhile. */
function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

/** Until the process has worked so long, however busy the machine is. */
function work(ms: number): void {
  for (const end = process.cpuUsage().user + ms * 1_000; process.cpuUsage().user < end;);
}

const pause = (ms = 20): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function open(t: TestContext, plugin: AnyPlugin, options: Partial<TestHostOptions> = {}) {
  const { log, entries } = collectLog();
  const test = await createTestHost({ plugins: [plugin], clock: createClock(), log, ...options });
  t.after(() => test.close());
  const said = () =>
    entries
      .filter((line) => String(line['msg']).startsWith('plugin held up everything else'))
      .map(({ plugin: name, at, ms }) => ({ name, at, isRight: Number(ms) >= 300 }));
  /** Of what held up the loop after an `await`. */
  const stood = () =>
    entries
      .filter((line) => String(line['msg']).startsWith('everything else stood still'))
      .map(({ plugin: name, at, candidates }) => (candidates ? { candidates } : { name, at }));
  return { test, said, stood };
}

interface AnyServer {
  readonly auth: {
    scheme(name: string, scheme: () => object): void;
    strategy(name: string, scheme: string): void;
  };
  ext(event: object): void;
  register(plugin: object): Promise<void>;
  route(routes: readonly object[]): void;
}

describe('a plugin that holds up everything else', () => {
  it('in a hook is named, once a minute', async (t) => {
    const { test, said } = await open(
      t,
      small('slow', [], { declare: (ctx) => ctx.tap('afterMount', () => block(300)) }),
    );
    for (let count = 0; count < 2; count += 1) await test.hooks.observe('afterMount', 'photos' as never);
    assert.deepEqual(said(), [{ name: 'slow', at: 'hook afterMount', isRight: true }]);
  });

  it('in a hook that is answered at once is named as well', async (t) => {
    const { test, said } = await open(
      t,
      small('slow', [], {
        declare: (ctx) =>
          ctx.tap('resolveBandwidth', () => {
            block(300);
            return { up: 1, down: 1 };
          }),
      }),
    );
    assert.deepEqual(test.hooks.resolve('resolveBandwidth', { up: 0, down: 0 }), { up: 1, down: 1 });
    assert.deepEqual(said(), [{ name: 'slow', at: 'hook resolveBandwidth', isRight: true }]);
  });

  it('in a route is named, also in one of a native hapi plugin, and its answer is as it was', async (t) => {
    const native = {
      name: 'native',
      register: (server: { route(route: object): void }) =>
        server.route({
          method: 'GET',
          path: '/native',
          options: { bind: { word: 'bound' } },
          handler(this: { word: string }) {
            block(300);
            return this.word;
          },
        }),
    };
    const { test, said } = await open(
      t,
      small('slow', [], {
        declare: (ctx) => {
          ctx.route({
            method: 'GET',
            path: '/own',
            handler: () => {
              block(300);
              return 'own';
            },
          });
          ctx.hapi(native as never, {});
        },
      }),
    );
    assert.deepEqual(
      [(await test.inject('/own')).payload, (await test.inject('/native')).payload],
      ['own', 'bound'],
    );
    assert.deepEqual(said(), [
      { name: 'slow', at: 'route GET /own', isRight: true },
      { name: 'slow', at: 'route GET /native', isRight: true },
    ]);
  });

  it("in an extension of a third party's native hapi plugin is named", async (t) => {
    const native = {
      name: 'native',
      register: (server: { route(route: object): void; ext(type: string, method: object): void }) => {
        server.route({ method: 'GET', path: '/native', handler: () => 'as it was' });
        server.ext('onPreHandler', (_: unknown, h: { continue: symbol }) => {
          block(300);
          return h.continue;
        });
      },
    };
    const declare: Small['declare'] = (ctx) => ctx.hapi(native as never, {});
    const { test, said } = await open(t, small('slow', [], { declare }), {
      strangers: ['slow'],
      config: { plugins: { slow: { enabled: true } } },
    });
    assert.equal((await test.inject('/ext/slow/native')).payload, 'as it was');
    assert.deepEqual(said(), [{ name: 'slow', at: 'extension onPreHandler', isRight: true }]);
  });

  it('in an effect, an interval, a job or a command is named as well', async (t) => {
    let runs = 0;
    const { test, said } = await open(
      t,
      small('slow', [], {
        declare: (ctx) => {
          ctx.effect('dig', () => {
            block(300);
            return () => undefined;
          });
          ctx.every({
            name: 'water',
            ms: () => (runs > 0 ? 0 : 10),
            run: async () => {
              block(300);
              runs += 1;
            },
          });
          ctx.job({ name: 'prune', cron: () => '0 3 * * *', run: async () => block(300) });
          ctx.handle('blink', async () => block(300));
        },
      }),
    );
    await until('it has run', () => runs > 0, { timeoutMs: 30_000 });
    await test.runJob('slow/prune');
    await test.host.handle('blink', [1]);
    assert.deepEqual(
      said(),
      ['effect dig', 'interval water', 'job prune', 'command blink'].map((at) => ({
        name: 'slow',
        at,
        isRight: true,
      })),
    );
  });

  it('is none that only takes its time', async (t) => {
    const { test, said, stood } = await open(
      t,
      small('late', [], {
        declare: (ctx) =>
          ctx.tap('afterMount', async () => {
            await pause(1_000);
          }),
      }),
    );
    await test.hooks.observe('afterMount', 'photos' as never);
    await pause(200);
    assert.deepEqual([said(), stood()], [[], []]);
  });

  it('after an await, in a hook and in a route, is named as well', async (t) => {
    const slowly = async (): Promise<string> => {
      await pause();
      work(800);
      await pause();
      return 'as it was';
    };
    const slow = small('slow', [], {
      declare: (ctx) => {
        ctx.tap('afterMount', async () => void (await slowly()));
        ctx.route({ method: 'GET', path: '/slow', handler: slowly });
      },
    });
    const calls: Readonly<Record<string, (test: TestHost) => Promise<void>>> = {
      'hook afterMount': ({ hooks }) => hooks.observe('afterMount', 'photos' as never),
      'route GET /slow': async (test) => assert.equal((await test.inject('/slow')).payload, 'as it was'),
    };
    // Each with a host of its own, where the other one has not just ended.
    for (const [at, call] of Object.entries(calls)) {
      const { test, said, stood } = await open(t, slow);
      await call(test);
      await until(`${at} is named`, () => stood().length > 0, { timeoutMs: 30_000 });
      assert.deepEqual([stood(), said()], [[{ name: 'slow', at }], []]);
    }
  });

  it('in an extension, a scheme, a pre or a validation of our own native hapi plugins is named as well', async (t) => {
    const inner = {
      name: 'inner',
      register: (server: AnyServer) =>
        server.ext({
          type: 'onPreHandler',
          method(this: { word: string }, request: { app: object }, h: { continue: symbol }) {
            block(300);
            Object.assign(request.app, { said: this.word });
            return h.continue;
          },
          options: { bind: { word: 'bound' } },
        }),
    };
    const route = {
      method: 'GET',
      path: '/native',
      options: {
        auth: 'asked',
        validate: {
          query: (query: object) => {
            block(300);
            return { ...query, valid: 1 };
          },
        },
        pre: [
          [
            {
              assign: 'first',
              method: () => {
                block(300);
                return 'pre';
              },
            },
          ],
          () => null,
        ],
      },
      handler: ({ app, auth, pre, query }: Record<string, object>) => ({
        app,
        auth: auth?.['credentials' as never],
        pre,
        query,
      }),
    };
    const native = {
      name: 'native',
      register: async (server: AnyServer) => {
        server.auth.scheme('asking', () => ({
          authenticate: (_: unknown, h: { authenticated(of: object): unknown }) => {
            block(300);
            return h.authenticated({ credentials: { user: 'anna' } });
          },
        }));
        server.auth.strategy('asked', 'asking');
        await server.register(inner);
        server.route([route, { ...route, path: '/made', options: () => route.options }]);
      },
    };
    const { test, said } = await open(
      t,
      small('slow', [], { declare: (ctx) => ctx.hapi(native as never, {}) }),
    );
    const answer = {
      app: { said: 'bound' },
      auth: { user: 'anna' },
      pre: { first: 'pre' },
      query: { a: '1', valid: 1 },
    };
    assert.deepEqual(JSON.parse((await test.inject('/native?a=1')).payload), answer);
    assert.deepEqual(JSON.parse((await test.inject('/made?a=1')).payload), answer);
    const places = [
      'authentication asking',
      'validation of GET /native',
      'extension onPreHandler',
      'pre of GET /native',
      'validation of GET /made',
      'pre of GET /made',
    ];
    assert.deepEqual(
      said(),
      places.map((at) => ({ name: 'slow', at, isRight: true })),
    );
  });

  it('in a tab, its part or its action, or a service that is made is named as well', async (t) => {
    const tab = {
      id: 'beds',
      title: 'Beds',
      render: () => {
        block(300);
        return 'drawn';
      },
      parts: { one: () => block(300) },
      actions: { water: () => block(300) },
    };
    const { test, said } = await open(
      t,
      small('slow', [], {
        declare: (ctx) => {
          ctx.tab(tab as never);
          ctx.provide('gardener' as never, () => {
            block(300);
            return {} as never;
          });
        },
      }),
    );
    const tabs = () =>
      test.host
        .service('tabs')
        ?.list()
        .map((one) => one.tab) ?? [];
    const [owned] = tabs() as unknown as [typeof tab];
    assert.equal(tabs()[0], owned, 'the dashboard knows it again');
    assert.equal(owned.title, 'Beds');
    assert.equal(owned.render(), 'drawn');
    owned.parts.one();
    owned.actions.water();
    assert.deepEqual(
      said().map(({ at }) => at),
      ['service gardener', 'tab beds', 'tab beds, part one', 'tab beds, action water'],
    );
  });
});
