/** What comes while the daemon is still starting. */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

describe('what comes while the daemon starts', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('signals');
  });
  after(() => scratch.close());

  /** Spawned, and as far as its log file: plugins and configuration are still to be read. */
  const starting = async (name: string): Promise<Daemon> => {
    const daemon = await Daemon.create(scratch, {
      name,
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
    });
    void daemon.spawn();
    await until(
      'the log begins',
      () =>
        stat(daemon.logFile).then(
          () => true,
          () => false,
        ),
      { timeoutMs: 30_000, everyMs: 2 },
    );
    return daemon;
  };

  it('a signal to read the configuration again: it comes up', async () => {
    const daemon = await starting('reload');
    daemon.signal('SIGHUP');
    await until('it answers', async () => (await daemon.get('/api/status')).status === 200, {
      timeoutMs: 30_000,
    });
    assert.equal((await daemon.stop()).code, 0);
  });

  it('a signal to stop: it ends as one that was stopped, not as one that was killed', async () => {
    const daemon = await starting('stop');
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
    assert.match(await daemon.log(), /stopped/);
  });

  it('a configuration that is saved just after the former one was read: it takes effect', async () => {
    const daemon = await starting('saved');
    await until(
      'the former one is read',
      async () => (await daemon.log()).includes('plugin changed its state'),
      { timeoutMs: 30_000, everyMs: 1 },
    );
    await daemon.writeConfig(daemon.text({ sections: { bandwidth: { up: '7M' } } }));
    await until(
      'the new one runs',
      async () => (await daemon.get('/api/config')).text.includes('"up":"7M"'),
      { timeoutMs: 30_000 },
    );
    assert.equal((await daemon.stop()).code, 0);
  });
});
