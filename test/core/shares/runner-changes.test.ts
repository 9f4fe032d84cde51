import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createKit, spec } from '../../support/shares/fake-shares.ts';
import type { FakeMount, Kit } from '../../support/shares/fake-shares.ts';

const photos = spec('photos');
const elsewhere = spec('photos', { host: 'other.lan' });
const readOnly = spec('photos', { readOnly: true });

async function mounted(kit: Kit = createKit()) {
  const runner = kit.run(photos);
  await kit.clock.advance(0);
  return { kit, runner, first: kit.mounter.last };
}

/** Calls of a mount without the repeated requests to let the queue go. */
const steps = (mount: FakeMount) => mount.calls.filter((call) => call !== 'flush');

describe('share runner, changes of settings', () => {
  it('touches no mount for settings that it does not depend on', async () => {
    const { kit, runner, first } = await mounted();
    runner.change(spec('photos', { protocols: ['smb', 'nfs'] }));
    await kit.clock.advance(10_000);
    assert.deepEqual([runner.mount === first, first.calls], [true, []]);
    assert.deepEqual(kit.exporter.calls, ['add photos smb', 'add photos smb,nfs']);
    await runner.release();
  });

  it('does not interrupt a mount under way for settings that it does not depend on', async () => {
    const kit = createKit();
    let come: () => void = () => undefined;
    kit.mounter.mountCall = (mount) =>
      new Promise((resolve) => {
        come = () => resolve(mount);
      });
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    runner.change(spec('photos', { protocols: ['nfs'] }));
    await kit.clock.advance(1_000);
    come();
    await kit.clock.advance(0);
    assert.deepEqual([kit.mounter.tried.length, runner.health], [1, 'healthy']);
    assert.deepEqual(kit.exporter.calls.at(-1), 'add photos nfs');
    await runner.release();
  });

  it('mounts anew with the newest of a burst of changes', async () => {
    const { kit, runner, first } = await mounted();
    for (const host of ['a.lan', 'b.lan', 'c.lan']) runner.change(spec('photos', { host }));
    await kit.clock.advance(2_000);
    assert.deepEqual([kit.mounter.mounts.length, kit.mounter.last.plan.identity], [2, 'c.lan:photos']);
    assert.deepEqual(steps(first), ['freeze', 'unmount']);
    await runner.release();
  });

  it('starts over with the newest settings while it is being brought up', async () => {
    const kit = createKit();
    kit.prober.hangs.add('photos');
    const runner = kit.run(photos);
    await kit.clock.advance(1_000);
    kit.prober.hangs.clear();
    runner.change(elsewhere);
    await kit.clock.advance(0);
    assert.equal(kit.mounter.last.plan.identity, 'other.lan:photos');
    await runner.release();
  });

  it('leaves dirty files in the cache when they go to the same place after the change', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    runner.change(readOnly);
    await kit.clock.advance(9_000);
    assert.deepEqual([steps(first), runner.live.hasFormerSettings], [[], true]);
    await kit.clock.advance(12_000);
    assert.deepEqual([steps(first), kit.mounter.mounts.length], [['freeze', 'unmount'], 2]);
    assert.equal(runner.live.hasFormerSettings, false);
    await runner.release();
  });

  it('has what clients send ended before new writes are refused, and waits no more than 5 s for it', async () => {
    const { kit, runner, first } = await mounted();
    const seen: string[][] = [];
    Object.assign(kit.exporter, {
      quiesce: (share: string) => {
        seen.push([share, ...steps(first)]);
        return new Promise(() => undefined);
      },
    });
    first.dirty(1);
    runner.change(readOnly);
    await kit.clock.advance(9_000);
    assert.deepEqual(seen, []);
    await kit.clock.advance(5_500);
    assert.deepEqual([seen, steps(first)], [[['photos']], []]);
    await kit.clock.advance(20_000);
    assert.deepEqual([seen.length, steps(first)], [1, ['freeze', 'unmount']]);
    await runner.release();
  });

  it('says of a share that has become read-only that files still go up, and how many', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(12);
    kit.mounter.prepare = (mount) => mount.dirty(12);
    runner.change(readOnly);
    await kit.clock.advance(25_000);
    assert.equal(kit.mounter.mounts.length, 2);
    const said = (): string | null => runner.status().healthMessage;
    assert.match(said() ?? '', /^it is read-only now: users cannot write; 12 files .* still go to the NAS$/);
    kit.mounter.last.dirty(1);
    await kit.clock.advance(5_000);
    await runner.pulse();
    assert.match(said() ?? '', /; 1 file that was written before still goes to the NAS$/);
    kit.mounter.last.dirty(0);
    await kit.clock.advance(5_000);
    await runner.pulse();
    assert.equal(said(), null);
    await runner.release();
  });

  it('waits for dirty files as long as it takes when they would go to another place', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    runner.change(elsewhere);
    await kit.clock.advance(3_600_000);
    assert.deepEqual([runner.mount === first, steps(first)], [true, ['freeze']]);
    assert.match(runner.status().healthMessage ?? '', /new settings wait until its files are on the remote/);
    first.dirty(0);
    await kit.clock.advance(1_000);
    assert.deepEqual(
      [kit.mounter.last.plan.identity, runner.status().healthMessage],
      ['other.lan:photos', null],
    );
    await runner.release();
  });

  it('brings up by its former settings what is written after it was seen clean', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    runner.change(elsewhere);
    await kit.clock.advance(20_000);
    const unmount = first.unmount.bind(first);
    first.unmount = () => {
      first.onDisk = { count: 1, bytes: 1, paths: ['late'] };
      return unmount();
    };
    kit.mounter.prepare = (mount) => mount.dirty(1);
    first.dirty(0);
    await kit.clock.advance(2_000);
    assert.deepEqual([kit.mounter.mounts.length, kit.mounter.last.plan.identity], [2, 'nas.lan:photos']);
    first.onDisk = undefined;
    kit.mounter.last.dirty(0);
    await kit.clock.advance(20_000);
    assert.equal(kit.mounter.last.plan.identity, 'other.lan:photos');
    await runner.release();
  });

  it('replaces a connection that is dead at once when it is told to reconnect', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    first.remoteProblem = 'no route to host';
    runner.change(elsewhere);
    await kit.clock.advance(30_000);
    runner.reconnect();
    await kit.clock.advance(0);
    assert.deepEqual(
      [steps(first), kit.mounter.last.plan.identity],
      [['freeze', 'unmount'], 'other.lan:photos'],
    );
    await runner.release();
  });

  it('replaces a connection that is dead by itself when nothing waits for it', async () => {
    const { kit, runner, first } = await mounted();
    first.remoteProblem = 'no route to host';
    runner.change(elsewhere);
    await kit.clock.advance(2_000);
    assert.equal(kit.mounter.last.plan.identity, 'other.lan:photos');
    await runner.release();
  });

  it('comes back with the former settings when its mount dies while dirty files wait', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    runner.change(elsewhere);
    await kit.clock.advance(5_000);
    kit.mounter.prepare = (mount) => mount.dirty(2);
    first.exit('killed');
    await kit.clock.advance(1);
    const second = kit.mounter.last;
    assert.equal(second.plan.identity, 'nas.lan:photos');
    kit.mounter.prepare = () => undefined;
    second.dirty(0);
    await kit.clock.advance(12_000);
    assert.equal(kit.mounter.last.plan.identity, 'other.lan:photos');
    await runner.release();
  });

  it('lets a reconnect carry out the change when the former place cannot be reached any more', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    runner.change(elsewhere);
    kit.prober.problems.set('photos', 'host is down');
    first.exit('killed');
    await kit.clock.advance(100);
    assert.match(runner.status().healthMessage ?? '', /host is down; it keeps its former settings/);
    kit.prober.problems.clear();
    runner.reconnect();
    await kit.clock.advance(0);
    assert.equal(kit.mounter.last.plan.identity, 'other.lan:photos');
    await runner.release();
  });

  it('stays forced when the new place cannot be reached at first either', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    runner.change(elsewhere);
    kit.prober.problems.set('photos', 'host is down');
    first.exit('killed');
    await kit.clock.advance(100);
    runner.reconnect();
    await kit.clock.advance(100);
    runner.reconnect();
    await kit.clock.advance(100);
    kit.prober.problems.clear();
    await kit.clock.advance(10_000);
    assert.deepEqual(
      kit.mounter.mounts.map(({ plan }) => plan.identity),
      ['nas.lan:photos', 'other.lan:photos'],
    );
    await runner.release();
  });

  it('keeps the mount when the change is taken back before writers were refused', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    runner.change(elsewhere);
    await kit.clock.advance(5_000);
    runner.change(photos);
    await kit.pass(60_000, runner);
    assert.deepEqual([runner.mount === first, steps(first), runner.status().healthMessage], [true, [], null]);
    await runner.release();
  });

  it('takes writes again when the change is taken back after writers were refused', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    runner.change(elsewhere);
    await kit.clock.advance(20_000);
    runner.change(photos);
    await kit.clock.advance(0);
    assert.deepEqual(
      [steps(first), kit.mounter.last.plan.identity],
      [['freeze', 'unmount'], 'nas.lan:photos'],
    );
    await runner.release();
  });

  it('keeps a living mount when no mounter is active any more', async () => {
    const { kit, runner, first } = await mounted();
    kit.present.mounter = undefined;
    runner.change(elsewhere);
    await kit.clock.advance(60_000);
    assert.deepEqual([runner.mount === first, first.calls], [true, []]);
    assert.match(runner.status().healthMessage ?? '', /would not come back/);
    await runner.release();
  });

  it('is let go without being taken down while a change waits', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    runner.change(elsewhere);
    await kit.clock.advance(20_000);
    await runner.release();
    assert.deepEqual(steps(first), ['freeze', 'release']);
  });
});
