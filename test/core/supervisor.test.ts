import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Config, LoadedConfig, ShareSpec } from 'mountkeeper';
import { StatusStore } from '../../core/status.js';
import { Supervisor } from '../../core/supervisor.js';
import { FakeMount, createKit, never, planOf, spec } from './fake-shares.ts';
import type { Kit } from './fake-shares.ts';

function loaded(specs: readonly ShareSpec[], change: Partial<Config> = {}): LoadedConfig {
  const config = {
    connections: specs[0] ? [specs[0].connection] : [],
    shares: specs.map(({ share }) => share),
    supervisor: { poll_interval: '2s', stop_timeout: '10m', state_dir: '/nowhere' },
    bandwidth: { up: '0', down: '0' },
    ...change,
  } as unknown as Config;
  return { text: '', document: {}, config, warnings: [] };
}

function create(kit: Kit, first: LoadedConfig) {
  const status = new StatusStore({ clock: kit.clock, log: kit.lines.log });
  const supervisor = new Supervisor({
    clock: kit.clock, log: kit.lines.log, status,
    plugins: {
      hooks: kit.hooks,
      mounter: () => kit.present.mounter, prober: () => kit.present.prober, exporters: () => [kit.exporter],
      statusFields: () => ({}), shareStatus: () => ({}),
    },
  }, first);
  const of = (name: string) => status.snapshot.record.shares.find((share) => share.name === name);
  return { supervisor, status, of };
}

async function start(t: TestContext, kit: Kit, first: LoadedConfig) {
  const made = create(kit, first);
  await made.supervisor.start();
  t.after(() => Promise.all([made.supervisor.release(), kit.clock.advance(10_000)]));
  return made;
}

const two = loaded([spec('photos'), spec('video')]);

