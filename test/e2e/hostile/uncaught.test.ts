/** An error that nobody caught: the daemon ends, and leaves its mounts to the next one. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import type { Tally } from '../../support/platform/file-worker.ts';
import { isMounted } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { isAlive } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

/** An error that went through the core, which left its own work half done. */
const PLUGIN = `import { definePlugin } from 'mountkeeper';
const core = new URL('core/shares/supervisor.js', import.meta.resolve('mountkeeper').replace(/core\\/.*$/, '')).href;
const stack = 'Error: nobody caught this\\n    at Cycle.run (' + core + ':1:1)';
const error = Object.assign(new Error('nobody caught this'), { stack });
const handler = () => { setImmediate(() => { throw error; }); return 'lit'; };
export default definePlugin({
  name: 'bomb', version: '1.0.0', apiVersion: 1, description: 'Throws where nobody catches.',
  register(ctx) { ctx.route({ method: 'POST', path: '/bomb', handler }); },
});`;

describe('an error that nobody caught', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('uncaught');
    nas = await Nas.create(scratch, { files: { 'read.bin': 2_000_000 } });
    await mkdir(scratch.path('plugins/bomb'), { recursive: true });
    await writeFile(scratch.path('plugins/bomb/package.json'), '{ "type": "module" }');
    await writeFile(scratch.path('plugins/bomb/index.js'), PLUGIN);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: {
        plugins: { dirs: [scratch.path('plugins')] },
        'plugins.bomb': { enabled: true, isolation: 'none' },
      },
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('ends the daemon with 1 and the reason in its log; users of the mount do not notice', async () => {
    const files = new Files(scratch);
    const pid = await daemon.rclonePid('work');
    const holder = files.begin<Tally>({ op: 'hold-open', path: `${daemon.mountPoint('work')}/read.bin` });
    await daemon.request('POST', '/ext/bomb/bomb').catch(() => undefined);
    assert.deepEqual(await daemon.exit(30_000), { code: 1, signal: null });
    assert.match(
      await daemon.log(),
      /unexpected error, the daemon ends and leaves its mounts to the next one[^]*nobody caught this/,
    );
    assert.ok(await isMounted(daemon.mountPoint('work')), 'the mount stays');
    assert.ok(isAlive(pid));
    await files.write(`${daemon.mountPoint('work')}/while-away.bin`, 100_000);
    await daemon.start();
    await daemon.healthy();
    assert.equal(await daemon.rclonePid('work'), pid);
    assert.deepEqual((await holder.stop()).failures, []);
    await daemon.synced(30_000);
    assert.ok(await nas.has('while-away.bin'));
  });
});
