/** What was switched off since it broke off comes back when somebody says so, and nothing else does. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Plugin, PluginContext } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import { BrokenOff } from '../../../core/plugins/broken-off.ts';
import type { FoundPlugin } from '../../../core/plugins/discovery/found.ts';
import { actAs } from '../../../core/plugins/instance/acting-plugin.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Diary } from '../../support/plugins/small-plugins.ts';
import { stepUntil, turn } from '../../support/platform/wait.ts';

describe('a plugin that broke off', () => {
  it('comes back by its name, and may break off again', async (t) => {
    const diary: Diary = [];
    const garden = small('garden', diary);
    const test = await createTestHost({ plugins: [garden, small('pond', diary)] });
    t.after(() => test.close());
    const { host } = test as unknown as {
      host: { enable(name: string): boolean; giveUp(plugin: Plugin, reason: string): void };
    };
    const inState = (state: string) =>
      stepUntil(`it is ${state}`, () => test.info('garden').state === state, turn);
    assert.equal(host.enable('garden'), false, 'it is up');
    for (const _ of ['once', 'and again']) {
      host.giveUp(garden as Plugin, 'its process ended');
      await inState('failed');
      assert.equal(
        test.info('garden').reason,
        "its process ended; mend it, or bring it back with 'mountkeeper plugin enable garden'",
      );
      assert.deepEqual([test.info('garden').isBrokenOff, test.info('pond').isBrokenOff], [true, false]);
      assert.deepEqual([host.enable('pond'), host.enable('nobody')], [false, false]);
      await test.configure({});
      assert.equal(test.info('garden').state, 'failed', 'no other change brings it back');
      assert.equal(host.enable('garden'), true);
      await inState('active');
      assert.equal(test.info('garden').isBrokenOff, false);
    }
    assert.deepEqual(diary, ['+garden', '+pond', '-garden', '+garden', '-garden', '+garden']);
  });

  it("says the way back, however much a third party's plugin says", async (t) => {
    const garden = small('garden', []);
    const test = await createTestHost({
      plugins: [garden],
      strangers: ['garden'],
      config: { plugins: { garden: { enabled: true } } },
    });
    t.after(() => test.close());
    const { host } = test as unknown as { host: { giveUp(plugin: Plugin, reason: string): void } };
    host.giveUp(garden as Plugin, `${'\u001b[31m'}${'x'.repeat(10_000)}`);
    await stepUntil('it is off', () => test.info('garden').state === 'failed', turn);
    assert.match(
      test.info('garden').reason ?? '',
      /^x{299}…; mend it, or bring it back with 'mountkeeper plugin enable garden'$/,
    );
  });
});

describe('an error that nobody caught', () => {
  /** As discovery finds them: the version's copy, and the plugin that its module exports. */
  const found = (name: string, version: string): FoundPlugin => {
    const plugin = small(name, [], { version }) as Plugin;
    return { name, plugin, stagedFolder: `/state/plugins/${name}@${version}` } as FoundPlugin;
  };
  const thrown = (...places: string[]): Error =>
    Object.assign(new Error('frost'), {
      stack: ['Error: frost', ...places.map((place) => `    at ${place}`)].join('\n'),
    });
  const nameless = thrown('listOnTimeout (node:internal/timers:581:17)');
  const [former, now, pond] = [found('garden', '1.0.0'), found('garden', '2.0.0'), found('pond', '1.0.0')];
  const moduleOf = (one: FoundPlugin) => ({
    name: one.name,
    folder: (one as { stagedFolder: string }).stagedFolder,
  });

  it('in what the module of a former version began is not laid to the one that is there now', () => {
    const off = new BrokenOff({ log: collectLog().log });
    off.meet([former, pond]);
    off.meet([now, pond]);
    for (const error of [nameless, thrown('file:///state/plugins/garden@1.0.0/index.js:1:1')])
      assert.deepEqual(
        actAs(moduleOf(former), () => off.blame(error, [now, pond])),
        { plugin: 'garden', isSwitchedOff: false },
      );
    off.meet([former, pond]);
    assert.equal(off.reasons.size, 0, 'nor to itself once it is back');
    assert.deepEqual(
      actAs(moduleOf(now), () => off.blame(nameless, [now, pond])),
      { plugin: 'garden', isSwitchedOff: true },
    );
    assert.deepEqual([...off.reasons.keys()], [now.plugin]);
  });

  it('of a version that is just being loaded is laid to that one once it is found', () => {
    const off = new BrokenOff({ log: collectLog().log });
    off.meet([former, pond]);
    const error = thrown('plant (file:///state/plugins/garden@2.0.0/lib/beds.js:3:7)');
    assert.deepEqual(
      actAs(moduleOf(now), () => off.blame(error, [former, pond])),
      { plugin: 'garden', isSwitchedOff: true },
    );
    assert.equal(off.reasons.size, 0, 'the former one did nothing');
    off.meet([now, pond]);
    assert.deepEqual(
      [...off.reasons],
      [
        [
          now.plugin,
          'it caused an uncaught error: frost (at lib/beds.js:3:7); ' +
            "mend it, or bring it back with 'mountkeeper plugin enable garden'",
        ],
      ],
    );
  });

  it('is told with a place in its own files, not in those of another plugin', () => {
    const off = new BrokenOff({ log: collectLog().log });
    const inPond = 'splash (file:///state/plugins/pond@1.0.0/index.js:9:9)';
    const inGarden = 'Timeout.water (file:///state/plugins/garden@2.0.0/index.js:3:3)';
    off.blame(thrown(inPond, inGarden), [now, pond]);
    assert.match(off.reasons.get(now.plugin as Plugin) ?? '', /frost \(at index\.js:3:3\); /);
    actAs({ name: 'garden', plugin: now.plugin as Plugin }, () => off.blame(thrown(inPond), [now]));
    assert.match(off.reasons.get(now.plugin as Plugin) ?? '', /frost; /);
  });

  it('of a new version that has failed leaves the one before as it is', async (t) => {
    const diary: Diary = [];
    const declare = (ctx: PluginContext<never>): void =>
      ctx.effect('port', () => {
        throw new Error('taken');
      });
    const next = small('garden', diary, { version: '2.0.0', declare }) as Plugin;
    const test = await createTestHost({
      plugins: [small('garden', diary)],
      strangers: ['garden'],
      config: { plugins: { garden: { enabled: true } } },
    });
    t.after(() => test.close());
    await test.setPlugins([next]);
    actAs({ name: 'garden', plugin: next }, () => test.host.condemn(nameless));
    await stepUntil('it is told', () => test.info('garden').isBrokenOff === true, turn);
    assert.match(
      test.info('garden').reason ?? '',
      /frost; mend it, .*; version 1\.0\.0 as it was before runs on$/,
    );
    assert.deepEqual([test.effects(), diary.slice(-1)], [['garden: garden'], ['+garden']]);
  });
});
