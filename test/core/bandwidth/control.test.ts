import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createKit, spec } from '../../support/shares/fake-shares.ts';
import type { Kit } from '../../support/shares/fake-shares.ts';
import { loaded, start } from '../../support/shares/fake-supervisor.ts';

describe('bandwidth over mounts', () => {
  const limited = (up: string, down = '0') =>
    loaded([spec('photos'), spec('video')], {
      bandwidth: { up, down, adaptive: false, adaptive_interval: '10s' },
    });
  const lastUp = (kit: Kit) => ['photos', 'video'].map((share) => kit.mounter.of(share).limits.at(-1)?.up);

  it('limits a fresh mount before the next cycle', async (t) => {
    const kit = createKit();
    await start(t, kit, limited('10M'));
    await kit.clock.advance(100);
    assert.deepEqual(lastUp(kit), [5 * 1024 * 1024, 5 * 1024 * 1024]);
  });

  it('sends nothing while nothing is limited', async (t) => {
    const kit = createKit();
    await start(t, kit, limited('0'));
    await kit.clock.advance(10_000);
    assert.deepEqual(
      kit.mounter.mounts.map(({ limits }) => limits),
      [[], []],
    );
  });

  it('gives most to the one that uploads and never hands out more than the budget', async (t) => {
    const kit = createKit();
    const current = new Map<string, number>();
    let highest = 0;
    kit.mounter.prepare = (mount) => {
      mount.setBandwidth = async (limit) => {
        mount.limits.push(limit);
        current.set(mount.shareName, limit.up);
        if (current.size === 2)
          highest = Math.max(
            highest,
            [...current.values()].reduce((sum, up) => sum + up, 0),
          );
      };
    };
    await start(t, kit, limited('10000000B'));
    await kit.clock.advance(3_000);
    for (const busy of ['photos', 'video', 'photos']) {
      for (const share of ['photos', 'video']) kit.mounter.of(share).dirty(share === busy ? 1 : 0);
      await kit.clock.advance(6_000);
      assert.ok((current.get(busy) ?? 0) >= 9_500_000, `${busy}: ${current.get(busy)}`);
    }
    assert.ok(highest <= 10_000_000, `${highest}`);
  });

  it('keeps what a silent mount has out of the budget of the others', async (t) => {
    const kit = createKit();
    await start(t, kit, limited('1000B'));
    await kit.clock.advance(3_000);
    kit.mounter.of('photos').isRcSilent = true;
    kit.mounter.of('photos').setBandwidth = async () => {
      throw new Error('silent');
    };
    kit.mounter.of('video').dirty(1);
    await kit.clock.advance(30_000);
    assert.deepEqual(
      kit.mounter.of('photos').limits.map(({ up }) => up),
      [500],
    );
    assert.ok(kit.mounter.of('video').limits.every(({ up }) => up <= 500));
  });

  it('raises the others also while one mount takes nothing, by what that one leaves', async (t) => {
    const kit = createKit();
    const names = ['photos', 'video', 'music'];
    await start(
      t,
      kit,
      loaded(
        names.map((name) => spec(name)),
        { bandwidth: { up: '9000000B', down: '0', adaptive: false, adaptive_interval: '10s' } },
      ),
    );
    await kit.clock.advance(3_000);
    const silent = kit.mounter.of('photos');
    silent.setBandwidth = async () => {
      throw new Error('silent');
    };
    kit.mounter.of('video').dirty(1);
    await kit.clock.advance(30_000);
    const [, video = 0, music = 0] = names.map((name) => kit.mounter.of(name).limits.at(-1)?.up);
    assert.ok(video > 5_000_000, `${video}`);
    assert.ok(music > 0 && video + music <= 6_000_000, `${video} + ${music}`);
  });

  it('leaves a share what idle ones keep when a mount has everything and gives up nothing', async (t) => {
    const kit = createKit();
    const withOne = loaded([spec('photos')], {
      bandwidth: { up: '1000B', down: '0', adaptive: false, adaptive_interval: '10s' },
    });
    const { supervisor } = await start(t, kit, withOne);
    await kit.clock.advance(3_000);
    kit.mounter.of('photos').setBandwidth = async () => {
      throw new Error('silent');
    };
    supervisor.applyConfig(limited('1000B'), false);
    await kit.clock.advance(10_000);
    assert.deepEqual(lastUp(kit), [1_000, 50]);
  });

  it('tells a mount that answers late nothing more until it has answered, then what holds now', async (t) => {
    const kit = createKit();
    await start(t, kit, limited('10000000B'));
    await kit.clock.advance(3_000);
    const late = kit.mounter.of('photos');
    const { limits } = late;
    let answer = (): void => undefined;
    late.setBandwidth = async (limit) => {
      await new Promise<void>((resolve) => (answer = resolve));
      limits.push(limit);
    };
    const told = limits.length;
    late.dirty(1);
    await kit.clock.advance(10_000);
    late.dirty(0);
    await kit.clock.advance(10_000);
    assert.equal(limits.length, told);
    assert.ok((kit.mounter.of('video').limits.at(-1)?.up ?? 0) <= 500_000, 'it may go faster at any time');
    answer();
    await kit.clock.advance(4_000);
    answer();
    await kit.clock.advance(4_000);
    assert.deepEqual(
      limits.slice(told).map(({ up }) => up),
      [9_500_000, 5_000_000],
    );
    assert.deepEqual(lastUp(kit), [5_000_000, 5_000_000]);
  });

  it('holds the least limit that plugins give a share, as long as they give it', async (t) => {
    const kit = createKit();
    await start(t, kit, limited('1000B'));
    const { hooks, clock } = kit;
    hooks.shareLimits = [
      { share: 'photos', up: 100, down: 0 },
      { share: 'photos', up: 0, down: 70 },
      { share: 'photos', up: 300, down: 90 },
      { share: 'nobody', up: 1, down: 1 },
    ];
    await clock.advance(5_000);
    assert.deepEqual(lastUp(kit), [100, 900]);
    assert.equal(kit.mounter.of('photos').limits.at(-1)?.down, 70);
    hooks.shareLimits = [];
    await clock.advance(5_000);
    assert.deepEqual(lastUp(kit), [500, 500]);
    assert.equal(kit.mounter.of('photos').limits.at(-1)?.down, 0);
  });

  it('changes nothing for a limit that cannot be read', async (t) => {
    const kit = createKit();
    const { supervisor } = await start(t, kit, limited('1000B'));
    await kit.clock.advance(3_000);
    const before = kit.mounter.of('photos').limits.length;
    supervisor.setBandwidth({ up: 'fast', down: '0' });
    await kit.clock.advance(5_000);
    assert.equal(kit.mounter.of('photos').limits.length, before);
    assert.ok(kit.lines.messages().includes('bandwidth limit not understood, nothing changed'));
  });

  it('takes a new limit and gives it up again for a new configuration', async (t) => {
    const kit = createKit();
    const { supervisor } = await start(t, kit, limited('1000B'));
    await kit.clock.advance(3_000);
    supervisor.setBandwidth({ up: '400B', down: '0' });
    await kit.clock.advance(10);
    assert.deepEqual(lastUp(kit), [200, 200]);
    supervisor.applyConfig(limited('600B'), false);
    await kit.clock.advance(10);
    assert.deepEqual(lastUp(kit), [300, 300]);
    supervisor.setBandwidth({ up: '0', down: '0' });
    await kit.clock.advance(10);
    assert.deepEqual(lastUp(kit), [0, 0]);
  });

  it('keeps a limit that was set by hand when other keys of its section change', async (t) => {
    const kit = createKit();
    const { supervisor } = await start(t, kit, limited('1000B'));
    supervisor.setBandwidth({ up: '400B', down: '0' });
    supervisor.applyConfig(
      loaded([spec('photos'), spec('video')], {
        bandwidth: { up: '1000B', down: '0', adaptive: true, adaptive_interval: '10s' },
      }),
      false,
    );
    await kit.clock.advance(100);
    assert.deepEqual(lastUp(kit), [200, 200]);
  });

  it('does not follow a plugin that answers nonsense', async (t) => {
    const kit = createKit();
    kit.hooks.budget = () => ({ up: Number.NaN, down: -1 });
    await start(t, kit, limited('1000B'));
    await kit.clock.advance(3_000);
    assert.deepEqual(lastUp(kit), [500, 500]);
  });
});
