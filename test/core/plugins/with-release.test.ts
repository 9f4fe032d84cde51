import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withRelease } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Diary } from '../../support/plugins/small-plugins.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { whileTimePasses } from '../../support/platform/wait.ts';

describe('what a verb makes', () => {
  it('is released last in first out, services after effects', async () => {
    const diary: Diary = [];
    const test = await createTestHost({
      plugins: [
        small('a', diary, {
          declare: (ctx) => {
            const lamp = ctx.provide('lamp', () =>
              withRelease({ color: 'red' }, ({ color }) => void diary.push(`-${color}`)),
            );
            const first = ctx.effect('first', async () =>
              withRelease({ name: 'first' }, ({ name }) => {
                diary.push(`-${name} ${String(first()?.name)} ${String(lamp()?.color)}`);
              }),
            );
            ctx.effect('second', () =>
              withRelease(2, () => void diary.push(`-second ${String(first()?.name)}`)),
            );
            ctx.tap('beforeMount', () => `${String(first()?.name)} ${String(lamp()?.color)}`);
          },
        }),
      ],
    });
    assert.deepEqual(test.effects(), ['a: service lamp', 'a: a', 'a: first', 'a: second']);
    assert.equal(await test.hooks.veto('beforeMount', 'files'), 'first red');
    assert.deepEqual(test.host.service('lamp'), { color: 'red' });
    assert.ok(Object.isFrozen(test.host.service('lamp')));
    diary.length = 0;
    await test.close();
    // The value is gone for the others as soon as its own release begins; the service is there to the end.
    assert.deepEqual(diary, ['-second first', '-first undefined red', '-a', '-red']);
  });

  it('is undefined while register() runs and after the plugin has gone', async () => {
    let seen: (() => unknown) | undefined;
    const test = await createTestHost({
      plugins: [
        small('a', [], {
          declare: (ctx) => {
            seen = ctx.provide('lamp', () => withRelease({ color: 'red' }, () => undefined));
            assert.equal(seen(), undefined);
          },
        }),
      ],
    });
    assert.deepEqual(seen?.(), { color: 'red' });
    await test.close();
    assert.equal(seen?.(), undefined);
  });

  it('is released when an effect after it fails, and the plugin says which', async (t) => {
    const diary: Diary = [];
    const test = await createTestHost({
      plugins: [
        small('a', diary, {
          declare: (ctx) => {
            ctx.provide('lamp', () => withRelease({ color: 'red' }, () => void diary.push('-lamp')));
            ctx.effect('broken', () => {
              throw new Error('no current');
            });
          },
        }),
      ],
    });
    t.after(() => test.close());
    assert.deepEqual(diary, ['+a', '-a', '-lamp']);
    assert.match(String(test.info('a').reason), /effect "broken": no current/);
  });

  it('has its time to go, like an effect', async () => {
    const { log, entries } = collectLog();
    const diary: Diary = [];
    const hanging = small('a', diary, {
      declare: (ctx) => {
        ctx.provide('lamp', () => withRelease({ color: 'red' }, () => new Promise<void>(() => {})));
      },
    });
    const test = await createTestHost({
      plugins: [hanging, small('b', diary)],
      log,
      limits: { releaseMs: 50 },
    });
    await whileTimePasses(test, test.setPlugins([]));
    assert.deepEqual(diary, ['+a', '+b', '-b', '-a']);
    assert.match(JSON.stringify(entries), /release \\"service lamp\\"/);
    await test.close();
  });

  it('of a plugin that is only looked through goes with the host', async () => {
    const diary: Diary = [];
    const test = await createTestHost({
      plugins: [
        small('a', diary, {
          enabledByDefault: false,
          declare: (ctx) =>
            void ctx.provide('lamp', () => withRelease({ color: 'red' }, () => void diary.push('-lamp'))),
        }),
      ],
    });
    const check = await test.config.check('connections = []\n[plugins.a]\nenabled = true\n', 'file');
    assert.ok(check.ok);
    await test.host.inspect(check.loaded);
    await test.close();
    assert.deepEqual(diary, ['-lamp']);
  });

  it('needs a release', () => {
    assert.throws(() => withRelease(1, undefined as never), /needs a function/);
  });
});
