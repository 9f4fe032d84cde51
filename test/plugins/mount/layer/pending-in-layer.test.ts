/** What waits in a write layer that no mount has. */
import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { pendingInLayer, pendingInLayers } from '../../../../plugins/mount/layer/layering.ts';
import { layerPaths } from '../../../../plugins/mount/layer/paths.ts';
import { Records } from '../../../../plugins/uploads/compare/records.ts';
import { createUploader } from '../../../../plugins/uploads/uploader.ts';

describe('what waits in a write layer without a mount', () => {
  let cache: string;
  beforeEach(async () => {
    cache = await mkdtemp(join(tmpdir(), 'mk-pending-'));
  });
  afterEach(() => rm(cache, { recursive: true }));

  const uploader = createUploader({ clock: createClock() } as Parameters<typeof createUploader>[0]);

  it('is a deletion, too, of which only the records know, and which left the upper folder empty', async () => {
    const aside = join(cache, 'aside', 'first');
    for (const folder of [cache, aside]) {
      const { upper, records } = layerPaths(folder);
      await mkdir(upper, { recursive: true });
      const { ino, birthtimeNs } = await lstat(upper, { bigint: true });
      const known = await Records.open(records, `${ino} ${birthtimeNs}`);
      known.set('sent.txt', { remote: { kind: 'file', version: { bytes: 5, modifiedMs: 0 } } });
      await known.close();
    }
    const found = await pendingInLayers([cache], { uploader: () => uploader });
    assert.deepEqual([found.count, found.paths], [2, ['sent.txt', 'sent.txt']]);
  });

  it('is nothing where there was no write layer, and nobody is asked', async () => {
    const asked = (): never => assert.fail('asked');
    assert.equal((await pendingInLayer(cache, { uploader: asked })).count, 0);
  });
});
