/** What another user of the machine may have laid out for the daemon. */
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { until } from '../../support/platform/wait.ts';
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
    assert.match(
      await daemon.output(),
      /state belongs to user 65534.*chown and chmod, or move.*supervisor\.state_dir/,
    );
    assert.equal((await stat(daemon.stateDir)).mode & 0o777, 0o755);
    await chown(daemon.stateDir, 0, 0);
    await daemon.start();
    assert.equal((await daemon.stop()).code, 0);
  });

  it('owns a folder above a mount point: that share says so and is not mounted, the others are', async () => {
    const nas = await Nas.create(scratch, { files: { 'x.bin': 10 } });
    const home = scratch.path('home');
    await mkdir(home);
    await chown(home, 65_534, 65_534);
    const daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      name: 'turned',
      connections: [nas.connection('nas')],
      shares: [
        { name: 'work', connection: 'nas' },
        { name: 'turned', connection: 'nas', mount_point: `${home}/nas/photos` },
      ],
    });
    const said = new RegExp(`${home} belongs to user 65534\\), and the daemon would follow as root`);
    const check = await daemon.cli('check');
    assert.equal(check.code, 0, check.stderr);
    assert.match(check.stdout + check.stderr, said);
    await daemon.start();
    await daemon.healthy(['work']);
    await until(
      'the share says why it is not mounted',
      async () => said.test((await daemon.share('turned')).health_message ?? ''),
      { timeoutMs: 30_000 },
    );
    await assert.rejects(stat(`${home}/nas`), { code: 'ENOENT' });
    const doctor = await daemon.cli('doctor');
    assert.match(doctor.stdout, said);
    await daemon.stop();
  });
});
