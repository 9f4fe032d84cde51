/** The mount point of a share that could not be mounted is usable again after the daemon's stop. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { unlessRoot } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { run } from '../../support/package/build-packages.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

describe('a share that is never mounted', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const flags = async (): Promise<string> =>
    (await run('lsattr', ['-d', `${daemon.mountRoot}/files`])).stdout.split(' ')[0] ?? '';

  before(async () => {
    scratch = await createScratch('unlocked');
    const nas = await Nas.create(scratch, { files: { 'files/a.bin': 10 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas', remote_path: 'files' }],
    });
    // What comes after the mount point was locked fails.
    await mkdir(`${daemon.cacheDir}/files/layer`, { recursive: true });
    await writeFile(`${daemon.cacheDir}/files/layer/work`, 'in the way');
    await daemon.start();
  });
  after(() => scratch.close());

  it('has its mount point locked while the daemon runs, and no longer', async () => {
    await until(
      'the share has failed',
      async () => /cannot be used/.test((await daemon.share('files')).health_message ?? ''),
      { timeoutMs: 30_000 },
    );
    assert.match(await flags(), /i/);
    await daemon.stop();
    assert.doesNotMatch(await flags(), /i/);
  });
});
