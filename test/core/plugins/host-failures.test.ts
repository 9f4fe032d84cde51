import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { Joi } from 'mountkeeper';
import { createClock } from '../../../core/platform/clock.js';
import { createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin, TestHost, TestHostOptions } from 'mountkeeper/testing';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Diary } from '../../support/plugins/small-plugins.ts';
import { stepUntil } from '../../support/platform/wait.ts';
import { collectLog } from '../../support/platform/collected-log.ts';

async function open(
  t: TestContext,
  plugins: readonly AnyPlugin[],
  options: Partial<TestHostOptions> = {},
): Promise<TestHost> {
  const test = await createTestHost({ plugins, ...options });
  t.after(() => test.close());
  return test;
}

const states = (test: TestHost) => Object.fromEntries(test.list().map((info) => [info.name, info.state]));
const page = (path: string, text: string) => ({ method: 'GET', path, handler: () => text }) as const;
const route = (path: string, text: string) => ({
  declare: (ctx: Parameters<NonNullable<Parameters<typeof small>[2]>['declare'] & object>[0]) =>
    ctx.route(page(path, text)),
});
const broken = (message: string) => ({
  declare: (ctx: Parameters<NonNullable<Parameters<typeof small>[2]>['declare'] & object>[0]) =>
    ctx.effect('port', () => {
      throw new Error(message);
    }),
});
const port = Joi.number().default(1).description('the port').meta({ tier: 'protocol' });

