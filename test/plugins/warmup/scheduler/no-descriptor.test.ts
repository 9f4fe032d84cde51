import assert from 'node:assert/strict';
import { it } from 'node:test';
import { withoutDescriptors } from '../../../support/platform/without-descriptors.ts';

it('a warmup fails without a free file descriptor, and the daemon lives', async () => {
  const modules = { startHelper: 'plugins/warmup/scheduler/worker-process.js' };
  const script = `
    const helper = startHelper({ listFile: '/nowhere', concurrency: 1 }, () => undefined);
    helper.tell({});
    console.log((await helper.ended).reason);
    helper.stop();`;
  const [reason, last] = await withoutDescriptors(modules, { script });
  assert.match(reason ?? '', /^the helper process could not be started: spawn .* EMFILE$/);
  assert.equal(last, 'lives');
});
