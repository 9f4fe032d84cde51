import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin, TestHostOptions } from 'mountkeeper/testing';
import { createClock } from '../../../core/platform/clock.js';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Small } from '../../support/plugins/small-plugins.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { until } from '../../support/platform/wait.ts';

/** Nothing else runs meanwhile. */
function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

async function open(t: TestContext, plugin: AnyPlugin, options: Partial<TestHostOptions> = {}) {
  const { log, entries } = collectLog();
  const test = await createTestHost({ plugins: [plugin], clock: createClock(), log, ...options });
  t.after(() => test.close());
  const said = () =>
    entries
      .filter((line) => String(line['msg']).startsWith('plugin held up everything else'))
      .map(({ plugin: name, at, ms }) => ({ name, at, isRight: Number(ms) >= 300 }));
  return { test, said };
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
    const { test, said } = await open(
      t,
      small('late', [], {
        declare: (ctx) =>
          ctx.tap('afterMount', async () => {
            await new Promise((resolve) => setTimeout(resolve, 400));
          }),
      }),
    );
    await test.hooks.observe('afterMount', 'photos' as never);
    assert.deepEqual(said(), []);
  });
});