describe('a plugin whose effect fails', () => {
  it('is failed with the reason, what it started is released, and the others go on', async (t) => {
    const diary: Diary = [];
    const test = await open(t, [small('a', diary, broken('port 445 is taken')), small('b', diary)]);
    assert.deepEqual(states(test), { a: 'failed', b: 'active' });
    assert.equal(test.info('a').reason, 'effect "port": port 445 is taken');
    assert.deepEqual(test.effects(), ['b: b']);
    assert.deepEqual(
      diary.filter((line) => line.endsWith('a')),
      ['+a', '-a'],
    );
    assert.deepEqual(
      diary.filter((line) => line.endsWith('b')),
      ['+b'],
    );
  });

  it('has no routes and no hooks left', async (t) => {
    const plugin = small('a', [], {
      declare: (ctx) => {
        ctx.route(page('/a', 'A'));
        ctx.tap('beforeMount', () => 'no');
        ctx.effect('port', () => {
          throw new Error('taken');
        });
      },
    });
    const test = await open(t, [plugin]);
    assert.equal((await test.inject('/a')).statusCode, 404);
    assert.equal(await test.hooks.veto('beforeMount', 'photos'), undefined);
  });

  it('gives way to what ran before: former version, former routes', async (t) => {
    const diary: Diary = [];
    const test = await open(t, [small('a', diary, route('/old', 'old'))]);
    await test.setPlugins([
      small('a', diary, {
        version: '2.0.0',
        declare: (ctx) => {
          ctx.route(page('/new', 'new'));
          ctx.effect('port', () => {
            throw new Error('taken');
          });
        },
      }),
    ]);
    assert.deepEqual(states(test), { a: 'failed' });
    assert.equal(test.info('a').reason, 'effect "port": taken; version 1.0.0 as it was before runs on');
    assert.equal((await test.inject('/old')).payload, 'old');
    assert.equal((await test.inject('/new')).statusCode, 404);
    assert.deepEqual(diary, ['+a', '-a', '+a', '-a', '+a']);
  });

  it('does not come back in its former version once another has taken its place, and says so', async (t) => {
    const diary: Diary = [];
    const notice = (ctx: { tap: Function }, message: string): void => {
      ctx.tap('collectNotices', () => [{ level: 'info', message }]);
    };
    const test = await open(t, [
      small('d', diary, {
        declare: (ctx) => {
          ctx.route(page('/place', 'D'));
          notice(ctx, 'd');
        },
      }),
    ]);
    await test.setPlugins([
      small('b', diary, {
        declare: (ctx) => {
          ctx.route(page('/place', 'B'));
          notice(ctx, 'b');
        },
      }),
      small('d', diary, { version: '2.0.0', ...broken('taken') }),
    ]);
    assert.deepEqual(states(test), { b: 'active', d: 'failed' });
    assert.match(
      test.info('d').reason!,
      /^effect "port": taken; what ran before could not be brought back: .*\/place/,
    );
    assert.deepEqual(diary, ['+d', '-d', '+b', '+d', '-d'], 'd is not up without its route');
    assert.equal((await test.inject('/place')).payload, 'B');
    assert.deepEqual(
      (await test.hooks.collect('collectNotices')).map((one) => one.message),
      ['b'],
    );
  });

  it('runs on with its former configuration and comes back with one that works', async (t) => {
    const seen: number[] = [];
    const plugin = small('a', [], {
      config: { schema: Joi.object({ port }) },
      declare: (ctx) =>
        ctx.effect('port', () => {
          const { port: wanted } = ctx.config as { port: number };
          if (wanted === 13) throw new Error('port 13 is taken');
          seen.push(wanted);
          return () => undefined;
        }),
    });
    const test = await open(t, [plugin]);
    await test.configure({ plugins: { a: { port: 13 } } });
    assert.match(test.info('a').reason!, /port 13 is taken; version 1\.0\.0 as it was before runs on/);
    await test.configure({ plugins: { a: { port: 13 } }, cache: { min_free_space: '2G' } });
    assert.deepEqual(seen, [1, 1], 'what runs is not disturbed by another try with the same configuration');
    await test.configure({ plugins: { a: { port: 1 } } });
    assert.deepEqual([states(test), seen], [{ a: 'active' }, [1, 1]]);
    await test.configure({ plugins: { a: { port: 2 } } });
    assert.deepEqual([states(test), seen], [{ a: 'active' }, [1, 1, 2]]);
  });

  it('whose former instance cannot come back either, says both', async (t) => {
    let isTaken = false;
    const fickle = (version: string) =>
      small('a', [], {
        version,
        declare: (ctx) =>
          ctx.effect('port', () => {
            if (isTaken) throw new Error(`taken for ${version}`);
            return () => {
              isTaken = true;
            };
          }),
      });
    const test = await open(t, [fickle('1.0.0')]);
    await test.setPlugins([fickle('2.0.0')]);
    assert.deepEqual(states(test), { a: 'failed' });
    assert.match(
      test.info('a').reason!,
      /taken for 2\.0\.0; what ran before could not be brought back: .*taken for 1\.0\.0/,
    );
    isTaken = false;
    await test.setPlugins([fickle('1.0.0'), small('b', [])]);
    assert.deepEqual(states(test), { a: 'active', b: 'active' });
  });

  it('and one that cannot even be declared, give way to what runs already', async (t) => {
    const diary: Diary = [];
    const test = await open(t, [small('a', diary, route('/old', 'old'))]);
    await test.setPlugins([
      small('a', diary, {
        version: '2.0.0',
        declare: () => {
          throw new Error('half saved');
        },
      }),
    ]);
    assert.deepEqual(states(test), { a: 'invalid' });
    assert.equal(test.info('a').reason, 'half saved; version 1.0.0 as it was before runs on');
    assert.equal((await test.inject('/old')).payload, 'old');
    await test.configure({ plugins: { a: { enabled: false } } });
    assert.deepEqual([states(test), diary], [{ a: 'disabled' }, ['+a', '-a']]);
  });

  it('that hangs, is failed at its deadline and holds up nobody for longer', async (t) => {
    const test = await open(
      t,
      [
        small('a', [], { declare: (ctx) => ctx.effect('never', () => new Promise(() => undefined)) }),
        small('b', []),
      ],
      { clock: createClock(), limits: { acquireMs: 50 } },
    );
    assert.deepEqual(states(test), { a: 'failed', b: 'active' });
    assert.equal(test.info('a').reason, 'effect "never": did not finish within 0.05 s');
  });

  it('that is still coming up when the daemon stops, holds up the stop no longer', async () => {
    const diary: Diary = [];
    const slow = small('slow', diary, {
      enabledByDefault: false,
      declare: (ctx) =>
        ctx.effect('slow', async (signal) => {
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
          diary.push(`${String(signal.reason)}`);
          return () => {
            diary.push('late release');
          };
        }),
    });
    const test = await createTestHost({ plugins: [slow, small('b', diary)] });
    const applied = test.configure({ plugins: { slow: { enabled: true } } });
    await test.advance(0);
    await stepUntil(
      'it comes up',
      () => diary.includes('+slow'),
      () => test.advance(0),
    );
    await test.close();
    await applied;
    assert.deepEqual(new Set(diary), new Set(['+b', '+slow', 'shutdown', 'late release', '-slow', '-b']));
    assert.equal(diary.at(-1), '-b');
  });

  it('at its release is named in the log; the change goes on', async (t) => {
    const { log, entries } = collectLog();
    const test = await open(
      t,
      [
        small('a', [], {
          declare: (ctx) =>
            ctx.effect('sticky', () => () => {
              throw new Error('busy');
            }),
        }),
        small('b', []),
      ],
      { log },
    );
    await test.configure({ plugins: { a: { enabled: false } } });
    assert.deepEqual(states(test), { a: 'disabled', b: 'active' });
    assert.match(JSON.stringify(entries), /"plugin":"a".*release \\"sticky\\".*busy/);
  });
});

