/** An upload that takes the place of a file, through a real rclone to servers of each kind. */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pause } from 'mountkeeper';
import { startRemote } from '../../../support/write-layer/uploader-remote.ts';
import type { TestRemote } from '../../../support/write-layer/uploader-remote.ts';
import { clock, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

const signal = new AbortController().signal;
const ROUNDS = 10;

for (const type of ['sftp', 'smb', 'webdav', 'local'] as const)
  describe(`an upload that replaces a file, over ${type}`, () => {
    let share: TestShare;
    let remote: TestRemote;
    beforeEach(async () => {
      share = new TestShare();
      writeFileSync(join(share.nas, 'a'), 'the former one');
      remote = await startRemote(type, share.nas);
      share.files = remote.files;
      share.up();
    });
    afterEach(async () => {
      await remote.close();
      share.close();
    });

    const nas = (name: string): string => readFileSync(join(share.nas, name), 'utf8');
    const run = async (fault: Fault = () => undefined): Promise<void> => {
      const uploader = share.uploader(fault);
      await settle(uploader);
      await uploader.stop();
    };

    it('leaves nothing beside it', async () => {
      writeFileSync(share.at('a'), 'of users');
      await run();
      assert.deepEqual(readdirSync(share.nas), ['a']);
      assert.equal(nas('a'), 'of users');
      assert.deepEqual(share.conflicts, []);
    });

    it('replaces nothing that others save while it is sent', async () => {
      let isSent = false;
      const names: string[][] = [];
      writeFileSync(share.at('a'), 'of users');
      await run((call, when) => {
        if (call === 'upload' && when === 'before') isSent = true;
        // Asked for once more: all of it is there.
        if (call !== 'stat' || when !== 'before' || !isSent || names.length > 0) return;
        names.push(readdirSync(share.nas));
        writeFileSync(join(share.nas, 'a'), 'of others, longer');
      });
      assert.ok(names[0]?.some((name) => name.startsWith('.mountkeeper-upload-')));
      assert.equal(nas('a'), 'of others, longer');
      const [conflict, ...more] = share.conflicts;
      assert.deepEqual(more, []);
      assert.equal(nas(conflict?.copy ?? ''), 'of users');
      assert.deepEqual(readdirSync(share.nas).sort(), ['a', conflict?.copy ?? ''].sort());
    });

    it('takes away what a broken attempt has left, also when the NAS refused that at first', async () => {
      let attempts = 0;
      let refused = 0;
      writeFileSync(share.at('a'), 'of users');
      await run((call, when) => {
        if (when !== 'before') return;
        if (call === 'upload') attempts += 1;
        const beside = readdirSync(share.nas).find((name) => name.startsWith('.mountkeeper-upload-'));
        if (call === 'stat' && attempts === 1 && beside !== undefined) {
          attempts += 1;
          copyFileSync(join(share.nas, beside), join(share.nas, `${beside}0`));
          throw new Error('the line broke');
        }
        if (call !== 'clearLeftovers' || (refused += 1) > 1) return;
        throw new Error('the NAS refuses');
      });
      assert.equal(refused, 2);
      assert.deepEqual(readdirSync(share.nas), ['a']);
      assert.equal(nas('a'), 'of users');
    });

    it('never leaves the NAS with neither of the two', async () => {
      const local = join(share.root, 'sent');
      let gone = 0;
      const over = new AbortController();
      const watching = (async () => {
        while (!over.signal.aborted) {
          if (!existsSync(join(share.nas, 'a'))) gone += 1;
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      for (let round = 1; round <= ROUNDS; round += 1) {
        writeFileSync(local, `version ${round}`);
        await remote.files.upload(local, 'a', {
          signal,
          isReplacing: true,
          beforeNaming: async () => undefined,
        });
        await pause(clock, 5, signal);
      }
      over.abort();
      await watching;
      assert.equal(nas('a'), `version ${ROUNDS}`);
      assert.equal(await remote.deletes(), 0, 'rclone deleted none of them first');
      // The NAS over SFTP and WebDAV is an rclone here, which does not rename in one step itself.
      if (type === 'smb' || type === 'local') assert.equal(gone, 0);
    });

    it('replaces nothing in a folder that others make where one is about to be moved', async () => {
      for (const name of ['d', 'd/s']) mkdirSync(join(share.nas, name));
      for (const name of ['d/x', 'd/y', 'd/s/z']) writeFileSync(join(share.nas, name), 'moved');
      share.down();
      share.up();
      renameSync(share.at('d'), share.at('e'));
      await run((call, when) => {
        if (call !== 'moveFolder' || when !== 'before' || existsSync(join(share.nas, 'e'))) return;
        for (const name of ['e', 'e/s']) mkdirSync(join(share.nas, name));
        for (const name of ['e/x', 'e/s/z']) writeFileSync(join(share.nas, name), 'of others');
      });
      const tree = [...treeOf(share.nas)].filter(([, content]) => content !== '/');
      const contents = tree.map(([, content]) => content).sort();
      assert.equal(contents.join(), 'moved,moved,moved,of others,of others,the former one');
      assert.deepEqual([nas('e/x'), nas('e/y'), nas('e/s/z')], ['of others', 'moved', 'of others']);
      assert.equal(existsSync(join(share.nas, 'd')), false);
      assert.equal(share.conflicts.length, 2);
    });

    it('puts no file that is new, and none that is moved, in the place of another', async () => {
      const local = join(share.root, 'sent');
      writeFileSync(local, 'of users');
      writeFileSync(join(share.nas, 'b'), 'moved');
      const put = async (): Promise<void> => writeFileSync(join(share.nas, 'c'), 'of others');
      await assert.rejects(
        remote.files.upload(local, 'c', { signal, beforeNaming: put }),
        /has been put there/,
      );
      await assert.rejects(remote.files.moveFile('b', 'c', { signal }), /has been put there/);
      assert.deepEqual([nas('b'), nas('c')], ['moved', 'of others']);
      assert.deepEqual(readdirSync(share.nas).sort(), ['a', 'b', 'c']);
    });
  });
