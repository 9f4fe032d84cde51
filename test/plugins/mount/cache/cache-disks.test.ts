/** A cache whose disk is not mounted is not one that holds nothing. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { MountEntry, MountTable } from 'mountkeeper';
import { CacheDisks } from '../../../../plugins/mount/cache/cache-disks.ts';
import { createCacheRoots } from '../../../../plugins/mount/cache/cache-folders.ts';

it('a cache folder is known by the disk that it lay on, until somebody says that this is gone for good', async () => {
  const state = await mkdtemp(join(tmpdir(), 'mk-disks-'));
  try {
    let mounted = ['/', '/mnt/ssd'];
    const list = async (): Promise<readonly MountEntry[]> =>
      mounted.map((mountPoint) => ({ mountPoint }) as MountEntry);
    const disks = (): CacheDisks => new CacheDisks(state, { list } as unknown as MountTable);
    const first = disks();
    for (const root of ['/mnt/ssd/mk', '/var/cache/mk']) {
      await first.note(root);
      await first.note(root);
    }
    mounted = ['/'];
    const next = disks();
    await next.note('/var/cache/mk');
    assert.deepEqual(next.troubles, []);
    await assert.rejects(
      next.require('/mnt/ssd/mk'),
      /is not mounted at \/mnt\/ssd: what waits there .* not known/,
    );
    await assert.rejects(next.note('/mnt/ssd/mk'), /is not mounted/);
    assert.equal(next.troubles.length, 1);
    // Nothing that may wait there is forgotten.
    const roots = createCacheRoots(state, (root) => next.require(root));
    await roots.note('/mnt/ssd/mk');
    const later = createCacheRoots(state, (root) => next.require(root));
    assert.deepEqual(await later.former('/var/cache/mk'), ['/mnt/ssd/mk']);
    mounted = ['/', '/mnt/ssd'];
    await next.note('/mnt/ssd/mk');
    assert.deepEqual(next.troubles, []);
    // Another disk of its own choosing, by the same name.
    mounted = ['/', '/mnt', '/mnt/ssd/mk', '/mnt/ssd'];
    await next.note('/mnt/ssd/mk');
    assert.deepEqual(JSON.parse(await readFile(join(state, 'mount', 'cache-disks.json'), 'utf8')), {
      '/mnt/ssd/mk': '/mnt/ssd/mk',
    });
  } finally {
    await rm(state, { recursive: true });
  }
});
