/**
 * What people ask of an uploader: which version stays, whether the NAS has what was written, what is to wait.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { changeOnBothSides } from '../support/write-layer/uploader-crash.ts';
import { settle, TestShare, treeOf } from '../support/write-layer/uploader-share.ts';
import type { ShareUploader } from '../../plugins/uploads/transfer/share-uploads.ts';

const ASKED = { signal: new AbortController().signal, onProgress: () => undefined };

describe('people', () => {
  let share: TestShare;
  let uploader: ShareUploader;

  const onNas = (path: string): string => readFileSync(join(share.nas, path), 'utf8');

  beforeEach(async () => {
    share = new TestShare();
    await changeOnBothSides(share, 'a.txt');
    uploader = share.uploader();
    await settle(uploader);
  });
  afterEach(async () => {
    await uploader.stop();
    share.close();
  });

  const conflict = (): { path: string; copy: string } => {
    const [only, ...more] = uploader.conflicts();
    assert.ok(only !== undefined && more.length === 0);
    return { path: only.path, copy: only.copy };
  };

  it('keep their own version: it has the place, the other one is gone', async () => {
    const { path, copy } = conflict();
    await uploader.resolve({ path, copy }, 'mine');
    assert.deepEqual([...treeOf(share.nas)], [['a.txt', 'ours']]);
    assert.deepEqual(uploader.conflicts(), []);
    await settle(uploader);
    await uploader.stop();
    await share.renew();
    assert.deepEqual(treeOf(share.mount), treeOf(share.nas));
  });

  it('keep the version of others: the copy is gone', async () => {
    const { path, copy } = conflict();
    await uploader.resolve({ path, copy }, 'theirs');
    assert.deepEqual([...treeOf(share.nas)], [['a.txt', 'of others']]);
    assert.deepEqual(uploader.conflicts(), []);
  });

  it('keep both: nothing is touched, and it is off the list, also after a start', async () => {
    const before = treeOf(share.nas);
    await uploader.resolve(conflict(), 'both');
    assert.deepEqual(treeOf(share.nas), before);
    await uploader.stop();
    uploader = share.uploader();
    await settle(uploader);
    assert.deepEqual(uploader.conflicts(), []);
  });

  for (const keep of ['mine', 'theirs'] as const) {
    it(`cannot keep ${keep} when others have written either since: both stay`, async () => {
      const { path, copy } = conflict();
      for (const one of [path, copy]) {
        const before = onNas(one);
        share.othersWrite(one, 'later', 1_720_000_000);
        const all = treeOf(share.nas);
        await assert.rejects(uploader.resolve({ path, copy }, keep), /is another one on the remote/);
        assert.deepEqual(treeOf(share.nas), all);
        share.othersWrite(one, before);
      }
    });
  }

  it('cannot keep mine when others save in that very moment: both stay', async () => {
    const { path, copy } = conflict();
    await uploader.stop();
    let isDone = false;
    uploader = share.uploader((call, when) => {
      if (call !== 'moveFile' || when !== 'before' || isDone) return;
      isDone = true;
      share.othersWrite(path, 'in that moment', 1_720_000_000);
    });
    await settle(uploader);
    await assert.rejects(uploader.resolve({ path, copy }, 'mine'), /is another one on the remote/);
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        [path, 'in that moment'],
        [copy, 'ours'],
      ]),
    );
  });

  it('cannot choose while a change here waits', async () => {
    const { path, copy } = conflict();
    writeFileSync(share.at('a.txt'), 'again');
    await uploader.look(new AbortController().signal);
    await assert.rejects(uploader.resolve({ path, copy }, 'mine'), /waits to go up|not settled/);
    assert.ok(existsSync(join(share.nas, copy)));
  });

  it('verify what was brought up: what the NAS has otherwise, or not at all, is told', async () => {
    writeFileSync(share.at('b'), 'bbb');
    writeFileSync(share.at('c'), 'ccc');
    await settle(uploader);
    assert.deepEqual(
      (await uploader.verify('', ASKED)).files.map(({ path, result }) => [path, result]),
      [
        ['b', 'size'],
        ['c', 'size'],
      ],
    );
    share.othersWrite('b', 'other bytes');
    assert.deepEqual(
      (await uploader.verify('', ASKED)).files.map(({ path, result }) => [path, result]),
      [
        ['b', 'differs'],
        ['c', 'size'],
      ],
    );
    assert.deepEqual(
      (await uploader.verify('c', ASKED)).files.map(({ path, result }) => [path, result]),
      [['c', 'size']],
    );
    rmSync(join(share.nas, 'c'));
    assert.deepEqual(
      (await uploader.verify('c', ASKED)).files.map(({ path, result }) => [path, result]),
      [['c', 'differs']],
    );
  });

  it('pause: nothing goes but what is to go now', async () => {
    uploader.pause(Date.now() + 3_600_000);
    writeFileSync(share.at('b'), 'bbb');
    writeFileSync(share.at('c'), 'ccc');
    const look = async (): Promise<void> => {
      await uploader.look(new AbortController().signal);
      await uploader.settled();
    };
    await look();
    await look();
    assert.ok(!existsSync(join(share.nas, 'b')) && !existsSync(join(share.nas, 'c')));
    assert.match(uploader.queue()[0]?.reason ?? '', /paused until/);
    assert.equal(uploader.figures?.dirtyFiles, 2);
    await uploader.sendNow('c');
    await look();
    await look();
    assert.ok(!existsSync(join(share.nas, 'b')));
    assert.equal(onNas('c'), 'ccc');
    uploader.flush();
    await look();
    await look();
    assert.equal(onNas('b'), 'bbb');
  });
});