describe('supervisor', () => {
  it('publishes every share before the first cycle has ended', async (t) => {
    const { status } = await start(t, createKit(), two);
    assert.deepEqual(status.snapshot.record.shares.map(({ name, health }) => [name, health]), [['photos', 'pending'], ['video', 'pending']]);
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
    const { of } = await start(t, kit, loaded([spec('photos'), spec('video')], { supervisor: { poll_interval: '1h', stop_timeout: '10m', state_dir: '/nowhere' } }));
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

  it('adopts what a former daemon left and takes down what is not configured any more', async (t) => {
    const kit = createKit();
    const kept = new FakeMount(planOf(spec('photos')), 'photos', { adopted: true });
    const stray = new FakeMount(planOf(spec('old')), 'old', { adopted: true });
    stray.dirty(1);
    kit.mounter.former.push(kept, stray);
    const { status } = await start(t, kit, loaded([spec('photos')]));
    await kit.clock.advance(5_000);
    assert.deepEqual(status.snapshot.record.shares.map(({ name, mounted }) => [name, mounted]), [['photos', true], ['old', true]]);
    stray.dirty(0);
    await kit.clock.advance(3_000);
    assert.deepEqual(status.snapshot.record.shares.map(({ name }) => name), ['photos']);
    assert.deepEqual([kept.calls, stray.calls.filter((call) => call !== 'flush')], [[], ['seal', 'unmount']]);
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

  it('drains a share that left the configuration and shows it until it is down', async (t) => {
    const kit = createKit();
    const { supervisor, status, of } = await start(t, kit, two);
    await kit.clock.advance(5_000);
    kit.mounter.of('video').dirty(1);
    supervisor.applyConfig(loaded([spec('photos')]), false);
    await kit.clock.advance(5_000);
    assert.deepEqual([of('video')?.mounted, status.snapshot.record.allSynced], [true, false]);
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
    assert.deepEqual([of('video')?.health, of('video')?.dirtyCount, kit.mounter.mounts.length], ['healthy', 1, 3]);
  });

  it('touches only the share whose settings changed', async (t) => {
    const kit = createKit();
    const { supervisor } = await start(t, kit, two);
    await kit.clock.advance(5_000);
    supervisor.applyConfig(loaded([spec('photos'), spec('video', { readOnly: true })]), false);
    await kit.clock.advance(3_000);
    assert.deepEqual(kit.mounter.mounts.map(({ shareName }) => shareName), ['photos', 'video', 'video']);
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
    assert.deepEqual((await stopped).map(({ share, count }) => [share, count]), [['office', 2]]);
    await kit.clock.advance(0);
    assert.equal(kit.clock.pending, 0);
  });

  it('lists what the shares themselves saw when the cache cannot be read at the end', async () => {
    const kit = createKit();
    const { supervisor } = create(kit, loaded([spec('photos')]));
    await supervisor.start();
    await kit.clock.advance(3_000);
    kit.mounter.last.dirty(2);
    kit.mounter.cached = async () => { throw new Error('disk error'); };
    const stopped = supervisor.stop(kit.clock.deadline(2_000));
    await kit.clock.advance(4_000);
    assert.deepEqual((await stopped).map(({ share, count }) => [share, count]), [['photos', 2]]);
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
    assert.deepEqual(kit.mounter.mounts.map((mount) => mount.calls.filter((call) => call !== 'flush')), [['release'], ['seal', 'release']]);
    assert.equal(kit.clock.pending, 0);
  });
});

describe('all_synced', () => {
  const after = async (t: TestContext, prepare: (kit: Kit) => void, ms = 12_000): Promise<boolean> => {
    const kit = createKit();
    prepare(kit);
    const { status } = await start(t, kit, two);
    await kit.clock.advance(ms);
    return status.snapshot.record.allSynced;
  };
  const mountsWith = (change: (mount: FakeMount) => void) => (kit: Kit): void => {
    kit.mounter.prepare = (mount) => (mount.shareName === 'video' ? change(mount) : undefined);
  };

  it('is true when every share is mounted, reachable and clean', async (t) => {
    assert.equal(await after(t, () => undefined), true);
  });

  const FALSE: readonly (readonly [string, (kit: Kit) => void])[] = [
    ['a share is failed', (kit) => kit.prober.problems.set('video', 'down')],
    ['a share is still being probed', (kit) => void kit.prober.hangs.add('video')],
    ['a file is dirty', mountsWith((mount) => mount.dirty(1))],
    ['a file is in error', mountsWith((mount) => { mount.figures = { ...mount.figures, erroredFiles: 1 }; })],
    ['something is uploading', mountsWith((mount) => { mount.figures = { ...mount.figures, uploading: true }; })],
    ['a remote does not answer', mountsWith((mount) => { mount.remoteProblem = 'down'; })],
    ['a remote has not answered yet', mountsWith((mount) => { mount.checkRemote = never; })],
    ['figures do not come', mountsWith((mount) => { mount.isRcSilent = true; })],
    ['dirty files of a share that is not mounted lie on the disk', (kit) => kit.mounter.onDisk.set('old', 1)],
    ['dirty files of a mounted share lie where it does not lead', (kit) => kit.mounter.onDisk.set('video', 1)],
    ['the disk cannot be read', (kit) => { kit.mounter.cached = async () => { throw new Error('disk error'); }; }],
    ['one cache cannot be read', (kit) => kit.mounter.onDisk.set('old', undefined)],
    ['the disk has not been read yet', (kit) => { kit.mounter.cached = never; }],
  ];
  for (const [what, prepare] of FALSE) {
    it(`is false while ${what}`, async (t) => assert.equal(await after(t, prepare), false));
  }

  it('is false at once when a share is lost, and never true between a removal and the look at the disk', async (t) => {
    const kit = createKit();
    const { supervisor, status } = await start(t, kit, two);
    await kit.clock.advance(12_000);
    assert.equal(status.snapshot.record.allSynced, true);
    const seen: boolean[] = [];
    status.onPublish(({ record }) => seen.push(record.allSynced));
    const video = kit.mounter.of('video');
    video.unmount = async () => {
      kit.mounter.onDisk.set('video', 3);
      video.exit('ended by us');
    };
    supervisor.applyConfig(loaded([spec('photos')]), false);
    await kit.clock.advance(10_000);
    assert.ok(seen.length > 2);
    assert.deepEqual(seen.filter(Boolean), []);
    assert.match(status.notices.map(({ message }) => message).join(), /3 files of the share 'video'/);
  });

  it('shows dirty files on disk of a share that failed to start', async (t) => {
    const kit = createKit();
    kit.prober.problems.set('video', 'down');
    kit.mounter.onDisk.set('video', 7);
    const { of } = await start(t, kit, two);
    await kit.clock.advance(30);
    assert.deepEqual([of('video')?.health, of('video')?.dirtyCount], ['failed', 7]);
  });
});

describe('bandwidth over mounts', () => {
  const limited = (up: string, down = '0') => loaded([spec('photos'), spec('video')], { bandwidth: { up, down } });
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
    assert.deepEqual(kit.mounter.mounts.map(({ limits }) => limits), [[], []]);
  });

  it('gives most to the one that uploads and never hands out more than the budget', async (t) => {
    const kit = createKit();
    const current = new Map<string, number>();
    let highest = 0;
    kit.mounter.prepare = (mount) => {
      mount.setBandwidth = async (limit) => {
        mount.limits.push(limit);
        current.set(mount.shareName, limit.up);
        if (current.size === 2) highest = Math.max(highest, [...current.values()].reduce((sum, up) => sum + up, 0));
      };
    };
    await start(t, kit, limited('1000B'));
    await kit.clock.advance(3_000);
    for (const busy of ['photos', 'video', 'photos']) {
      for (const share of ['photos', 'video']) kit.mounter.of(share).dirty(share === busy ? 1 : 0);
      await kit.clock.advance(6_000);
      assert.ok((current.get(busy) ?? 0) >= 900, `${busy}: ${current.get(busy)}`);
    }
    assert.ok(highest <= 1_000, `${highest}`);
  });

  it('keeps what a silent mount has out of the budget of the others', async (t) => {
    const kit = createKit();
    await start(t, kit, limited('1000B'));
    await kit.clock.advance(3_000);
    kit.mounter.of('photos').isRcSilent = true;
    kit.mounter.of('photos').setBandwidth = async () => { throw new Error('silent'); };
    kit.mounter.of('video').dirty(1);
    await kit.clock.advance(30_000);
    assert.deepEqual(lastUp(kit), [500, 500]);
  });

  it('changes nothing for a limit that cannot be read', async (t) => {
    const kit = createKit();
    const { supervisor } = await start(t, kit, limited('1000B'));
    await kit.clock.advance(3_000);
    const before = kit.mounter.of('photos').limits.length;
    supervisor.setBandwidth({ up: 'fast', down: '0' });
    await kit.clock.advance(5_000);
    assert.equal(kit.mounter.of('photos').limits.length, before);
    assert.ok(kit.lines.texts().includes('bandwidth limit not understood, nothing changed'));
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

  it('does not follow a plugin that answers nonsense', async (t) => {
    const kit = createKit();
    kit.hooks.budget = () => ({ up: Number.NaN, down: -1 });
    await start(t, kit, limited('1000B'));
    await kit.clock.advance(3_000);
    assert.deepEqual(lastUp(kit), [500, 500]);
  });
});
