/** What another user of the machine may have laid out for the daemon. */
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { unlessRoot } from '../../runner/skips.ts';

describe('another user of the machine', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('neighbours');
  });
  after(() => scratch.close());

  it('owns the state folder: the daemon does not start on it, nor change it', async () => {
    const daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
    });
    await mkdir(daemon.stateDir, { mode: 0o755 });
    await chown(daemon.stateDir, 65_534, 65_534);
    await chmod(dirname(daemon.stateDir), 0o1777);
    assert.equal((await daemon.spawn()).code, 1);
    assert.match(await daemon.output(), /belongs to another user.*choose another with supervisor\.state_dir/);
    assert.equal((await stat(daemon.stateDir)).mode & 0o777, 0o755);
    await chown(daemon.stateDir, 0, 0);
    await daemon.start();
    assert.equal((await daemon.stop()).code, 0);
  });
});
