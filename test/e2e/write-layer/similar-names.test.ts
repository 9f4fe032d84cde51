// @load quiet
/** Renames that change the case alone, on a NAS that tells no case apart, by rclone. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startRemote } from '../../support/write-layer/uploader-remote.ts';
import type { TestRemote } from '../../support/write-layer/uploader-remote.ts';
import { settle, TestShare, treeOf } from '../../support/write-layer/uploader-share.ts';

for (const type of ['sftp', 'webdav'] as const)
  describe(`a NAS that tells no case apart, over ${type}`, () => {
    let share: TestShare;
    let remote: TestRemote;

    before(async () => {
      share = new TestShare();
      mkdirSync(join(share.nas, 'Folder'));
      for (const path of ['Moved', 'Saved', 'Folder/in']) {
        writeFileSync(join(share.nas, path), `first ${path}`);
        utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
      }
      remote = await startRemote(type, share.nas, ['--vfs-case-insensitive']);
      share.files = remote.files;
      if (type === 'webdav') share.precisionMs = Infinity;
      share.up();
    });
    after(async () => {
      await remote.close();
      share.close();
    });

    it('keeps each file under its new name, and none is lost', async () => {
      assert.ok(
        await remote.files.stat('mOVED', { signal: AbortSignal.timeout(10_000) }),
        'it tells no case apart',
      );
      renameSync(share.at('Moved'), share.at('moved'));
      renameSync(share.at('Folder'), share.at('folder'));
      writeFileSync(share.at('Saved'), 'second');
      renameSync(share.at('Saved'), share.at('saved'));
      const uploader = share.uploader();
      await settle(uploader);
      await uploader.stop();
      assert.deepEqual(
        [...treeOf(share.nas)].filter(([, content]) => content !== '/'),
        [
          ['folder/in', 'first Folder/in'],
          ['moved', 'first Moved'],
          ['saved', 'second'],
        ],
      );
      assert.deepEqual(share.conflicts, []);
    });
  });
