/**
 * A power cut may take what users renamed, and leave what was put on record because of it: then the records would say
 * that users had deleted it.
 */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WrittenOut } from '../../../../plugins/uploads/transfer/guard/written-out.ts';
import { leftWaiting, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

describe('what users have renamed, and the disk does not have yet', () => {
  let share: TestShare;
  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd'));
    for (const path of ['a', 'old', 'd/x']) {
      writeFileSync(join(share.nas, path), `first ${path}`);
      utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
    }
    share.up();
  });
  afterEach(() => share.close());

  const change = {
    'is a file': () => renameSync(share.at('a'), share.at('b')),
    'is a folder': () => renameSync(share.at('d'), share.at('e')),
    'has been replaced': () => {
      writeFileSync(share.at('new'), 'newer');
      renameSync(share.at('new'), share.at('old'));
    },
  };
  for (const [label, rename] of Object.entries(change)) {
    it(`stays on the NAS after a power cut, where it ${label}`, async () => {
      const before = treeOf(share.nas);
      rename();
      share.onDisk = () => Promise.reject(new Error('the disk is slow'));
      const waiting = Object.values(await leftWaiting(share)).join();
      assert.match(waiting, /the disk is slow/);
      assert.deepEqual(treeOf(share.nas), before, 'while the disk does not have it');
      // What was not on the disk is gone with the power; the records are there.
      share.down();
      for (const name of ['a', 'b', 'd', 'e', 'new', 'old'])
        rmSync(join(share.upper, name), { recursive: true, force: true });
      share.up();
      share.onDisk = undefined;
      const uploader = share.uploader();
      await settle(uploader);
      await uploader.stop();
      assert.deepEqual(treeOf(share.nas), before);
      assert.deepEqual(share.conflicts, []);
    });
  }

  it('is written out after the look that has seen it, and before the NAS is told', async () => {
    const calls: string[] = [];
    share.onDisk = async () => undefined;
    const uploader = share.uploader((call, when) => {
      const isTold = call === 'onDisk' || call.startsWith('move') || call === 'inUse';
      if (when === 'before' && isTold) calls.push(call);
    });
    renameSync(share.at('d'), share.at('e'));
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual(calls.filter((call) => call !== 'inUse').slice(0, 2), ['onDisk', 'moveFolder']);
    assert.deepEqual([...treeOf(share.nas).keys()], ['a', 'e', 'e/x', 'old']);
  });

  it('is not moved any more where users have removed it while the disk was slow', async () => {
    renameSync(share.at('d'), share.at('e'));
    let isRemoved = false;
    const calls: string[] = [];
    share.onDisk = async () => undefined;
    const uploader = share.uploader((call, when) => {
      if (call.startsWith('move')) calls.push(call);
      if (call !== 'onDisk' || when === 'before' || isRemoved) return;
      isRemoved = true;
      rmSync(share.at('e'), { recursive: true });
    });
    await settle(uploader);
    await uploader.stop();
    assert.ok(isRemoved);
    assert.deepEqual(calls, []);
    assert.deepEqual([...treeOf(share.nas).keys()], ['a', 'old']);
    assert.deepEqual(share.conflicts, []);
  });

  it('is asked of the disk once for each look, again where that failed, and keeps nobody from ending', async () => {
    const { signal } = new AbortController();
    let asked = 0;
    let answer = (): Promise<void> => Promise.resolve();
    const written = new WrittenOut({
      onDisk: () => {
        asked += 1;
        return answer();
      },
    });
    await Promise.all([written.now(signal), written.now(signal)]);
    assert.equal(asked, 1);
    written.scanned();
    answer = () => Promise.reject(new Error('no'));
    await assert.rejects(written.now(signal), /no/);
    answer = () => new Promise(() => undefined);
    const end = new AbortController();
    const waiting = written.now(end.signal);
    end.abort(new Error('over'));
    await assert.rejects(waiting, /over/);
    assert.equal(asked, 3);
  });
});
