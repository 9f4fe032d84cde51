/** A third party's plugin may throw anything, in every verb: the host goes on, and names it. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PluginContext } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin, TestHost } from 'mountkeeper/testing';
import { createLogger } from '../../../core/platform/log/logger.ts';
import { readFile } from 'node:fs/promises';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { small } from '../../support/plugins/small-plugins.ts';
import { ODD_THROWS } from '../../support/plugins/odd-throws.ts';

const config = { plugins: { odd: { enabled: true } } };

describe('a plugin that throws what is no proper error', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('odd-throws');
  });
  after(() => scratch.close());

  async function live(
    plugin: AnyPlugin,
    work: (test: TestHost, text: () => Promise<string>) => Promise<void>,
  ): Promise<void> {
    const file = scratch.path('log');
    const logger = createLogger({ file, level: 'debug', json: false });
    const test = await createTestHost({ plugins: [plugin], strangers: ['odd'], config, log: logger.log });
    try {
      await work(test, () => readFile(file, 'utf8'));
    } finally {
      await test.close();
      logger.close();
    }
  }

  for (const [what, thrown] of Object.entries(ODD_THROWS)) {
    const fail = (): never => {
      throw thrown;
    };
    it(`is survived in each call: ${what}`, async () => {
      const declare = (ctx: PluginContext<never>): void => {
        ctx.tap('beforeMount', fail);
        ctx.tap('collectNotices', fail);
        ctx.tap('resolveBandwidth', fail);
        ctx.tap('afterCycle', () => Promise.reject(thrown as Error));
        ctx.handle('bwlimit', fail);
        (ctx.status as (field: string, declared: object) => void)('oddField', { default: 1, read: fail });
        (ctx.shareStatus as (declared: object) => void)({ defaults: { oddShare: 1 }, read: fail });
        ctx.metric({ name: 'mountkeeper_odd', help: 'Odd.', read: fail });
        ctx.webhookFormat({ name: 'odd', render: fail });
        ctx.every({ name: 'odd', ms: () => 1_000, run: () => Promise.reject(thrown as Error) });
        ctx.job({ name: 'odd', cron: () => '* * * * *', run: () => Promise.reject(thrown as Error) });
        ctx.effect('release', () => fail);
        ctx.onConfigChange(fail);
        ctx.route({ method: 'GET', path: '/odd', handler: fail });
      };
      await live(small('odd', [], { declare }), async (test, text) => {
        const { host, hooks } = test;
        assert.equal(test.info('odd').state, 'active', test.info('odd').reason);
        assert.equal(await hooks.veto('beforeMount', 'photos'), undefined);
        assert.deepEqual(await hooks.collect('collectNotices'), []);
        assert.deepEqual(hooks.resolve('resolveBandwidth', { up: 1, down: 2 }), { up: 1, down: 2 });
        await hooks.observe('afterCycle', {} as never, {} as never);
        await host.handle('bwlimit', [{ up: '0', down: '0' }]);
        assert.equal((test.status() as { oddField?: unknown }).oddField, 1);
        assert.equal((test.shareStatus('photos') as { oddShare?: unknown }).oddShare, 1);
        const formats = host.service('webhookFormats');
        await assert.rejects(
          async () => formats?.render('odd/odd', { event: {} } as never),
          /^Error: the format "odd\/odd" of a plugin failed: \S/,
        );
        await test.advance(1_000);
        await test.runJob('odd/odd');
        assert.equal((await test.inject('/ext/odd/odd')).statusCode, 500);
        const lines = (await text()).split('\n');
        for (const said of [
          'plugin failed in a hook and was skipped hook=beforeMount error=',
          'plugin failed in a hook and was skipped hook=collectNotices error=',
          'plugin failed in a hook and was skipped hook=resolveBandwidth error=',
          'plugin failed in a hook and was skipped hook=afterCycle error=',
          'command failed command=bwlimit error=',
          'interval failed; it will run again interval=odd error=',
          'job failed; it will run again on its schedule job=odd error=',
        ])
          assert.ok(
            lines.some((line) => line.includes(`odd: ${said}`)),
            said,
          );
        await test.configure({ plugins: { odd: { enabled: false } } });
        assert.equal(test.info('odd').state, 'disabled');
        assert.match(await text(), /odd: plugin left something behind/);
      });
    });

    it(`is the reason where it does not come up: ${what}`, async () => {
      const verbs: Readonly<Record<string, (ctx: PluginContext<never>) => void>> = {
        effect: (ctx) => ctx.effect('port', fail),
        service: (ctx) => void ctx.provide('lamp', fail),
        'native plugin': (ctx) => ctx.hapi({ name: 'native', register: fail }, {}),
        register: fail,
      };
      for (const [verb, declare] of Object.entries(verbs))
        await live(small('odd', [], { declare }), async (test) => {
          const { state, reason = '' } = test.info('odd');
          assert.ok(state === 'failed' || state === 'invalid', `${verb}: ${state}`);
          assert.match(reason, /^\S[^\n\u001b]{1,1999}$/u, verb);
          assert.ok(!reason.includes('undefined') || reason.includes('it threw undefined'), reason);
        });
    });
  }

  it('is survived where what it gives throws when it is looked at', async () => {
    const declare = (ctx: PluginContext<never>): void => {
      ctx.tap('collectNotices', () => ODD_THROWS['a proxy that was revoked'] as never);
      ctx.tap('collectChecks', () => [ODD_THROWS['a proxy that throws'], 1] as never);
      ctx.tap('beforeMount', () => ODD_THROWS['a proxy that throws'] as never);
      ctx.tap('resolveBandwidth', () => ODD_THROWS['a proxy that throws'] as never);
    };
    await live(small('odd', [], { declare }), async ({ hooks }) => {
      assert.deepEqual(await hooks.collect('collectNotices'), []);
      assert.deepEqual(await hooks.collect('collectChecks', {} as never), []);
      assert.equal(await hooks.veto('beforeMount', 'photos'), undefined);
      assert.deepEqual(hooks.resolve('resolveBandwidth', { up: 1, down: 2 }), { up: 1, down: 2 });
    });
  });
});
