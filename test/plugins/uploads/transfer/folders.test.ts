/** A folder that the remote only says that it has made. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { startRemote } from '../../../support/write-layer/uploader-remote.ts';
import type { TestRemote } from '../../../support/write-layer/uploader-remote.ts';
import { settle, TestShare } from '../../../support/write-layer/uploader-share.ts';

describe('a new folder on a NAS over WebDAV', () => {
  let share: TestShare;
  let remote: TestRemote;
  const setReadOnly = (is: boolean): void => void execFileSync('chattr', [is ? '+i' : '-i', share.nas]);

  beforeEach(async () => {
    share = new TestShare();
    remote = await startRemote('webdav', share.nas);
    share.files = remote.files;
    share.up();
  });
  afterEach(async () => {
    await remote.close();
    share.close();
  });

  it('is there when it counts as made, also where the NAS was read-only for a while', async () => {
    mkdirSync(share.at('d'));
    setReadOnly(true);
    const uploader = share.uploader();
    try {
      await uploader.look(new AbortController().signal);
      uploader.flush();
      await uploader.settled();
      assert.equal(existsSync(join(share.nas, 'd')), false);
      assert.ok(
        uploader.queue().some(({ path }) => path === 'd'),
        'it waits',
      );
    } finally {
      setReadOnly(false);
    }
    await settle(uploader);
    await uploader.stop();
    assert.equal(existsSync(join(share.nas, 'd')), true);
  });
});
