import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ShareMonitor } from '../../../core/shares/monitor.js';
import type { ShareMonitorOptions } from '../../../core/shares/monitor.js';
import { createKit, FakeMount, planOf, spec } from '../../support/shares/fake-shares.ts';
import type { Kit } from '../../support/shares/fake-shares.ts';

function begun(
  kit: Kit,
  more: Partial<Pick<ShareMonitorOptions, 'pending' | 'probeFailure' | 'onHung'>> = {},
): { watch: ShareMonitor; mount: FakeMount } {
  const mount = new FakeMount(planOf(spec('photos')), 'photos');
  const watch = new ShareMonitor({
    mount,
    clock: kit.clock,
    log: kit.lines.log,
    pending: () => Promise.resolve(0),
    isFrozen: () => false,
    onHung: () => undefined,
    onChange: () => undefined,
    ...more,
  });
  return { watch, mount };
}

async function watched(kit: Kit): Promise<{ watch: ShareMonitor; mount: FakeMount }> {
  const { watch, mount } = begun(kit);
  // The first round asks, the second one knows what the disk says, too.
  for (const _ of [1, 2]) {
    await watch.pulse();
    await kit.clock.advance(0);
  }
  return { watch, mount };
}

describe('the watch of a mount', () => {
  it('says that all is synced by figures of less than 4 s alone, and shows them as fresh for 6 s', async () => {
    const kit = createKit();
    const { watch } = await watched(kit);
    const seen: (readonly [boolean, boolean])[] = [];
    for (const ms of [0, 3_999, 1, 1_999, 1]) {
      await kit.clock.advance(ms);
      seen.push([watch.isSynced, watch.isFresh]);
    }
    assert.deepEqual(seen, [
      [true, true],
      [true, true],
      [false, true],
      [false, true],
      [false, false],
    ]);
    watch.stop();
  });

  it('says why its figures are old', async () => {
    const kit = createKit();
    const { watch, mount } = await watched(kit);
    mount.stats = () => Promise.reject(new Error('the disk takes nothing'));
    await kit.clock.advance(7_000);
    await watch.pulse();
    assert.match(watch.trouble ?? '', /has not answered for 7 s; .* \(the disk takes nothing\)$/);
    assert.equal(watch.isSynced, false);
    watch.stop();
  });

  it('lets a check of several processes end, each of which answers late, and takes it as hung after that', async () => {
    const kit = createKit();
    let hung = 0;
    const { watch, mount } = begun(kit, { onHung: () => (hung += 1) });
    mount.stats = () => Promise.reject(new Error('no figures'));
    let tookMs = 8_000;
    mount.checkAlive = () => kit.clock.sleep(tookMs);
    for (const expected of [0, 1]) {
      await kit.clock.advance(7_000);
      await watch.pulse();
      await kit.clock.advance(20_000);
      assert.equal(hung, expected);
      tookMs = 100_000;
    }
    watch.stop();
  });

  it('says of a mount that a former daemon made that nothing is known of it yet', async () => {
    const kit = createKit();
    const { watch, mount } = begun(kit);
    Object.assign(mount, { adopted: true });
    assert.match(watch.trouble ?? '', /its first figures are not there yet/);
    await watch.pulse();
    assert.equal(watch.trouble, undefined);
    watch.stop();
  });

  it('says from the first moment that the remote does not answer, where its probe has shown it', async () => {
    const kit = createKit();
    const probeFailure = Object.assign(new Error('no route'), { remote: 'silent' as const });
    const { watch } = begun(kit, { probeFailure });
    assert.match(watch.trouble ?? '', /the remote does not answer \(no route\)/);
    assert.deepEqual([watch.remoteAnswers, watch.remoteEvidence, watch.isSynced], [false, 'silent', false]);
    await watch.pulse();
    await kit.clock.advance(0);
    assert.deepEqual([watch.remoteAnswers, watch.trouble], [true, undefined]);
    watch.stop();
  });

  it('promises no cached files in folders that nobody has listed since it was started', () => {
    const kit = createKit();
    const probeFailure = Object.assign(new Error('no route'), { remote: 'silent' as const });
    const { watch, mount } = begun(kit, { probeFailure });
    mount.hasUnreadFolders = true;
    assert.match(
      watch.trouble ?? '',
      /cached files stay readable in folders whose listings are at hand, writes/,
    );
    mount.hasUnreadFolders = false;
    assert.match(watch.trouble ?? '', /cached files stay readable, writes/);
    watch.stop();
  });

  it('is not healthy but probed while it cannot be listed, and promises no cached files then', async () => {
    const kit = createKit();
    kit.mounter.mountsWithoutRemote = () => Promise.resolve(true);
    kit.present.prober = { probe: async () => ({ ok: false, reason: 'nobody there', remote: 'silent' }) };
    kit.mounter.prepare = (mount) => {
      mount.isUnreadable = true;
      mount.remoteProblem = 'nobody there';
      mount.figures = { ...mount.figures, trouble: 'nothing can be read' };
    };
    const runner = kit.run(spec('photos'));
    const shown = () => {
      const { health, healthMessage, mounted } = runner.status();
      return [health, mounted, healthMessage];
    };
    await kit.clock.advance(0);
    assert.deepEqual(shown(), [
      'probing',
      true,
      'the remote does not answer (nobody there), and nothing that was cached can be read; nothing can be read',
    ]);
    // Another one that reads has been started.
    kit.mounter.last.isUnreadable = false;
    kit.mounter.last.remoteProblem = undefined;
    kit.mounter.last.figures = { ...kit.mounter.last.figures, trouble: undefined };
    await kit.clock.advance(3_000);
    await runner.pulse();
    await kit.clock.advance(0);
    await runner.pulse();
    assert.deepEqual(shown(), ['healthy', true, null]);
    await runner.release();
  });

  it('counts the age of figures that took long from the moment in which they were asked for', async () => {
    const kit = createKit();
    const { watch, mount } = await watched(kit);
    const stats = mount.stats.bind(mount);
    mount.stats = async (signal) => {
      const counted = await stats(signal);
      await kit.clock.advance(1_500);
      return counted;
    };
    await watch.pulse();
    const seen = [];
    for (const ms of [2_499, 1]) {
      await kit.clock.advance(ms);
      seen.push(watch.isSynced);
    }
    assert.deepEqual(seen, [true, false]);
    watch.stop();
  });

  it('gives neither size nor age where the mount does not know of all that waits', async () => {
    const kit = createKit();
    const { watch, mount } = begun(kit, { pending: async () => 3 });
    const clean = { ...mount.figures, dirtyBytes: 0 };
    mount.figures = clean;
    await watch.pulse();
    assert.deepEqual(watch.figures?.stats, clean);
    for (let turn = 0; turn < 3; turn += 1) {
      await kit.clock.advance(5_000);
      await watch.pulse();
    }
    assert.equal(watch.strandedFiles, 3);
    mount.figures = {
      ...clean,
      dirtyFiles: 1,
      dirtyBytes: 10,
      oldestDirtyAt: 5,
    };
    await watch.pulse();
    const { stats } = watch.figures ?? {};
    assert.deepEqual([stats?.dirtyFiles, stats?.dirtyBytes, stats?.oldestDirtyAt], [1, undefined, undefined]);
    watch.stop();
  });

  it('says so again as soon as figures have come', async () => {
    const kit = createKit();
    const { watch, mount } = await watched(kit);
    mount.isRcSilent = true;
    const silent = watch.pulse();
    await kit.clock.advance(6_000);
    await silent;
    assert.equal(watch.isSynced, false);
    mount.isRcSilent = false;
    await watch.pulse();
    assert.equal(watch.isSynced, true);
    watch.stop();
  });

  it('is not synced while users come to something else by its path', async () => {
    const kit = createKit();
    const { watch, mount } = await watched(kit);
    const { figures } = mount;
    mount.figures = { ...figures, isHidden: true };
    await watch.pulse();
    assert.equal(watch.isSynced, false);
    mount.figures = figures;
    await watch.pulse();
    assert.equal(watch.isSynced, true);
    watch.stop();
  });
});
