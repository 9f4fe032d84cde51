import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { Joi } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
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
const off = (...names: string[]) => ({
  plugins: Object.fromEntries(names.map((name) => [name, { enabled: false }])),
});
const page = (path: string, text: string) => ({ method: 'GET', path, handler: () => text }) as const;

describe('plugin host', () => {
  it('activates by name and disposes backwards', async () => {
    const diary: Diary = [];
    const test = await createTestHost({ plugins: [small('c', diary), small('a', diary), small('b', diary)] });
    assert.deepEqual(test.effects(), ['a: a', 'b: b', 'c: c']);
    await test.close();
    assert.deepEqual(diary, ['+a', '+b', '+c', '-c', '-b', '-a']);
  });

  it('switches a plugin off and on at run time and touches no other', async (t) => {
    const diary: Diary = [];
    const test = await open(t, [
      small('a', diary, { declare: (ctx) => ctx.route(page('/a', 'A')) }),
      small('b', diary),
    ]);
    assert.equal((await test.inject('/a')).payload, 'A');
    await test.configure(off('a'));
    assert.deepEqual(states(test), { a: 'disabled', b: 'active' });
    assert.equal((await test.inject('/a')).statusCode, 404);
    await test.configure({});
    assert.equal((await test.inject('/a')).payload, 'A');
    assert.deepEqual(diary, ['+a', '+b', '-a', '+a']);
  });

  it("changes a plugin's log level, also of loggers made before, without another instance", async (t) => {
    const diary: Diary = [];
    const collected = collectLog();
    collected.log.level = 'info';
    const made: Record<string, PluginContext<never>['log'][]> = {};
    const chatty = (name: string) =>
      small(name, diary, {
        declare: ({ log }) => {
          const child = log.child({ depth: 1 });
          made[name] = [log, child, child.child({ depth: 2 })];
        },
      });
    const test = await open(t, [chatty('a'), chatty('b')], { log: collected.log });
    const said = (): unknown[] => {
      const before = collected.entries.length;
      for (const name of ['a', 'b']) for (const log of made[name] ?? []) log.debug('hm');
      return collected.entries
        .slice(before)
        .map(({ plugin, depth = 0 }) => `${String(plugin)} ${String(depth)}`);
    };
    assert.deepEqual(said(), []);
    const level = (log_level: string) => ({ plugins: { a: { log_level } } });
    await test.configure(level('debug'));
    assert.deepEqual(said(), ['a 0', 'a 1', 'a 2']);
    await test.configure(level('silent'));
    assert.equal(made['a']?.[1]?.isLevelEnabled('fatal'), false);
    await test.configure({});
    assert.deepEqual([said(), made['a']?.map((log) => log.level)], [[], ['info', 'info', 'info']]);
    assert.deepEqual(diary, ['+a', '+b']);
  });

  it('leaves a plugin off that is off by default', async (t) => {
    const test = await open(t, [small('a', [], { enabledByDefault: false })]);
    assert.deepEqual(states(test), { a: 'disabled' });
    await test.configure({ plugins: { a: { enabled: true } } });
    assert.deepEqual(states(test), { a: 'active' });
  });

  it("knows a third party's plugin by its name", async (t) => {
    const test = await open(t, [small('a', []), small('b', [])], { strangers: ['b'] });
    assert.deepEqual(
      ['a', 'b', 'c'].map((name) => test.host.isStranger(name)),
      [false, true, false],
    );
  });

  it('tells the reason of the disposal', async () => {
    const reasons: unknown[] = [];
    const watch = small('a', [], {
      declare: (ctx) => {
        ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason));
      },
    });
    const test = await createTestHost({ plugins: [watch] });
    await test.configure(off('a'));
    await test.configure({});
    await test.close();
    assert.deepEqual(reasons, ['disable', 'shutdown']);
  });

  it('disposes the old plugin before the new one is activated', async (t) => {
    const diary: Diary = [];
    const test = await open(t, [small('a', diary, { version: '1.0.0' })]);
    await test.setPlugins([small('a', diary, { version: '2.0.0' })]);
    assert.deepEqual(diary, ['+a', '-a', '+a']);
    assert.equal(test.info('a').version, '2.0.0');
  });

  it('keeps the version that runs while the table waits to be brought to the form of the new one', async (t) => {
    const diary: Diary = [];
    const one = (version: string, key: string, migrate?: () => object) =>
      small('a', diary, {
        version,
        config: {
          schema: Joi.object({ [key]: Joi.number().default(1) }) as never,
          ...(migrate && { migrate: migrate as never }),
        },
      });
    const config = { plugins: { a: { enabled: true, old: 3 } } };
    const test = await open(t, [one('1.0.0', 'old')], { strangers: ['a'], config });
    await test.setPlugins([one('2.0.0', 'fresh', () => ({ fresh: 3 }))]);
    assert.match(test.info('a').reason ?? '', /old is not allowed; "mountkeeper plugin migrate a" shows it/);
    assert.deepEqual(diary, ['+a'], 'the former one runs on');
    await test.configure({ plugins: { a: { enabled: true, fresh: 3 } } });
    assert.deepEqual([test.info('a').state, test.info('a').reason], ['active', undefined]);
    assert.deepEqual(diary, ['+a', '-a', '+a']);
  });

  it('makes one change of a burst, with the latest document', async (t) => {
    const diary: Diary = [];
    const test = await open(t, [small('a', diary), small('b', diary)]);
    diary.length = 0;
    const documents = await Promise.all(
      [off('a'), {}, off('a', 'b'), {}, off('b')].map(async (document) => {
        const check = await test.config.check(
          `connections = []\n${Object.keys((document as { plugins?: object }).plugins ?? {})
            .map((name) => `[plugins.${name}]\nenabled = false\n`)
            .join('')}`,
          'file',
        );
        assert.ok(check.ok);
        return check.loaded;
      }),
    );
    await Promise.all(documents.map((loaded) => test.host.apply(loaded)));
    assert.deepEqual(states(test), { a: 'active', b: 'disabled' });
    assert.deepEqual(diary, ['-a', '-b', '+a'], 'the three documents in between were never applied');
  });

  it('answers 503 on the routes of a plugin that is coming up, and serves all others', async (t) => {
    let ready: () => void = () => undefined;
    const slow = small('slow', [], {
      enabledByDefault: false,
      declare: (ctx) => {
        ctx.route(page('/slow', 'there'));
        ctx.effect(
          'slow start',
          () =>
            new Promise((resolve) => {
              ready = () => resolve(() => undefined);
            }),
        );
      },
    });
    const test = await open(t, [slow, small('b', [], { declare: (ctx) => ctx.route(page('/b', 'B')) })]);
    const applied = test.configure({ plugins: { slow: { enabled: true } } });
    await test.advance(0);
    let answer = await test.inject('/slow');
    await stepUntil(
      'the route is there',
      () => answer.statusCode !== 404,
      async () => {
        answer = await test.inject('/slow');
      },
    );
    assert.equal(answer.statusCode, 503);
    assert.ok(answer.headers['retry-after']);
    assert.equal((await test.inject('/b')).payload, 'B');
    ready();
    await applied;
    assert.equal((await test.inject('/slow')).payload, 'there');
  });

  it('builds nothing anew when neither the set nor a declaration changes', async (t) => {
    let builds = 0;
    const test = await open(t, [
      small('a', [], {
        config: {
          schema: Joi.object({ depth: Joi.number().default(1).description('d').meta({ tier: 'live' }) }),
        },
        declare: (ctx) =>
          ctx.hapi(
            {
              name: 'counted',
              register: () => {
                builds += 1;
              },
            },
            {},
          ),
      }),
    ]);
    assert.equal(builds, 1);
    await test.configure({ cache: { min_free_space: '2G' } });
    await test.configure({ plugins: { a: { depth: 2 } } });
    assert.equal(builds, 1);
  });

  it('refuses declarations that come after register() and uses that come before activation', async (t) => {
    const late: unknown[] = [];
    const attempt = (fn: () => unknown) => {
      try {
        fn();
      } catch (error) {
        late.push((error as Error).message);
      }
    };
    await open(t, [
      small('a', [], {
        declare: (ctx) => {
          attempt(() => ctx.use('clock'));
          attempt(() => ctx.config);
          ctx.effect('late', () => {
            attempt(() => ctx.tap('afterMount', () => undefined));
            attempt(() => ctx.route(page('/late', '')));
            attempt(() => ctx.use('mounter'));
            assert.equal(typeof ctx.use('clock').now(), 'number');
            return () => undefined;
          });
        },
      }),
    ]);
    const [first, second, ...rest] = late.slice(-5) as string[];
    assert.match(first!, /reached for ctx\.use\("clock"\) before it was active/);
    assert.match(second!, /reached for ctx\.config before/);
    assert.match(rest[0]!, /called ctx\.tap\(\) after register\(\) had returned/);
    assert.match(rest[1]!, /called ctx\.route\(\) after/);
    assert.match(rest[2]!, /uses the service "mounter", but nobody provides it/);
  });

  it('has a plugin invalid whose register throws, waits or taps a hook that does not exist', async (t) => {
    const test = await open(t, [
      small('throws', [], {
        declare: () => {
          throw new Error('no luck');
        },
      }),
      { ...small('waits', []), register: (async () => undefined) as unknown as () => void },
      small('taps', [], { declare: (ctx) => ctx.tap('afterLunch' as 'afterMount', () => undefined) }),
      small('good', []),
    ]);
    assert.deepEqual(states(test), { good: 'active', taps: 'invalid', throws: 'invalid', waits: 'invalid' });
    assert.match(test.info('taps').reason!, /there is no hook "afterLunch"; the hooks are beforeMount,/);
    assert.match(test.info('waits').reason!, /register\(\) must declare at once/);
  });

  it('collects status, commands, jobs and intervals from what is active', async (t) => {
    const blinks: number[] = [];
    const runs: string[] = [];
    const test = await open(t, [
      small('a', [], {
        declare: (ctx) => {
          ctx.status('nasOffline', { default: false, read: () => true });
          ctx.shareStatus((share) => ({ warmupTotal: share.length }));
          ctx.handle('blink', async (times) => {
            blinks.push(times);
          });
          ctx.job({
            name: 'nightly',
            cron: () => '0 3 * * *',
            run: async () => {
              runs.push('job');
            },
          });
          ctx.every({
            name: 'tick',
            ms: () => 1_000,
            run: async () => {
              runs.push('tick');
              await ctx.send('blink', 3);
            },
          });
        },
      }),
    ]);
    assert.equal(test.status().nasOffline, true);
    assert.equal(test.shareStatus('photos').warmupTotal, 6);
    assert.deepEqual(test.effects(), ['a: a', 'a: every tick', 'a: job nightly']);
    await test.advance(1_000);
    await test.runJob('a/nightly');
    assert.deepEqual([runs, blinks], [['tick', 'job'], [3]]);
    assert.deepEqual(test.sent, [{ command: 'blink', args: [3] }]);
    await test.configure(off('a'));
    assert.equal(test.status().nasOffline, false);
    assert.deepEqual(test.jobs(), []);
    assert.deepEqual(test.host.handlers('blink'), []);
    await test.advance(5_000);
    assert.equal(runs.length, 2);
  });

  it('lets doctor look through services and hooks without any effect', async (t) => {
    const diary: Diary = [];
    const test = await open(t, [
      small('a', diary, {
        enabledByDefault: false,
        declare: (ctx) => {
          ctx.provide('lamp', () => ({ color: 'red' }));
          ctx.tap('collectChecks', () => [
            { title: ctx.use('lamp').color, result: 'ok', detail: '', advice: '' },
          ]);
        },
      }),
    ]);
    const check = await test.config.check('connections = []\n[plugins.a]\nenabled = true', 'file');
    assert.ok(check.ok);
    await test.host.inspect(check.loaded);
    assert.deepEqual(
      (await test.hooks.collect('collectChecks', check.loaded.config)).map((one) => one.title),
      ['red'],
    );
    assert.deepEqual(diary, []);
  });

  it('says in the log which plugin changed its state', async (t) => {
    const { log, entries } = collectLog();
    const test = await open(t, [small('a', []), small('b', [])], { log });
    const before = entries.length;
    await test.configure(off('b'));
    const said = entries.slice(before).filter((line) => line['state'] !== undefined);
    assert.deepEqual(
      said.map((line) => [line['plugin'], line['state']]),
      [['b', 'disabled']],
    );
  });
});

/**
 * A change of the set never waits for anything here, so others get their turn only where they are given it.
 */
const turn = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe('hooks of a changing plugin set', () => {
  it('always come from one whole set, over 60 changes under constant calls', async (t) => {
    const tap = (name: string) =>
      small(name, [], {
        declare: (ctx) => ctx.tap('collectNotices', () => [{ level: 'info', message: name }]),
      });
    const sets = [['a', 'b'], ['b', 'c'], ['c']];
    const steady = tap('steady');
    const test = await open(t, [steady, ...sets[0]!.map(tap)]);
    let ended = false;
    let calls = 0;
    const caller = (async () => {
      while (!ended) {
        const messages = (await test.hooks.collect('collectNotices')).map((notice) => notice.message);
        assert.ok(messages.includes('steady'), messages.join());
        assert.equal(new Set(messages).size, messages.length, messages.join());
        calls += 1;
        if (calls % 20 === 0) await turn();
      }
    })();
    try {
      for (let round = 0; round < 60; round += 1) {
        await test.setPlugins([steady, ...sets[round % sets.length]!.map(tap)]);
        await turn();
      }
    } finally {
      ended = true;
    }
    await caller;
    assert.ok(calls > 600, `${String(calls)} calls`);
  });
});
