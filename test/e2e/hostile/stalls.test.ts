/** A plugin inside the daemon that holds up everything else after an `await`. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { place } from '../../support/plugins/strangers.ts';

const PLUGIN = `import { definePlugin } from 'mountkeeper';
const work = (ms) => { for (const end = process.cpuUsage().user + ms * 1000; process.cpuUsage().user < end;); };
const handler = async () => {
  await new Promise((resolve) => setTimeout(resolve, 20));
  work(800);
  return 'dug';
};
export default definePlugin({
  name: 'digger', version: '1.0.0', apiVersion: 1, description: 'Holds up everything else.',
  register(ctx) { ctx.route({ method: 'GET', path: '/dig', handler }); },
});`;

describe('what holds up the daemon', () => {
  let scratch: Scratch;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('stalls');
    await place(scratch, 'digger', PLUGIN);
    daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      sections: {
        plugins: { dirs: [scratch.path('plugins')] },
        'plugins.digger': { enabled: true, isolation: 'none' },
      },
    });
    await daemon.start();
  });
  after(() => scratch.close());

  it('is named in its log, also after an await', async () => {
    assert.equal((await daemon.get<string>('/ext/digger/dig')).status, 200);
    const named = /everything else stood still .*route GET \/ext\/digger\/dig/;
    await until('it is named', async () => named.test(await daemon.log()), { timeoutMs: 20_000 });
  });
});
