import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeMount, createKit, never, planOf, spec } from '../../support/shares/fake-shares.ts';
import type { Kit } from '../../support/shares/fake-shares.ts';

const photos = spec('photos');

async function mounted(kit: Kit = createKit()) {
  const runner = kit.run(photos);
  await kit.clock.advance(0);
  assert.equal(runner.health, 'healthy');
  return { kit, runner };
}

describe('share runner, bringing up', () => {
  it('probes, mounts, exposes and tells in this order', async () => {
    const { kit, runner } = await mounted();
    assert.deepEqual(kit.prober.probed, ['photos']);
    assert.deepEqual(kit.exporter.calls, ['add photos smb']);
    assert.deepEqual(kit.hooks.seen, [
      'shareHealthChanged pending→probing',
      'shareHealthChanged probing→healthy, mounted',
      'afterMount photos',
    ]);
    assert.equal(runner.status().mounted, true);
    await runner.release();
  });

  it('mounts nothing while the probe fails, and comes back by itself', async () => {
    const kit = createKit();
    kit.prober.problems.set('photos', 'no such path');
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.deepEqual(
      [runner.health, runner.status().healthMessage, kit.mounter.tried.length],
      ['failed', 'no such path', 0],
    );
    await kit.clock.advance(6_100);
    assert.equal(kit.prober.probed.length, 2);
    kit.prober.problems.clear();
    await kit.clock.advance(12_100);
    assert.equal(runner.health, 'healthy');
    await runner.release();
  });

  it('leaves the probe to the mount where the prober says so, unless somebody asks for one', async () => {
    const kit = createKit();
    kit.prober.isLeaving = true;
    const { runner } = await mounted(kit);
    assert.deepEqual([kit.prober.probed, kit.mounter.unprobed], [[], [true]]);
    runner.reconnect();
    await kit.clock.advance(0);
    assert.deepEqual([kit.prober.probed, kit.mounter.unprobed], [['photos'], [true, false]]);
    await runner.release();
  });

  it('probes a share that could not be mounted without, and goes by what the probe says', async () => {
    const kit = createKit();
    kit.prober.isLeaving = true;
    kit.mounter.problem = 'not listed';
    kit.prober.problems.set('photos', 'no such path');
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.deepEqual([runner.health, runner.status().healthMessage], ['failed', 'no such path']);
    assert.deepEqual([kit.prober.probed, kit.mounter.unprobed], [['photos'], [true]]);
    await kit.clock.advance(6_100);
    assert.deepEqual(kit.prober.probed, ['photos', 'photos']);
    assert.deepEqual(kit.mounter.unprobed, [true], 'that is not tried again before the share has been up');
    kit.mounter.problem = undefined;
    kit.prober.problems.clear();
    await kit.clock.advance(12_100);
    assert.deepEqual([runner.health, kit.mounter.unprobed], ['healthy', [true, false]]);
    await runner.release();
  });

  it('asks the plugins before a mount without a probe, too', async () => {
    const kit = createKit();
    kit.prober.isLeaving = true;
    kit.hooks.reason = 'not now';
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.deepEqual([runner.health, runner.status().healthMessage], ['failed', 'not now']);
    assert.deepEqual(kit.mounter.tried, []);
    await runner.release();
  });

  it('comes up without its remote, but not right after somebody asked for a fresh probe', async () => {
    const kit = createKit();
    kit.mounter.mountsWithoutRemote = () => Promise.resolve(true);
    kit.present.prober = { probe: async () => ({ ok: false, reason: 'nobody there', remote: 'silent' }) };
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.equal(runner.health, 'healthy');
    runner.reconnect();
    await kit.clock.advance(0);
    assert.deepEqual([runner.health, runner.status().healthMessage], ['failed', 'nobody there']);
    await kit.clock.advance(6_100);
    assert.equal(runner.health, 'healthy');
    await runner.release();
  });

  it('says the same in status, hooks and to plugins while it is up without its remote', async () => {
    const kit = createKit();
    kit.mounter.mountsWithoutRemote = () => Promise.resolve(true);
    kit.present.prober = { probe: async () => ({ ok: false, reason: 'nobody there', remote: 'silent' }) };
    kit.mounter.prepare = (mount) =>
      Object.assign(mount, { isUnreadable: true, remoteProblem: 'nobody there' });
    const runner = kit.run(photos);
    const said = (): unknown => [runner.status().health, runner.live.health, kit.hooks.seen.splice(0)];
    await kit.pass(6_000, runner);
    assert.deepEqual(kit.exporter.calls, ['add photos smb'], 'clients reach what was written here');
    assert.deepEqual(said(), [
      'probing',
      'probing',
      ['shareHealthChanged pending→probing', 'afterMount photos'],
    ]);
    Object.assign(kit.mounter.last, { isUnreadable: false, remoteProblem: undefined });
    await kit.pass(6_000, runner);
    assert.deepEqual(said(), ['healthy', 'healthy', ['shareHealthChanged probing→healthy, mounted']]);
    // Its reader dies in the next outage.
    Object.assign(kit.mounter.last, { isUnreadable: true, remoteProblem: 'nobody there' });
    await kit.pass(6_000, runner);
    assert.deepEqual(said(), ['probing', 'probing', ['shareHealthChanged healthy→probing, mounted']]);
    assert.deepEqual(kit.exporter.calls, ['add photos smb']);
    await runner.release();
  });

  it('reports what a failed probe, mount or light check shows about the remote', async () => {
    const kit = createKit();
    const told: (string | undefined)[] = [];
    const { observe } = kit.hooks;
    kit.hooks.observe = async (hook, ...args) => {
      const [change] = args as [{ to?: string; remote?: string }];
      if (hook === 'shareHealthChanged' && change.to === 'failed') told.push(change.remote);
      return observe(hook, ...args);
    };
    const runner = kit.run(photos);
    kit.present.prober = { probe: async () => ({ ok: false, reason: 'no', remote: 'answers' }) };
    await kit.clock.advance(0);
    kit.present.prober = undefined;
    kit.mounter.probe = async () => {
      throw Object.assign(new Error('nobody there'), { remote: 'silent' });
    };
    await kit.clock.advance(7_000);
    kit.mounter.probe = async () => {
      throw new Error('a defect');
    };
    await kit.clock.advance(13_000);
    assert.deepEqual(told, ['answers', 'silent', undefined]);
    kit.mounter.probe = async () => undefined;
    await kit.clock.advance(25_000);
    kit.mounter.last.checkRemote = async () => {
      throw Object.assign(new Error('the password has changed'), { remote: 'answers' });
    };
    await kit.pass(6_000, runner);
    assert.deepEqual([runner.live.remoteAnswers, runner.live.remoteEvidence], [false, 'answers']);
    assert.match(
      runner.status().healthMessage ?? '',
      /^the remote turns this share away \(the password has changed\)/,
    );
    await runner.release();
  });

  it('waits longer after each failure and never longer than 72 s', async () => {
    const kit = createKit();
    kit.prober.problems.set('photos', 'down');
    const runner = kit.run(photos);
    await kit.clock.advance(600_000);
    const before = kit.prober.probed.length;
    assert.ok(before > 10 && before < 22, `${before} probes in 10 min`);
    await kit.clock.advance(72_000);
    assert.ok(kit.prober.probed.length > before);
    await runner.release();
  });

  it('leaves the back-off at once when it is told to reconnect', async () => {
    const kit = createKit();
    kit.prober.problems.set('photos', 'down');
    const runner = kit.run(photos);
    await kit.clock.advance(100_000);
    kit.prober.problems.clear();
    runner.reconnect();
    await kit.clock.advance(0);
    assert.equal(runner.health, 'healthy');
    await runner.release();
  });

  it('has what the remote shows taken as it is, when it is told to reconnect, and at no other mount', async () => {
    const kit = createKit();
    kit.mounter.prepare = (mount) =>
      Object.assign(mount, { acceptRemote: () => void mount.calls.push('accept') });
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    const first = kit.mounter.last;
    first.exit('it was killed');
    await kit.clock.advance(3_000);
    assert.equal(first.calls.includes('accept'), false);
    const second = kit.mounter.last;
    assert.notEqual(second, first);
    runner.reconnect();
    await kit.clock.advance(0);
    assert.equal(second.calls[0], 'accept', 'before it is taken down');
    await runner.release();
  });

  it('interrupts a probe that hangs when it is told to reconnect', async () => {
    const kit = createKit();
    kit.prober.hangs.add('photos');
    const runner = kit.run(photos);
    await kit.clock.advance(1_000);
    assert.equal(runner.health, 'probing');
    kit.prober.hangs.clear();
    runner.reconnect();
    await kit.clock.advance(0);
    assert.equal(runner.health, 'healthy');
    await runner.release();
  });

  it('gives up a prober that does not end when interrupted', async () => {
    const kit = createKit();
    kit.present.prober = { probe: never };
    const runner = kit.run(photos);
    await kit.clock.advance(1_000);
    kit.present.prober = kit.prober;
    runner.reconnect();
    await kit.clock.advance(5_100);
    assert.equal(runner.health, 'healthy');
    await runner.release();
  });

  it('goes on when a prober throws', async () => {
    const kit = createKit();
    kit.present.prober = {
      probe: () => {
        throw new Error('defect');
      },
    };
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.equal(runner.status().healthMessage, 'defect');
    kit.present.prober = kit.prober;
    await kit.clock.advance(6_100);
    assert.equal(runner.health, 'healthy');
    await runner.release();
  });

  it('asks the mounter itself when no prober is active', async () => {
    const kit = createKit();
    kit.present.prober = undefined;
    kit.mounter.probe = async () => {
      throw new Error('not listable');
    };
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.equal(runner.status().healthMessage, 'not listable');
    await runner.release();
  });

  it('does not mount against a veto, and says its reason', async () => {
    const kit = createKit();
    kit.hooks.reason = 'the battery is low';
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.deepEqual(
      [runner.health, runner.status().healthMessage, kit.mounter.tried.length],
      ['failed', 'the battery is low', 0],
    );
    await runner.release();
  });

  it('says what stands in the way when nothing can mount', async () => {
    const kit = createKit();
    kit.present.mounter = undefined;
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.match(runner.status().healthMessage ?? '', /no mounter is active/);
    await runner.release();
  });

  it('takes down a mount that came up after it had been given up', async () => {
    const kit = createKit();
    let come: () => void = () => undefined;
    kit.mounter.mountCall = (mount) =>
      new Promise((resolve) => {
        come = () => resolve(mount);
      });
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    const removed = runner.remove(AbortSignal.abort());
    await kit.clock.advance(61_000);
    await removed;
    come();
    await kit.clock.advance(0);
    assert.deepEqual(kit.mounter.last.calls, ['unmount']);
  });

  it('holds nothing up for a plugin that is slow to hear', async () => {
    const kit = createKit();
    kit.hooks.delay = never;
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    assert.equal(runner.health, 'healthy');
    await runner.release();
  });

  it('is not held by an exporter that hangs', async () => {
    const kit = createKit();
    kit.exporter.isStuck = true;
    const runner = kit.run(photos);
    await kit.clock.advance(0);
    kit.mounter.last.exit('killed');
    await kit.clock.advance(16_000);
    assert.equal(kit.mounter.mounts.length, 2);
    await Promise.all([runner.release(), kit.clock.advance(6_000)]);
  });
});