describe('plugins in conflict', () => {
  it('keeps the old routes when a new plugin conflicts', async (t) => {
    const test = await open(t, [small('a', [], route('/x', 'first'))]);
    await test.setPlugins([
      small('a', [], route('/x', 'first')),
      small('b', [], route('/x', 'second')),
      small('c', [], route('/c', 'C')),
    ]);
    assert.deepEqual(states(test), { a: 'active', b: 'failed', c: 'active' });
    assert.match(test.info('b').reason!, /routes of plugin b: New route \/x conflicts with existing \/x/);
    assert.equal((await test.inject('/x')).payload, 'first');
    assert.equal((await test.inject('/c')).payload, 'C');
  });

  it('leaves the living version of a plugin alone whose new version conflicts', async (t) => {
    const diary: Diary = [];
    const other = small('b', diary, route('/b', 'B'));
    const test = await open(t, [small('a', diary, route('/a', 'A')), other]);
    await test.setPlugins([small('a', diary, { version: '2.0.0', ...route('/b', 'mine') }), other]);
    assert.match(
      test.info('a').reason!,
      /conflicts with existing.*; version 1\.0\.0 as it was before runs on/,
    );
    assert.equal((await test.inject('/a')).payload, 'A');
    assert.equal((await test.inject('/b')).payload, 'B');
    assert.deepEqual(diary, ['+a', '+b']);
  });

  it('tries again once the other one is gone', async (t) => {
    const test = await open(t, [small('a', [], route('/x', 'A')), small('b', [], route('/x', 'B'))]);
    assert.deepEqual(states(test), { a: 'active', b: 'failed' });
    await test.configure({ plugins: { a: { enabled: false } } });
    assert.deepEqual(states(test), { a: 'disabled', b: 'active' });
    assert.equal((await test.inject('/x')).payload, 'B');
  });

  it('takes nothing of a hapi plugin that never finishes its registration', async (t) => {
    const test = await open(t, [small('a', [])]);
    const stuck = small('stuck', [], {
      declare: (ctx) => ctx.hapi({ name: 'x', register: () => new Promise<void>(() => undefined) }, {}),
    });
    let isDone = false;
    const applied = test.setPlugins([small('a', []), stuck]).finally(() => {
      isDone = true;
    });
    await stepUntil(
      'the registration is given up',
      () => isDone,
      () => test.advance(1_000),
    );
    await applied;
    assert.deepEqual(states(test), { a: 'active', stuck: 'failed' });
    assert.match(test.info('stuck').reason!, /not ready within 5 s/);
  });

  it('takes all of plugins that are slow to register, each within its own time', async (t) => {
    const test = await open(t, []);
    let turns = 0;
    const slow = (name: string) =>
      small(name, [], {
        declare: (ctx) =>
          ctx.hapi(
            { name: `${name}-native`, register: () => test.clock.sleep(4_000).then(() => void turns++) },
            {},
          ),
      });
    let isDone = false;
    const applied = test.setPlugins(['a', 'b', 'c', 'd'].map(slow)).finally(() => {
      isDone = true;
    });
    await stepUntil(
      'all are registered',
      () => isDone,
      () => test.advance(1_000),
    );
    await applied;
    assert.deepEqual(states(test), { a: 'active', b: 'active', c: 'active', d: 'active' });
    assert.equal(turns, 4, 'none was tried again');
  });

  for (const [what, declare] of [
    ['provides the service "lamp"', (ctx) => ctx.provide('lamp', () => ({ color: 'red' }))],
    ['fills the status field "nasOffline"', (ctx) => ctx.status('nasOffline', () => true)],
    [
      'fills the field "warmupDone" of each share',
      (ctx) => ctx.shareStatus({ defaults: { warmupDone: 0 }, read: () => ({}) }),
    ],
    ['handles the command "blink"', (ctx) => ctx.handle('blink', async () => undefined)],
    [
      'adds the subcommand "blink"',
      (ctx) => ctx.cli({ name: 'blink', usage: '', summary: '', run: async () => 0 }),
    ],
    ['adds the metric "m"', (ctx) => ctx.metric({ name: 'm', help: '', read: () => 1 })],
  ] satisfies [string, NonNullable<NonNullable<Parameters<typeof small>[2]>['declare']>][]) {
    it(`fails the later of two plugins of which each ${what}, naming both`, async (t) => {
      const test = await open(t, [small('b', [], { declare }), small('a', [], { declare }), small('c', [])]);
      assert.deepEqual(states(test), { a: 'active', b: 'failed', c: 'active' });
      assert.equal(
        test.info('b').reason,
        `it ${what}, which the plugin "a" does already; switch one of the two off`,
      );
    });
  }

  for (const [what, mine, others] of [
    ['a counter with the family of a gauge', { name: 'garden_total', type: 'counter' }, { name: 'garden' }],
    [
      "a gauge with the name of a counter's family",
      { name: 'garden' },
      { name: 'garden_total', type: 'counter' },
    ],
    [
      "a gauge with the name of a histogram's sum",
      { name: 'garden_sum' },
      { name: 'garden', type: 'histogram' },
    ],
    [
      'a histogram that a counter has as its family',
      { name: 'garden', type: 'histogram' },
      { name: 'garden_total', type: 'counter' },
    ],
  ] as const)
    it(`fails a plugin that declares ${what}, naming the plugin that has it`, async (t) => {
      const declaring = (name: string, metric: object) =>
        small(name, [], {
          declare: (ctx) => ctx.metric({ help: '', buckets: [1], read: () => 1, ...metric } as never),
        });
      const test = await open(t, [
        declaring('b', mine),
        declaring('a', others),
        declaring('c', { name: 'c' }),
      ]);
      assert.deepEqual(states(test), { a: 'active', b: 'failed', c: 'active' });
      const name = mine.name === 'garden_sum' ? 'garden_sum' : 'garden';
      assert.equal(
        test.info('b').reason,
        `it shows the name "${name}" at /metrics, which the plugin "a" does already; switch one of the two off`,
      );
    });

  it('fails a plugin that declares one job twice', async (t) => {
    const job = { name: 'j', cron: () => '', run: async () => undefined };
    const test = await open(t, [
      small('a', [], {
        declare: (ctx) => {
          ctx.job(job);
          ctx.job(job);
        },
      }),
    ]);
    assert.equal(test.info('a').reason, 'it declares a\'s job "j" twice');
  });
});

