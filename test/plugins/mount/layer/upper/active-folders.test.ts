import assert from 'node:assert/strict';
import { mkdir, symlink } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { activeFolders } from '../../../../../plugins/mount/layer/upper/active-folders.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';

describe('the folders in which people are at work', () => {
  it('are those of the upper folder; one that cannot be read is not one without changes', async () => {
    const scratch = await createScratch('active');
    try {
      const [mountPoint, upper] = [scratch.path('mounted'), scratch.path('upper')];
      assert.deepEqual(await activeFolders({ mountPoint, upper }), [''], 'none is there yet');
      await mkdir(`${upper}/a/b`, { recursive: true });
      assert.deepEqual(await activeFolders({ mountPoint, upper }), ['', 'a', 'a/b']);
      const broken = scratch.path('broken');
      await symlink('broken', broken);
      await assert.rejects(activeFolders({ mountPoint, upper: broken }), /ELOOP/);
    } finally {
      await scratch.close();
    }
  });
});
