import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import type { PluginContext } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin, TestHost, TestHostOptions } from 'mountkeeper/testing';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Diary } from '../../support/plugins/small-plugins.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { until, whileTimePasses } from '../../support/platform/wait.ts';

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

describe('a plugin that takes long to come up', () => {
  it('holds up those alone who need its service when it comes up late', async (t) => {
    const diary: Diary = [];
    let comeUp = (): void => undefined;
    const late = new Promise<void>((resolve) => (comeUp = resolve));
    const slow = small('a', diary, {
      declare: (ctx) => {
        ctx.provide('lamp', () => ({ color: 'red' }));
        ctx.effect('slow', async () => {
          await late;
          return () => undefined;
        });
      },
    });
    const isUp = until('both that can are up', () => diary.includes('+b') && diary.includes('+c'), {
      timeoutMs: 5_000,
    });
    const opening = open(t, [
      slow,
      small('b', diary),
      small('c', diary),
      small('d', diary, { requires: ['lamp'] }),
    ]);
    await isUp;
    assert.ok(!diary.includes('+d'), diary.join());
    comeUp();
    assert.deepEqual(states(await opening), { a: 'active', b: 'active', c: 'active', d: 'active' });
    assert.equal(diary.at(-1), '+d');
  });
});

describe("a stranger's plugin that takes long to come up", () => {
  const laggard = (diary: Diary, coming: () => Promise<void>, version = '1.0.0') =>
    small('slow', diary, {
      version,
      declare: (ctx) => {
        ctx.provide('lamp', () => ({ color: version }));
        ctx.effect('coming', async () => {
          await coming();
          return () => {
            diary.push('let go');
          };
        });
      },
    });
  const switches = (on: Readonly<Record<string, boolean>> = {}) => ({
    plugins: Object.fromEntries(
      Object.entries({ slow: true, ...on }).map(([name, enabled]) => [name, { enabled }]),
    ),
  });
  const stranger = () => ({ clock: createManualClock(), strangers: ['slow'], config: switches() });
  const needy = (diary: Diary) => small('needy', diary, { requires: ['lamp'] });
  const gate = () => {
    let open = (): void => undefined;
    let refuse = (_error: Error): void => undefined;
    const passed = new Promise<void>((resolve, reject) => {
      open = resolve;
      refuse = reject;
    });
    passed.catch(() => undefined);
    return { passed, open: () => open(), refuse: (error: Error) => refuse(error) };
  };
  const soon = (what: string, is: () => boolean) => until(what, is, { timeoutMs: 10_000 });

  it('holds up no start and no later change; those who need it come up after it', async (t) => {
    const diary: Diary = [];
    const { passed, open: letIn } = gate();
    const options = stranger();
    const { clock } = options;
    const plugins = [laggard(diary, () => passed), needy(diary), small('other', diary)];
    const test = await whileTimePasses(clock, open(t, plugins, options));
    assert.deepEqual(states(test), { slow: 'waiting', needy: 'waiting', other: 'active' });
    assert.equal(test.info('slow').reason, 'it is coming up');
    await whileTimePasses(clock, test.configure(switches({ other: false })));
    assert.deepEqual(states(test), { slow: 'waiting', needy: 'waiting', other: 'disabled' });
    letIn();
    await soon('all are up', () => states(test)['needy'] === 'active');
    assert.equal(states(test)['slow'], 'active');
    assert.deepEqual(diary, ['+slow', '+other', '-other', '+needy'], 'and nothing twice');
  });

  it('is let go of when it is switched off meanwhile, or everything ends', async () => {
    for (const end of ['off', 'close']) {
      const diary: Diary = [];
      const { passed, open: letIn } = gate();
      const options = { plugins: [laggard(diary, () => passed)], ...stranger() };
      const test = await whileTimePasses(options.clock, createTestHost(options));
      await whileTimePasses(
        options.clock,
        end === 'off' ? test.configure(switches({ slow: false })) : test.close(),
      );
      assert.deepEqual(diary, ['+slow', '-slow'], end);
      letIn();
      await soon('what came up after all is let go', () => diary.includes('let go'));
      await test.close();
      assert.deepEqual(diary, ['+slow', '-slow', 'let go'], end);
    }
  });

  it('gives way to what ran before when it fails in the end', async (t) => {
    const diary: Diary = [];
    const { passed, refuse } = gate();
    const options = stranger();
    const { clock } = options;
    const plugins = [laggard(diary, async () => undefined), needy(diary)];
    const test = await whileTimePasses(clock, open(t, plugins, options));
    await whileTimePasses(clock, test.setPlugins([laggard(diary, () => passed, '2.0.0'), needy(diary)]));
    assert.equal(states(test)['slow'], 'waiting');
    await whileTimePasses(clock, test.configure(switches({ needy: false })));
    await whileTimePasses(clock, test.configure(switches()));
    refuse(new Error('no lamp'));
    await soon('it has failed', () => states(test)['slow'] === 'failed');
    await soon('the one before is back', () => states(test)['needy'] === 'active');
    assert.equal(test.info('slow').version, '1.0.0');
    assert.equal(
      test.info('slow').reason,
      'effect "coming": no lamp; version 1.0.0 as it was before runs on',
    );
  });

  it('is active with a run that does not end, which stands beside its state, and it goes in time', async (t) => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const { log, entries } = collectLog();
    const options = { ...stranger(), log };
    const { clock } = options;
    const declare = (ctx: PluginContext<never>): void =>
      ctx.every({ name: 'water', ms: () => 1_000, run: never });
    const test = await open(t, [small('slow', [], { declare })], options);
    await clock.advance(61_000);
    const { state, reason } = test.info('slow');
    assert.equal(state, 'active');
    assert.match(
      reason ?? '',
      /^its interval "water" has been running since \S+Z, and the next run waits for that$/,
    );
    const lines = entries.length;
    await whileTimePasses(clock, test.configure({ ...switches(), cache: { min_free_space: '2G' } }));
    assert.notEqual(test.info('slow').reason, undefined);
    assert.deepEqual(
      entries.slice(lines).filter(({ msg }) => msg === 'plugin changed its state'),
      [],
      'it is in no other state',
    );
    const before = clock.monotonic();
    await whileTimePasses(clock, test.configure(switches({ slow: false })));
    assert.ok(clock.monotonic() - before < 15_000, `${clock.monotonic() - before} ms`);
    assert.deepEqual([test.info('slow').state, test.info('slow').reason], ['disabled', undefined]);
  });
});
