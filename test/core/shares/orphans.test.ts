import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OrphanScan } from '../../../core/shares/orphans.js';
import { createKit } from '../../support/shares/fake-shares.ts';

function create(mountedShares = new Set<string>()) {
  const kit = createKit();
  let scans = 0;
  const scan = new OrphanScan({
    clock: kit.clock,
    log: kit.lines.log,
    mounter: () => kit.present.mounter,
    isMounted: (share) => mountedShares.has(share),
    onScanned: () => {
      scans += 1;
    },
  });
  return { kit, scan, mountedShares, scans: () => scans };
}

describe('scan for orphaned dirty files', () => {
  it('knows nothing before the disk has been read', async () => {
    const { scan, kit } = create();
    kit.mounter.onDisk.set('photos', 2);
    assert.deepEqual([scan.total, scan.count('photos')], [undefined, undefined]);
    await scan.scanWhenDue();
    assert.deepEqual([scan.total, scan.count('photos'), scan.count('video')], [2, 2, 0]);
  });

  it('does not count a share from the moment it is mounted', async () => {
    const { scan, kit, mountedShares } = create();
    kit.mounter.onDisk.set('photos', 2);
    await scan.scanWhenDue();
    mountedShares.add('photos');
    assert.deepEqual([scan.total, scan.list()], [0, []]);
  });

  it('knows nothing again once a share was unmounted, until it has looked', async () => {
    const { scan, kit } = create();
    await scan.scanWhenDue();
    assert.equal(scan.total, 0);
    kit.mounter.onDisk.set('photos', 3);
    scan.invalidate();
    assert.equal(scan.total, undefined);
    await scan.scanWhenDue();
    assert.equal(scan.total, 3);
  });

  it('does not trust a look that an unmount overtook', async () => {
    const { scan, kit } = create();
    let go: () => void = () => undefined;
    kit.mounter.cached = () =>
      new Promise((resolve) => {
        go = () => resolve([]);
      });
    const looking = scan.scanWhenDue();
    scan.invalidate();
    go();
    await looking;
    assert.equal(scan.total, undefined);
  });

  it('keeps the figures of the others when one cache cannot be read', async () => {
    const { scan, kit } = create();
    kit.mounter.onDisk.set('photos', 2).set('broken', undefined);
    await scan.scanWhenDue();
    assert.deepEqual([scan.total, scan.count('photos'), scan.count('broken')], [undefined, 2, undefined]);
    assert.deepEqual(
      scan.list().map(([share]) => share),
      ['photos'],
    );
  });

  it('tries again after 10 s when the disk could not be read, else looks only now and then', async () => {
    const { scan, kit, scans } = create();
    kit.present.mounter = undefined;
    await scan.scanWhenDue();
    await scan.scanWhenDue();
    assert.deepEqual([scans(), scan.total], [1, undefined]);
    kit.present.mounter = kit.mounter;
    await kit.clock.advance(10_000);
    await scan.scanWhenDue();
    assert.deepEqual([scans(), scan.total], [2, 0]);
    await kit.clock.advance(60_000);
    await scan.scanWhenDue();
    assert.equal(scans(), 2);
  });

  it('looks for certain when it is told to', async () => {
    const { scan, kit } = create();
    await scan.scanWhenDue();
    kit.mounter.onDisk.set('photos', 1);
    assert.equal(await scan.scanNow(), true);
    assert.equal(scan.total, 1);
    kit.mounter.onDisk.set('broken', undefined);
    assert.equal(await scan.scanNow(), false);
  });
});
