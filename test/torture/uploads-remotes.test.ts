/**
 * The uploader over real servers: one that keeps whole seconds (SFTP), one that keeps no times and has no
 * hashes (WebDAV), one that tells no case apart (SMB), one with hashes. What users did comes there, what others
 * did stays, and no word of it is wrong.
 */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { crashAfter, lookOnly } from '../support/write-layer/uploader-crash.ts';
import { startRemote } from '../support/write-layer/uploader-remote.ts';
import type { RemoteType, TestRemote } from '../support/write-layer/uploader-remote.ts';
import { refusal, settle, TestShare, treeOf } from '../support/write-layer/uploader-share.ts';
import type { Fault } from '../support/write-layer/uploader-share.ts';

const FILES = ['a', 'b', 'd/x', 'd/s/y', 'e/z'];

for (const type of ['sftp', 'webdav', 'smb', 'local'] as const satisfies readonly RemoteType[]) {
  describe(`the uploader over ${type}`, () => {
    let share: TestShare;
    let remote: TestRemote;
    let sent = 0;

    before(async () => {
      share = new TestShare();
      remote = await startRemote(type, share.nas);
    });
    after(async () => {
      share.close();
      await remote.close();
    });
    beforeEach(() => {
      sent = 0;
      share.files = remote.files;
      share.conflicts.length = 0;
      for (const path of FILES) {
        mkdirSync(dirname(join(share.nas, path)), { recursive: true });
        writeFileSync(join(share.nas, path), `first ${path}`);
        utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
      }
      share.up();
    });
    afterEach(() => {
      share.down();
      for (const folder of [share.nas, share.upper, share.records])
        for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
    });

    const count: Fault = (call, when) => {
      if (call === 'upload' && when === 'before') sent += 1;
    };
    const run = async (): Promise<void> => {
      const uploader = share.uploader(count);
      try {
        await settle(uploader);
      } finally {
        await uploader.stop();
      }
    };
    const isRight = (): void => {
      assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
      assert.deepEqual(share.conflicts, [], 'nobody else has changed anything');
    };
    const othersWrite = (path: string, content: string): void => {
      rmSync(join(share.nas, path), { force: true });
      writeFileSync(join(share.nas, path), content);
      utimesSync(join(share.nas, path), 1_710_000_000, 1_710_000_000);
    };

    it('brings up what was made, changed, renamed and removed', async () => {
      writeFileSync(share.at('new'), 'new');
      mkdirSync(share.at('n/m'), { recursive: true });
      // On an SMB server, rclone marks a name with its look-alike of a colon.
      writeFileSync(share.at(type === 'smb' ? 'n/m/file ü%41' : 'n/m/file ü：%41'), '');
      appendFileSync(share.at('a'), ', more');
      renameSync(share.at('b'), share.at('d/b'));
      renameSync(share.at('d'), share.at('D'));
      rmSync(share.at('e'), { recursive: true });
      await run();
      isRight();
    });

    it('brings up a content of the same size and time', async () => {
      writeFileSync(share.at('a'), 'FIRST a');
      utimesSync(share.at('a'), 1_700_000_000, 1_700_000_000);
      await run();
      assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), 'FIRST a');
      isRight();
    });

    it('brings up one change after the other of one file', async () => {
      for (const text of ['one', 'two', 'three, longer']) {
        writeFileSync(share.at('a'), text);
        await run();
        assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), text);
      }
      rmSync(share.at('a'));
      await run();
      isRight();
    });

    it('comes to the same end when it is killed at any call', async () => {
      writeFileSync(share.at('new'), 'new');
      appendFileSync(share.at('a'), ', more');
      renameSync(share.at('b'), share.at('d/b'));
      rmSync(share.at('e'), { recursive: true });
      for (const calls of [6, 9, 14, 20]) await crashAfter(share, calls);
      await run();
      isRight();
    });

    it('keeps both versions when others have changed it, and tells of it', async () => {
      writeFileSync(share.at('a'), 'ours');
      await lookOnly(share);
      othersWrite('a', 'of others');
      await run();
      const [conflict] = share.conflicts;
      assert.equal(share.conflicts.length, 1);
      assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), 'of others');
      assert.equal(readFileSync(join(share.nas, conflict?.copy ?? ''), 'utf8'), 'ours');
    });

    it('deletes nothing that others have changed', async () => {
      rmSync(share.at('a'));
      await lookOnly(share);
      othersWrite('a', 'of others');
      await run();
      assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), 'of others');
      assert.equal(share.conflicts.length, 1);
    });

    it('loses nothing when an answer is lost', async () => {
      writeFileSync(share.at('new'), 'of users');
      const uploader = share.uploader((call, when) => {
        if (call === 'upload' && when === 'after') throw refusal('The answer was lost.', 'silent');
      });
      uploader.flush();
      await uploader.look(new AbortController().signal);
      await uploader.settled();
      await uploader.stop();
      await run();
      // Where nothing tells contents apart, it is sent again.
      if (type === 'local') assert.equal(sent, 0);
      isRight();
    });
  });
}