describe('share runner, letting go', () => {
  it('leaves the mount alone on release', async () => {
    const { kit, runner } = await mounted();
    await runner.release();
    assert.deepEqual(kit.mounter.last.calls, ['release']);
    assert.deepEqual(kit.exporter.calls, ['add photos smb']);
  });

  it('leaves a mount alone on release that was being drained for removal', async () => {
    const { kit, runner } = await mounted();
    kit.mounter.last.dirty(1);
    const removed = runner.remove(new AbortController().signal);
    await kit.clock.advance(1_000);
    await runner.release();
    await removed;
    await kit.clock.advance(60_000);
    assert.deepEqual(
      kit.mounter.last.calls.filter((call) => call !== 'flush'),
      ['freeze', 'release'],
    );
  });

  it('keeps an adopted mount and announces it to exporters again', async () => {
    const kit = createKit();
    const former = new FakeMount(planOf(photos), 'photos', { adopted: true });
    const runner = kit.run(photos, former);
    await kit.clock.advance(0);
    assert.deepEqual(
      [runner.health, runner.mount === former, kit.prober.probed.length],
      ['healthy', true, 0],
    );
    assert.deepEqual(kit.exporter.calls, ['add photos smb']);
    assert.deepEqual(kit.hooks.seen, ['shareHealthChanged pending→healthy, mounted', 'afterMount photos']);
    await runner.release();
    assert.deepEqual(former.calls, ['release']);
  });

  it('calls an adopted mount healthy that nobody has asked, unless nothing of its remote can be read', async () => {
    const kit = createKit();
    const former = new FakeMount(planOf(photos), 'photos', { adopted: true });
    former.isUnreadable = true;
    former.remoteProblem = 'nobody there';
    const runner = kit.run(photos, former);
    await kit.pass(6_000, runner);
    assert.equal(runner.health, 'probing');
    former.isUnreadable = false;
    former.remoteProblem = undefined;
    await kit.pass(6_000, runner);
    assert.equal(runner.health, 'healthy');
    assert.deepEqual(kit.hooks.seen, [
      'shareHealthChanged pending→probing, mounted',
      'afterMount photos',
      'shareHealthChanged probing→healthy, mounted',
    ]);
    await runner.release();
  });

  it('mounts an adopted mount anew that a former daemon had frozen', async () => {
    const kit = createKit();
    const former = new FakeMount(planOf(photos), 'photos', { adopted: true, isFrozen: true });
    const runner = kit.run(photos, former);
    await kit.clock.advance(0);
    assert.deepEqual([former.calls, runner.mount === kit.mounter.last], [['unmount'], true]);
    await runner.release();
  });

  it('replaces an adopted mount whose settings differ once it is clean', async () => {
    const kit = createKit();
    const former = new FakeMount(planOf(spec('photos', { remotePath: 'elsewhere' })), 'photos', {
      adopted: true,
    });
    former.dirty(1);
    const runner = kit.run(photos, former);
    await kit.clock.advance(30_000);
    assert.equal(runner.mount, former);
    former.dirty(0);
    await kit.clock.advance(1_000);
    assert.deepEqual([former.calls.includes('unmount'), runner.mount === kit.mounter.last], [true, true]);
    await runner.release();
  });
});
