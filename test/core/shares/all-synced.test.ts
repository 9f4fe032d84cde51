import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createKit, never, spec } from '../../support/shares/fake-shares.ts';
import type { FakeMount, Kit } from '../../support/shares/fake-shares.ts';
import { loaded, start } from '../../support/shares/fake-supervisor.ts';

const two = loaded([spec('photos'), spec('video')]);

describe('all_synced', () => {
  const after = async (t: TestContext, prepare: (kit: Kit) => void, ms = 12_000): Promise<boolean> => {
    const kit = createKit();
    prepare(kit);
    const { status } = await start(t, kit, two);
    await kit.clock.advance(ms);
    return status.snapshot.record.allSynced;
  };
  const mountsWith =
    (change: (mount: FakeMount) => void) =>
    (kit: Kit): void => {
      kit.mounter.prepare = (mount) => (mount.shareName === 'video' ? change(mount) : undefined);
    };

  it('is true when every share is mounted, reachable and clean', async (t) => {
    assert.equal(await after(t, () => undefined), true);
  });

  const FALSE: readonly (readonly [string, (kit: Kit) => void])[] = [
    ['a share is failed', (kit) => kit.prober.problems.set('video', 'down')],
    ['a share is still being probed', (kit) => void kit.prober.hangs.add('video')],
    ['a file is dirty', mountsWith((mount) => mount.dirty(1))],
    [
      'a file is in error',
      mountsWith((mount) => {
        mount.figures = { ...mount.figures, erroredFiles: 1 };
      }),
    ],
    [
      'something is uploading',
      mountsWith((mount) => {
        mount.figures = { ...mount.figures, uploading: true };
      }),
    ],
    [
      'a remote does not answer',
      mountsWith((mount) => {
        mount.remoteProblem = 'down';
      }),
    ],
    [
      'a remote has not answered yet',
      mountsWith((mount) => {
        mount.checkRemote = never;
      }),
    ],
    [
      'figures do not come',
      mountsWith((mount) => {
        mount.isRcSilent = true;
      }),
    ],
    ['dirty files of a share that is not mounted lie on the disk', (kit) => kit.mounter.onDisk.set('old', 1)],
    [
      'dirty files of a mounted share lie where it does not lead',
      (kit) => kit.mounter.onDisk.set('video', 1),
    ],
    [
      'the disk cannot be read',
      (kit) => {
        kit.mounter.cached = async () => {
          throw new Error('disk error');
        };
      },
    ],
    ['one cache cannot be read', (kit) => kit.mounter.onDisk.set('old', undefined)],
    [
      'the disk has not been read yet',
      (kit) => {
        kit.mounter.cached = never;
      },
    ],
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
    const { cached } = kit.mounter;
    kit.mounter.cached = async () => kit.clock.sleep(500).then(() => cached.call(kit.mounter));
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

  it('is false seconds after a write and true once it is uploaded, however long the poll interval', async (t) => {
    const kit = createKit();
    const { status } = await start(
      t,
      kit,
      loaded([spec('photos'), spec('video')], {
        supervisor: { poll_interval: '1h', stop_timeout: '10m', state_dir: '/nowhere' },
      }),
    );
    await kit.clock.advance(20_000);
    const seen = [status.snapshot.record.allSynced];
    for (const files of [1, 0]) {
      kit.mounter.of('video').dirty(files);
      await kit.clock.advance(3_500);
      seen.push(status.snapshot.record.allSynced);
    }
    assert.deepEqual(seen, [true, false, true]);
  });

  it('is not built on what a share was asked over 4.5 s ago, though the supervisor goes on', async (t) => {
    const kit = createKit();
    const { status } = await start(t, kit, two);
    await kit.clock.advance(12_000);
    const video = kit.mounter.of('video');
    let askedAtMs = kit.clock.monotonic();
    const { stats } = video;
    // As on a slow machine.
    video.stats = async (signal) => {
      const nowMs = kit.clock.monotonic();
      const figures = await stats.call(video, signal);
      await kit.clock.sleep(1_000);
      askedAtMs = nowMs;
      return figures;
    };
    await kit.clock.advance(6_000);
    const seen = new Map<number, boolean>();
    const look = (): void => {
      const ageMs = kit.clock.monotonic() - askedAtMs;
      seen.set(ageMs, status.snapshot.record.allSynced);
      if (status.snapshot.record.allSynced) assert.equal(status.syncedAgeMs, ageMs);
    };
    for (let tenths = 0; tenths < 80; tenths += 1) {
      await kit.clock.advance(100);
      if (tenths === 25) video.isRcSilent = true;
      look();
    }
    assert.equal(status.syncedAgeMs, undefined);
    const ages = [...seen].flatMap(([ageMs, isSynced]) => (isSynced ? [ageMs] : []));
    assert.ok(Math.min(...ages) < 2_000, 'it was true when the figures were new');
    assert.ok(Math.max(...ages) <= 4_500, `still true with figures of ${Math.max(...ages)} ms`);
    video.isRcSilent = false;
    await kit.clock.advance(3_500);
    assert.equal(status.snapshot.record.allSynced, true);
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
