import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createKit, spec } from '../../support/shares/fake-shares.ts';
import type { Kit } from '../../support/shares/fake-shares.ts';

const photos = spec('photos');

async function mounted(kit: Kit = createKit()) {
  const runner = kit.run(photos);
  await kit.clock.advance(0);
  assert.equal(runner.health, 'healthy');
  return { kit, runner };
}

describe('share runner, healing', () => {
  it('mounts again at once after a crash', async () => {
    const { kit, runner } = await mounted();
    const [first] = kit.mounter.mounts;
    await kit.clock.advance(3_000);
    first?.dirty(2);
    await runner.pulse();
    first?.exit('the process was killed');
    await kit.clock.advance(1);
    assert.deepEqual([kit.mounter.mounts.length, runner.health], [2, 'healthy']);
    assert.deepEqual(first?.calls, ['kill']);
    assert.ok(kit.hooks.seen.includes('afterUnmount photos'));
    assert.deepEqual(kit.exporter.calls, ['add photos smb', 'remove photos', 'add photos smb']);
    await runner.release();
  });

  it('shows the last known dirty files between a crash and the next mount', async () => {
    const { kit, runner } = await mounted();
    kit.mounter.last.dirty(3);
    await runner.pulse();
    kit.prober.problems.set('photos', 'down');
    kit.mounter.last.exit('killed');
    await kit.clock.advance(1);
    assert.deepEqual(
      [runner.status().dirtyCount, runner.status().mounted, runner.health],
      [3, false, 'failed'],
    );
    runner.setFilesOnDisk(4);
    assert.equal(runner.status().dirtyCount, 4);
    await runner.release();
  });

  it('backs off while mounts die one after the other', async () => {
    const kit = createKit();
    kit.mounter.prepare = (mount) => void kit.clock.after(100, () => mount.exit('crashed'));
    const runner = kit.run(photos);
    await kit.clock.advance(60_000);
    assert.ok(
      kit.mounter.mounts.length > 40 && kit.mounter.mounts.length < 65,
      `${kit.mounter.mounts.length} mounts in a minute`,
    );
    await runner.release();
  });

  it('keeps the back-off of a crash loop while a change waits', async () => {
    const { kit, runner } = await mounted();
    kit.mounter.prepare = (mount) => {
      mount.dirty(1);
      kit.clock.after(100, () => mount.exit('crashed'));
    };
    kit.mounter.last.dirty(1);
    runner.change(spec('photos', { host: 'other.lan' }));
    kit.mounter.last.exit('crashed');
    await kit.clock.advance(60_000);
    assert.ok(kit.mounter.mounts.length < 65, `${kit.mounter.mounts.length} mounts in a minute`);
    await runner.release();
  });

  it('kills a mount that hangs within 20 s and mounts it again', async () => {
    const { kit, runner } = await mounted();
    const [first] = kit.mounter.mounts;
    await kit.pass(4_000, runner);
    first!.isStuck = true;
    await kit.pass(6_000, runner);
    assert.match(runner.status().healthMessage ?? '', /remote control has not answered/);
    await kit.pass(12_000, runner);
    assert.deepEqual(first?.calls, ['kill']);
    assert.deepEqual([kit.mounter.mounts.length, runner.health], [2, 'healthy']);
    assert.deepEqual(kit.exporter.calls, ['add photos smb', 'remove photos', 'add photos smb']);
    await runner.release();
  });

  it('notices a hang even of a mounter that ignores its deadlines', async () => {
    const { kit, runner } = await mounted();
    const [first] = kit.mounter.mounts;
    first!.isRcStuck = true;
    first!.isStuck = true;
    await kit.pass(24_000, runner);
    assert.equal(kit.mounter.mounts.length, 2);
    await runner.release();
  });

  it('does not kill a mount that answers though its remote control is silent', async () => {
    const { kit, runner } = await mounted();
    await kit.pass(2_000, runner);
    kit.mounter.last.figures = { ...kit.mounter.last.figures, speed: 5, transfers: 1 };
    await kit.pass(2_000, runner);
    assert.equal(runner.status().speed, 5);
    kit.mounter.last.isRcSilent = true;
    await kit.pass(60_000, runner);
    const status = runner.status();
    assert.deepEqual(
      [kit.mounter.mounts.length, status.speed, status.transfers, runner.isSynced],
      [1, 0, 0, false],
    );
    assert.match(status.healthMessage ?? '', /figures are older/);
    await runner.release();
  });

  it('says so when the remote is away, keeps the mount and kicks the queue on return', async () => {
    const { kit, runner } = await mounted();
    await kit.pass(4_000, runner);
    assert.equal(runner.isSynced, true);
    kit.mounter.last.remoteProblem = 'connection refused';
    await kit.pass(10_000, runner);
    assert.match(runner.status().healthMessage ?? '', /does not answer \(connection refused\)/);
    assert.deepEqual([runner.health, runner.isSynced, kit.mounter.mounts.length], ['healthy', false, 1]);
    kit.mounter.last.remoteProblem = undefined;
    await kit.pass(6_000, runner);
    assert.deepEqual([kit.mounter.last.calls, runner.isSynced], [['flush'], true]);
    await runner.release();
  });

  it('does not kick the queue of paused uploads before the pause is over', async () => {
    let until: number | undefined;
    const kit = createKit();
    kit.mounter.prepare = (mount) => {
      const set = (): Promise<never> => Promise.reject(new Error('unused'));
      Object.defineProperty(mount, 'uploadPause', { get: () => ({ until, obstacle: undefined, set }) });
    };
    const { runner } = await mounted(kit);
    await kit.pass(4_000, runner);
    until = kit.clock.now() + 60_000;
    kit.mounter.last.remoteProblem = 'connection refused';
    await kit.pass(10_000, runner);
    kit.mounter.last.remoteProblem = undefined;
    await kit.pass(10_000, runner);
    assert.deepEqual(kit.mounter.last.calls, []);
    until = undefined;
    await kit.pass(6_000, runner);
    assert.deepEqual(kit.mounter.last.calls, ['flush']);
    await runner.release();
  });

  it('passes on what the mount itself says is wrong, while it lasts', async () => {
    const { kit, runner } = await mounted();
    kit.mounter.last.figures = { ...kit.mounter.last.figures, trouble: 'the disk is full' };
    await kit.pass(4_000, runner);
    assert.deepEqual([runner.health, runner.status().healthMessage], ['healthy', 'the disk is full']);
    kit.mounter.last.figures = { ...kit.mounter.last.figures, trouble: undefined };
    await kit.pass(4_000, runner);
    assert.equal(runner.status().healthMessage, null);
    await runner.release();
  });

  it('is not synced before the first figures, the first remote check and the first look at the disk', async () => {
    const kit = createKit();
    let answer: () => void = () => undefined;
    kit.mounter.prepare = (mount) => {
      mount.checkRemote = () =>
        new Promise((resolve) => {
          answer = resolve;
        });
    };
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    await kit.pass(2_000, runner);
    assert.deepEqual([runner.health, runner.isSynced], ['healthy', false]);
    answer();
    await kit.pass(2_000, runner);
    assert.equal(runner.isSynced, true);
    await runner.release();
  });

  it('is not synced while the disk cannot be read', async () => {
    const kit = createKit();
    kit.mounter.onDisk.set('photos', undefined);
    const runner = kit.run(photos);
    await kit.pass(20_000, runner);
    assert.deepEqual([runner.health, runner.isSynced], ['healthy', false]);
    await runner.release();
  });

  it('tells of files in its cache that its mount does not upload', async () => {
    const kit = createKit();
    kit.mounter.onDisk.set('photos', 2);
    const runner = kit.run(photos);
    await kit.pass(10_000, runner);
    assert.deepEqual([runner.isSynced, runner.status().dirtyCount], [false, 2]);
    assert.match(runner.status().healthMessage ?? '', /2 files that were written with former settings/);
    kit.mounter.onDisk.set('photos', 0);
    await kit.pass(62_000, runner);
    assert.deepEqual(
      [runner.isSynced, runner.status().dirtyCount, runner.status().healthMessage],
      [true, 0, null],
    );
    await runner.release();
  });
});
