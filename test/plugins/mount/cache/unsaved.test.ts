import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { unsavedIn } from '../../../../plugins/mount/cache/unsaved.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';

describe('files that are not on the remote yet', () => {
  it('are told by the records of the cache and the queue of the mount', async () => {
    const scratch = await createScratch('unsaved');
    try {
      const meta = scratch.path('meta');
      await mkdir(`${meta}/sub/deeper`, { recursive: true });
      const write = (path: string, isDirty: boolean) =>
        writeFile(
          `${meta}/${path}`,
          JSON.stringify({
            Size: 5,
            Rs: null,
            Fingerprint: '',
            Dirty: isDirty,
            ModTime: '2026-01-02T03:04:05Z',
          }),
        );
      await write('sub/waits', true);
      await write('sub/goes up', true);
      await write('sub/was refused', true);
      await write('sub/clean', false);
      await write('sub/deeper/other', true);
      await writeFile(`${meta}/sub/torn`, '{"Si');
      const queue = [
        { name: 'sub/goes up', uploading: true, tries: 3 },
        { name: 'sub/was refused', uploading: false, tries: 1 },
        { name: 'sub/waits', tries: 0 },
        { name: 'waits', uploading: true },
      ];
      const found = await unsavedIn(meta, 'sub', queue);
      assert.deepEqual(found.map(({ name, state }) => `${name}: ${state}`).sort(), [
        'goes up: uploading',
        'waits: waiting',
        'was refused: failed',
      ]);
      assert.deepEqual([found[0]?.bytes, found[0]?.modifiedMs], [5, Date.UTC(2026, 0, 2, 3, 4, 5)]);
      assert.deepEqual(await unsavedIn(meta, 'nowhere', queue), []);
    } finally {
      await scratch.close();
    }
  });
});
