import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeMount, createKit, never, planOf, spec } from '../../support/shares/fake-shares.ts';
import { create, loaded, start } from '../../support/shares/fake-supervisor.ts';

const two = loaded([spec('photos'), spec('video')]);

describe('supervisor', () => {
  it('publishes every share before the first cycle has ended', async (t) => {
    const { status } = await start(t, createKit(), two);
    assert.deepEqual(
      status.snapshot.record.shares.map(({ name, health }) => [name, health]),
      [
        ['photos', 'pending'],
        ['video', 'pending'],
      ],
    );
    assert.equal(status.snapshot.record.allSynced, false);
  });

  it('publishes a change of state at once, a burst of them once', async (t) => {
    const kit = createKit();
    const { status, of } = await start(t, kit, two);
    const { version } = status.snapshot;
    await kit.clock.advance(30);
    assert.deepEqual([of('photos')?.health, of('video')?.mounted], ['healthy', true]);
    assert.ok(status.snapshot.version - version <= 3, `${status.snapshot.version - version} publications`);
  });

  it('brings up the others while one probe hangs', async (t) => {
    const kit = createKit();
    kit.prober.hangs.add('photos');
    const { of } = await start(t, kit, two);
    await kit.clock.advance(50);
    assert.deepEqual([of('photos')?.health, of('video')?.health], ['probing', 'healthy']);
  });

  it('has settled when each share is up or has failed, or time is up', async (t) => {
    const settledAfter = async (kit: ReturnType<typeof createKit>): Promise<number | undefined> => {
      const { supervisor } = await start(t, kit, two);
      const [beganMs, span] = [kit.clock.monotonic(), { ms: undefined as number | undefined }];
      void supervisor.settled(500).then(() => (span.ms = kit.clock.monotonic() - beganMs));
      for (let step = 0; step < 8 && span.ms === undefined; step += 1) await kit.clock.advance(100);
      return span.ms;
    };
    const [up, hanging] = [createKit(), createKit()];
    up.prober.problems.set('photos', 'no such path');
    assert.equal(await settledAfter(up), 0);
    hanging.prober.hangs.add('photos');
    assert.equal(await settledAfter(hanging), 500);
  });

  it('does not wait for a mount whose figures do not come', async (t) => {
    const kit = createKit();
    const { status, of } = await start(t, kit, two);
    await kit.clock.advance(100);
    kit.mounter.of('photos').isStuck = true;
    await kit.clock.advance(4_000);
    kit.mounter.of('video').dirty(5);
    const { version } = status.snapshot;
    await kit.clock.advance(2_500);
    assert.equal(of('video')?.dirtyCount, 5);
    assert.ok(status.snapshot.version > version);
  });

  it('heals a mount that hangs while the other goes on, also with a long poll interval', async (t) => {
    const kit = createKit();
    const { of } = await start(
      t,
      kit,
      loaded([spec('photos'), spec('video')], {
        supervisor: { poll_interval: '1h', stop_timeout: '10m', state_dir: '/nowhere' },
      }),
    );
    await kit.clock.advance(10_000);
    const stuck = kit.mounter.of('photos');
    stuck.isStuck = true;
    await kit.clock.advance(20_000);
    assert.deepEqual(stuck.calls, ['kill']);
    assert.deepEqual([of('photos')?.health, kit.mounter.of('video').calls], ['healthy', []]);
  });

  it('goes on when a plugin never answers a hook', async (t) => {
    const kit = createKit();
    kit.hooks.delay = never;
    const { status, of } = await start(t, kit, two);
    await kit.clock.advance(10_000);
    const { version } = status.snapshot;
    await kit.clock.advance(10_000);
    assert.ok(status.snapshot.version >= version + 4);
    assert.equal(of('photos')?.health, 'healthy');
  });

  it("says what plugins find wrong with a mounted share, behind the core's own words", async (t) => {
    const kit = createKit();
    const { status, of } = await start(t, kit, two);
    await kit.clock.advance(5_000);
    const trouble = (share: string, message: string) => ({ share, message });
    kit.hooks.shareTroubles = [
      ...['dry', 'dry', 'cold', 'dark', 'far'].map((word) => trouble('photos', `garden: ${word}`)),
      trouble('photos', 'pond: deep'),
      trouble('video', 'garden: dry'),
      trouble('nowhere', 'garden: dry'),
    ];
    kit.prober.problems.set('video', 'gone');
    kit.mounter.of('video').exit('killed');
    await kit.clock.advance(10_000);
    const of2 = ['photos', 'video'].map((name) => [of(name)?.health, of(name)?.healthMessage]);
    assert.deepEqual(of2, [
      ['healthy', 'garden: dry; garden: cold; garden: dark; pond: deep'],
      ['failed', 'gone'],
    ]);
    assert.equal(status.snapshot.record.shares.length, 2);
    Object.assign(kit.mounter.of('photos'), { isUnreadable: true, remoteProblem: 'nobody there' });
    await kit.clock.advance(6_000);
    assert.equal(of('photos')?.health, 'probing');
    assert.match(
      of('photos')?.healthMessage ?? '',
      /nothing that was cached can be read.*; garden: dry; garden: cold/,
    );
    Object.assign(kit.mounter.of('photos'), { isUnreadable: false, remoteProblem: undefined });
    kit.hooks.shareTroubles = [];
    await kit.clock.advance(6_000);
    assert.equal(of('photos')?.healthMessage, null);
  });

  it('adopts what a former daemon left and takes down what is not configured any more', async (t) => {
    const kit = createKit();
    const kept = new FakeMount(planOf(spec('photos')), 'photos', { adopted: true });
    const stray = new FakeMount(planOf(spec('old')), 'old', { adopted: true });
    stray.dirty(1);
    kit.mounter.former.push(kept, stray);
    const { status } = await start(t, kit, loaded([spec('photos')]));
    await kit.clock.advance(5_000);
    assert.deepEqual(
      status.snapshot.record.shares.map(({ name, mounted }) => [name, mounted]),
      [
        ['photos', true],
        ['old', true],
      ],
    );
    stray.dirty(0);
    await kit.clock.advance(3_000);
    assert.deepEqual(
      status.snapshot.record.shares.map(({ name }) => name),
      ['photos'],
    );
    assert.deepEqual(
      [kept.calls, stray.calls.filter((call) => call !== 'flush')],
      [[], ['freeze', 'unmount']],
    );
  });

  it('starts though adopting never ends', async () => {
    const kit = createKit();
    kit.mounter.adopt = never;
    const { supervisor, of } = create(kit, two);
    await Promise.all([supervisor.start(), kit.clock.advance(31_000)]);
    await kit.clock.advance(100);
    assert.equal(of('photos')?.health, 'healthy');
    await supervisor.release();
  });

  it('lets go of what was adopted too late: it must not keep up what is mounted anew', async () => {
    const kit = createKit();
    const late = new FakeMount(planOf(spec('photos')), 'photos', { adopted: true });
    kit.mounter.adopt = () => new Promise((resolve) => void kit.clock.after(35_000, () => resolve([late])));
    const { supervisor, of } = create(kit, two);
    await Promise.all([supervisor.start(), kit.clock.advance(31_000)]);
    await kit.clock.advance(10_000);
    assert.deepEqual([of('photos')?.health, late.calls], ['healthy', ['release']]);
    await supervisor.release();
  });

  it('counts what waits also while a lost mount is being cleared', async (t) => {
    const kit = createKit();
    const { of } = await start(t, kit, two);
    await kit.clock.advance(5_000);
    const mount = kit.mounter.of('photos');
    mount.dirty(3);
    await kit.clock.advance(3_000);
    kit.mounter.onDisk.set('photos', 3);
    mount.kill = () => new Promise((resolve) => void kit.clock.after(5_000, resolve));
    mount.exit('killed');
    await kit.clock.advance(1_000);
    assert.deepEqual([of('photos')?.mounted, of('photos')?.dirtyCount], [false, 3]);
  });

  it('says that the number of waiting files is unknown until a mount or the disk has told it', async (t) => {
    const kit = createKit();
    let read = (): void => undefined;
    kit.mounter.cached = () => new Promise((resolve) => (read = () => resolve(['photos'])));
    kit.mounter.onDisk.set('photos', 3);
    kit.prober.hangs.add('photos');
    const { of } = await start(t, kit, two);
    await kit.clock.advance(3_000);
    const seen = () =>
      ['photos', 'video'].map((name) => [of(name)?.dirtyCount, of(name)?.isDirtyCountUnknown]);
    assert.deepEqual(seen(), [
      [0, true],
      [0, undefined],
    ]);
    read();
    await kit.clock.advance(3_000);
    assert.deepEqual(seen()[0], [3, undefined]);
  });

  it('drains a share that left the configuration and shows it until it is down', async (t) => {
    const kit = createKit();
    const { supervisor, status, of } = await start(t, kit, two);
    await kit.clock.advance(5_000);
    kit.mounter.of('video').dirty(1);
    assert.deepEqual(supervisor.find('video'), supervisor.live()[1]);
    supervisor.applyConfig(loaded([spec('photos')]), false);
    await kit.clock.advance(5_000);
    assert.deepEqual([of('video')?.mounted, status.snapshot.record.allSynced], [true, false]);
    assert.deepEqual([supervisor.live().length, supervisor.find('video')], [1, undefined]);
    kit.mounter.of('video').dirty(0);
    await kit.clock.advance(5_000);
    assert.deepEqual([of('video'), status.snapshot.record.allSynced], [undefined, true]);
    assert.deepEqual(kit.mounter.of('photos').calls, []);
  });

  it('brings a share back that is added again while it still drains', async (t) => {
    const kit = createKit();
    const { supervisor, of } = await start(t, kit, two);
    await kit.clock.advance(5_000);
    kit.mounter.of('video').dirty(1);
    supervisor.applyConfig(loaded([spec('photos')]), false);
    await kit.clock.advance(5_000);
    kit.mounter.prepare = (mount) => mount.dirty(1);
    supervisor.applyConfig(two, false);
    await kit.clock.advance(2_000);
    assert.deepEqual(
      [of('video')?.health, of('video')?.dirtyCount, kit.mounter.mounts.length],
      ['healthy', 1, 3],
    );
  });

  it('touches only the share whose settings changed', async (t) => {
    const kit = createKit();
    const { supervisor } = await start(t, kit, two);
    await kit.clock.advance(5_000);
    supervisor.applyConfig(loaded([spec('photos'), spec('video', { readOnly: true })]), false);
    await kit.clock.advance(3_000);
    assert.deepEqual(
      kit.mounter.mounts.map(({ shareName }) => shareName),
      ['photos', 'video', 'video'],
    );
    assert.equal(kit.exporter.calls.filter((call) => call.includes('photos')).length, 1);
  });

  it('stops every share at its own pace and lists what is left', async () => {
    const kit = createKit();
    const { supervisor } = create(kit, loaded([spec('photos'), spec('video'), spec('office')]));
    await supervisor.start();
    await kit.clock.advance(3_000);
    kit.mounter.of('photos').isStuck = true;
    kit.mounter.of('office').dirty(2);
    kit.mounter.onDisk.set('office', 2);
    const stopped = supervisor.stop(kit.clock.deadline(30_000));
    await kit.clock.advance(1_000);
    assert.ok(kit.mounter.of('video').calls.includes('unmount'));
    await kit.clock.advance(20_000);
    assert.ok(kit.mounter.of('photos').calls.includes('kill'));
    await kit.clock.advance(15_000);
    const { left, isKnown } = await stopped;
    assert.deepEqual([left.map(({ share, count }) => [share, count]), isKnown], [[['office', 2]], true]);
    await kit.clock.advance(0);
    assert.equal(kit.clock.pending, 0);
  });

  for (const limit of ['with time to drain', 'at once'])
    it(`is not kept from its end by a reload that is late, ${limit}`, async () => {
      const kit = createKit();
      const { supervisor } = create(kit, two);
      await supervisor.start();
      await kit.clock.advance(3_000);
      kit.mounter.of('video').dirty(1);
      let isOver = false;
      const signal = limit === 'at once' ? AbortSignal.abort() : kit.clock.deadline(600_000);
      const stopped = supervisor.stop(signal).finally(() => (isOver = true));
      if (limit !== 'at once') await kit.clock.advance(1_000);
      assert.equal(isOver, false);
      supervisor.applyConfig(loaded([spec('photos'), spec('video'), spec('office')]), false);
      kit.mounter.of('video').dirty(0);
      await kit.clock.advance(60_000);
      assert.equal(isOver, true);
      await stopped;
      assert.deepEqual(
        kit.mounter.mounts.map(({ shareName }) => shareName),
        ['photos', 'video'],
      );
    });

  it('lists what the shares themselves saw when the cache cannot be read at the end', async () => {
    const kit = createKit();
    const { supervisor } = create(kit, loaded([spec('photos')]));
    await supervisor.start();
    await kit.clock.advance(3_000);
    kit.mounter.last.dirty(2);
    kit.mounter.cached = async () => {
      throw new Error('disk error');
    };
    const stopped = supervisor.stop(kit.clock.deadline(2_000));
    await kit.clock.advance(4_000);
    const { left, isKnown } = await stopped;
    assert.deepEqual([left.map(({ share, count }) => [share, count]), isKnown], [[['photos', 2]], false]);
  });

  it('does not take nothing seen for nothing left when the cache cannot be read at the end', async () => {
    for (const cached of [() => Promise.reject(new Error('its disk is not there')), never]) {
      const kit = createKit();
      const { supervisor } = create(kit, loaded([spec('photos')]));
      kit.prober.problems.set('photos', 'no');
      kit.mounter.cached = cached;
      await supervisor.start();
      await kit.clock.advance(3_000);
      const stopped = supervisor.stop(kit.clock.deadline(2_000));
      await kit.clock.advance(70_000);
      assert.deepEqual(await stopped, { left: [], isKnown: false });
    }
  });

  it('has left nothing where there was no share and no mounter', async () => {
    const kit = createKit();
    kit.present.mounter = undefined;
    const { supervisor } = create(kit, loaded([]));
    await supervisor.start();
    const stopped = supervisor.stop(kit.clock.deadline(2_000));
    await kit.clock.advance(70_000);
    assert.deepEqual(await stopped, { left: [], isKnown: true });
  });

  it('takes nothing down on release', async () => {
    const kit = createKit();
    const { supervisor } = create(kit, two);
    await supervisor.start();
    await kit.clock.advance(3_000);
    kit.mounter.of('video').dirty(1);
    supervisor.applyConfig(loaded([spec('photos')]), false);
    await kit.clock.advance(1_000);
    await supervisor.release();
    await kit.clock.advance(60_000);
    assert.deepEqual(
      kit.mounter.mounts.map((mount) => mount.calls.filter((call) => call !== 'flush')),
      [['release'], ['freeze', 'release']],
    );
    assert.equal(kit.clock.pending, 0);
  });
});
