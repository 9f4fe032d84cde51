import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin } from 'mountkeeper/testing';
import { createClock } from '../../../core/platform/clock.js';
import { small } from '../../support/plugins/small-plugins.ts';
import { collectLog } from '../../support/platform/collected-log.ts';

/** Nothing else runs meanwhile. */
function block(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

async function open(t: TestContext, plugin: AnyPlugin) {
  const { log, entries } = collectLog();
  const test = await createTestHost({ plugins: [plugin], clock: createClock(), log });
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
