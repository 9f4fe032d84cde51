/** What was switched off since it broke off comes back when somebody says so, and nothing else does. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Plugin } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
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
