// @load quiet
/**
 * Three plugins of third parties that take 4.9 s for each call of each hook: just less than what counts as hanging.
 * What comes with Mountkeeper hears of each cycle and each notification in its time, and shares are mounted.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { inState, notices, place, source } from '../../support/plugins/strangers.ts';
import { WebhookReceiver } from '../../support/webhooks/webhook-receiver.ts';

const SOON = { timeoutMs: 50_000 };
const NAMES = ['sloth', 'snail', 'tortoise'];
const SLOW = `
  const slowly = (answer) => () => new Promise((resolve) => { setTimeout(resolve, 4_900, answer); });
  for (const hook of ['afterMount', 'afterUnmount', 'shareHealthChanged', 'notification', 'afterCycle'])
    ctx.tap(hook, slowly(), -1000);
  for (const hook of ['collectShareLimits', 'collectShareTroubles']) ctx.tap(hook, slowly([]));
  ctx.tap('collectNotices', slowly([{ level: 'info', message: 'at last' }]));
  ctx.tap('beforeMount', slowly('it objects'));
`;
const TELLS = `
  let times = 0;
  ctx.every({ name: 'tell', ms: () => 4_000, run: async () => {
    const key = String((times += 1));
    await ctx.send('notify', { type: 'sloth.told', severity: 'info', message: key, data: {}, key });
  } });
`;

describe('slow plugins of third parties', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let receiver: WebhookReceiver;

  const cycles = async (): Promise<number> =>
    Number(/^mountkeeper_cycle_seconds_count (\d+)/m.exec((await daemon.get('/metrics')).text)?.[1]);
  const told = (): number => receiver.taken.filter(({ body }) => body.type === 'sloth.told').length;
  const said = async (name: string, text: string): Promise<number> =>
    (await daemon.log()).split('\n').filter((line) => line.includes(` ${name}: ${text}`)).length;

  before(async () => {
    scratch = await createScratch('slow');
    await letOthersEnter(scratch.root);
    nas = await Nas.create(scratch, { files: { 'a/x.bin': 1_000 } });
    receiver = await WebhookReceiver.start(scratch);
    for (const name of NAMES)
      await place(scratch, name, source(name, name === 'sloth' ? SLOW + TELLS : SLOW), {
        permissions: ['read-status', 'send-commands', 'hold-mounts'],
      });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [],
      sections: {
        plugins: { dirs: [scratch.path('plugins')] },
        notifications: { webhook_url: receiver.url, allow_private: true, cache_threshold_pct: 0 },
        ...Object.fromEntries(NAMES.map((name) => [`plugins.${name}`, { enabled: true }])),
      },
    });
    await daemon.start(60_000);
    for (const name of NAMES) await inState(daemon, name, 'active');
  });
  after(() => scratch.close());

  it('keep no cycle and no notification from what comes with Mountkeeper', async () => {
    const [cyclesBefore, toldBefore] = [await cycles(), told()];
    // Behind three that are waited for, twelve cycles take three minutes, and five notifications more than one.
    await until('metrics hear of twelve cycles', async () => (await cycles()) - cyclesBefore >= 12, SOON);
    await until('five notifications are delivered', () => told() - toldBefore >= 5, SOON);
  });

  it('are heard all the same, from the next cycle on, for as long as the answer stands', async () => {
    const all = NAMES.map((name) => `${name}: at last`);
    const areThere = async (): Promise<boolean> => {
      const now = await notices(daemon);
      return all.every((one) => now.includes(one));
    };
    await until('their notices are there', areThere, { timeoutMs: 15_000 });
    for (let second = 0; second < 8; second += 1) {
      assert.equal(await areThere(), true);
      await sleep(1_000);
    }
  });

  it('hold up a mount for 2 s in all, and the next one not at all', async () => {
    const share = (name: string) => ({ name, connection: 'nas', remote_path: 'a' });
    await daemon.writeConfig(daemon.text({ shares: [share('one')] }));
    await daemon.healthy(['one'], 60_000);
    const late = async (): Promise<readonly number[]> =>
      Promise.all(NAMES.map((name) => said(name, 'plugin did not answer in time')));
    assert.deepEqual(await late(), [1, 1, 1], 'none has been waited for until it objected');
    await daemon.writeConfig(daemon.text({ shares: [share('one'), share('two')] }));
    await daemon.healthy(['two'], 60_000);
    assert.deepEqual(await late(), [1, 1, 1], 'and none was asked again');
  });

  it('are named once for each hook', async () => {
    for (const name of NAMES) {
      assert.equal(await said(name, 'plugin takes longer than a cycle'), 1, name);
      assert.equal(await said(name, 'plugin answers a hook slowly'), 3, name);
    }
  });
});
