import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeMount, createKit, never, planOf, spec } from '../../support/shares/fake-shares.ts';
import type { Kit } from '../../support/shares/fake-shares.ts';

const photos = spec('photos');

async function mounted(kit: Kit = createKit()) {
  const runner = kit.run(photos);
  await kit.clock.advance(0);
  return { kit, runner, first: kit.mounter.last };
}

/** Calls of a mount without the repeated requests to let the queue go. */
const steps = (mount: FakeMount) => mount.calls.filter((call) => call !== 'flush');

describe('share runner, removal and stop', () => {
  it('refuses new writes, waits for dirty files and only then takes the share down', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(3);
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(5_000);
    assert.deepEqual([steps(first), runner.isLeaving, runner.status().mounted], [['freeze'], true, true]);
    assert.match(runner.status().healthMessage ?? '', /taken down as soon as/);
    assert.deepEqual(kit.exporter.calls, ['add photos smb', 'remove photos']);
    first.dirty(0);
    await kit.clock.advance(1_000);
    await removed;
    assert.deepEqual(
      [steps(first), runner.left?.count, runner.health, runner.status().mounted],
      [['freeze', 'unmount'], 0, 'pending', false],
    );
  });

  it('is not fooled by one clean look', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(0);
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(0);
    first.dirty(1);
    await kit.clock.advance(10_000);
    assert.deepEqual(steps(first), ['freeze']);
    first.dirty(0);
    await kit.clock.advance(1_000);
    await removed;
  });

  it('lets the queue go up at once while it drains', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(5_000);
    assert.ok(first.calls.filter((call) => call === 'flush').length >= 2);
    first.dirty(0);
    await kit.clock.advance(1_000);
    await removed;
  });

  it('leaves and lists what did not go up by the deadline', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    const removed = runner.remove(kit.clock.deadline(2_000));
    await kit.clock.advance(2_000);
    await removed;
    assert.deepEqual(
      [steps(first), runner.left?.paths],
      [
        ['freeze', 'unmount'],
        ['file0', 'file1'],
      ],
    );
  });

  it('leaves at once when a second signal comes', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    const hurry = new AbortController();
    const removed = runner.remove(kit.clock.deadline(600_000, hurry.signal));
    await kit.clock.advance(3_000);
    hurry.abort();
    await kit.clock.advance(0);
    await removed;
    assert.deepEqual(steps(first), ['freeze', 'unmount']);
  });

  it('bounds the drain of a share that is leaving already by the deadline of a stop', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(3_000);
    const stopped = runner.remove(kit.clock.deadline(2_000));
    await kit.clock.advance(2_000);
    await Promise.all([removed, stopped]);
    assert.deepEqual(steps(first), ['freeze', 'unmount']);
  });

  it('ends the drain when the mount dies, and reports what is left', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    const removed = runner.remove(kit.clock.deadline(600_000));
    await kit.clock.advance(3_000);
    first.exit('killed');
    await kit.clock.advance(0);
    await removed;
    assert.deepEqual(
      [steps(first), runner.left?.count, kit.mounter.mounts.length],
      [['freeze', 'kill'], 2, 1],
    );
  });

  it('kills a mount that hangs while it drains, before servers are asked to let go', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    const removed = runner.remove(kit.clock.deadline(600_000));
    await kit.clock.advance(1_000);
    first.isStuck = true;
    await kit.pass(16_000, runner);
    await removed;
    assert.deepEqual(steps(first), ['freeze', 'kill']);
  });

  it('gives up a frozen mount whose remote control stays silent, though its cover answers', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(2);
    const removed = runner.remove(kit.clock.deadline(600_000));
    await kit.clock.advance(1_000);
    first.isRcSilent = true;
    await kit.pass(30_000, runner);
    await removed;
    assert.deepEqual(steps(first), ['freeze', 'kill']);
  });

  it('ends a probe that is under way', async () => {
    const kit = createKit();
    kit.prober.hangs.add('photos');
    const runner = kit.run(photos);
    await kit.clock.advance(1_000);
    await Promise.all([runner.remove(new AbortController().signal), kit.clock.advance(0)]);
    assert.equal(runner.health, 'pending');
  });

  it('ends a back-off', async () => {
    const kit = createKit();
    kit.prober.problems.set('photos', 'down');
    const runner = kit.run(photos);
    await kit.clock.advance(1_000);
    await runner.remove(new AbortController().signal);
    assert.equal(kit.clock.pending, 0);
  });

  it('drains also when servers hang', async () => {
    const { kit, runner, first } = await mounted();
    kit.exporter.isStuck = true;
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(12_000);
    await removed;
    assert.deepEqual(steps(first), ['freeze', 'unmount']);
  });

  it('kills a mount whose unmounting does not end', async () => {
    const { kit, runner, first } = await mounted();
    first.unmount = never;
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(62_000);
    await removed;
    assert.deepEqual(steps(first), ['freeze', 'kill']);
  });

  it('mounts a share again that is wanted back while it drains', async () => {
    const { kit, runner, first } = await mounted();
    first.dirty(1);
    void runner.remove(new AbortController().signal);
    await kit.clock.advance(5_000);
    runner.keep(photos);
    await kit.clock.advance(0);
    assert.deepEqual(
      [steps(first), runner.isLeaving, runner.health, kit.mounter.mounts.length],
      [['freeze', 'unmount'], false, 'healthy', 2],
    );
    await runner.release();
  });

  it('mounts a share again that is wanted back just when it is down', async () => {
    const { kit, runner } = await mounted();
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(1_000);
    await removed;
    runner.keep(photos);
    await kit.clock.advance(0);
    assert.equal(runner.health, 'healthy');
    await runner.release();
  });

  it('leaves no timer behind', async () => {
    const { kit, runner } = await mounted();
    await kit.pass(10_000, runner);
    await Promise.all([runner.remove(new AbortController().signal), kit.clock.advance(20_000)]);
    assert.equal(kit.clock.pending, 0);
  });

  it('takes a mount down that was adopted and is no longer wanted', async () => {
    const kit = createKit();
    const former = new FakeMount(planOf(photos), 'photos', { adopted: true });
    former.dirty(1);
    const runner = kit.run(photos, former);
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(3_000);
    assert.deepEqual(steps(former), ['freeze']);
    former.dirty(0);
    await kit.clock.advance(1_000);
    await removed;
    assert.deepEqual(steps(former), ['freeze', 'unmount']);
  });
});