describe('a guard', () => {
  it('that fails to come up keeps the whole door shut', async (t) => {
    const test = await open(t, [
      small('lock', [], { guard: true, ...broken('no key') }),
      small('b', [], route('/b', 'B')),
    ]);
    assert.deepEqual(states(test), { b: 'active', lock: 'failed' });
    assert.equal((await test.inject('/b')).statusCode, 503);
    await test.configure({ plugins: { lock: { enabled: false } } });
    assert.equal((await test.inject('/b')).payload, 'B');
  });

  it('that waits for a service keeps it shut as well', async (t) => {
    const test = await open(t, [
      small('lock', [], { guard: true, requires: ['lamp'] }),
      small('b', [], route('/b', 'B')),
    ]);
    assert.deepEqual(states(test), { b: 'active', lock: 'waiting' });
    assert.equal((await test.inject('/b')).statusCode, 503);
  });

  it('whose routes are refused keeps it shut', async (t) => {
    const test = await open(t, [small('b', [], route('/b', 'B'))]);
    await test.setPlugins([
      small('b', [], route('/b', 'B')),
      small('lock', [], { guard: true, ...route('/b', 'mine') }),
    ]);
    assert.equal(test.info('lock').state, 'failed');
    assert.equal((await test.inject('/b')).statusCode, 503);
  });
});
