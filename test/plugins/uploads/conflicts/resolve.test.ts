/** A person chooses a version, and something comes in between. */
import assert from 'node:assert/strict';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteFiles } from 'mountkeeper';
import type { Keep } from '../../../../plugins/uploads/conflicts/resolve.ts';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { changeOnBothSides } from '../../../support/write-layer/uploader-crash.ts';
import { settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

describe('a conflict that a person resolves', () => {
  let share: TestShare;
  let uploader: ShareUploader;
  let fault: Fault;
  let copy: string;

  const begin = (): void => void (uploader = share.uploader((call, when) => fault(call, when)));
  const restart = async (): Promise<void> => {
    await uploader.stop();
    fault = () => undefined;
    begin();
    await settle(uploader);
  };
  /** `a.txt` is changed here and by others. */
  const disagree = async (): Promise<void> => {
    await changeOnBothSides(share, 'a.txt');
    begin();
    await settle(uploader);
    copy = uploader.conflicts()[0]?.copy ?? '';
    assert.deepEqual(onNas(), { 'a.txt': 'of others', [copy]: 'ours' });
  };
  const onNas = (): object => Object.fromEntries(treeOf(share.nas));
  const resolve = (keep: Keep): Promise<void> => uploader.resolve({ path: 'a.txt', copy }, keep);
  /** From the move with this number on, every call fails; before it is done, or after. */
  const breakAt = (number: number, moment: 'before' | 'after', isForGood: boolean): void => {
    let moves = 0;
    fault = (call, when) => {
      if (call === 'moveFile' && when === moment) moves += 1;
      const isNow = isForGood ? moves >= number : moves === number && call === 'moveFile' && when === moment;
      if (isNow) throw new Error('the NAS is away');
    };
  };

  beforeEach(() => {
    share = new TestShare();
    share.leavesTaken = false;
    fault = () => undefined;
  });
  afterEach(async () => {
    await uploader.stop();
    share.close();
  });

  it('leaves both versions by their names where the second step fails', async () => {
    await disagree();
    breakAt(2, 'before', false);
    await assert.rejects(resolve('mine'), /is away/);
    assert.deepEqual(onNas(), { 'a.txt': 'of others', [copy]: 'ours' });
    await resolve('mine');
    assert.deepEqual([onNas(), uploader.conflicts()], [{ 'a.txt': 'ours' }, []]);
  });

  for (const [number, moment] of [
    [1, 'before'],
    [1, 'after'],
    [2, 'after'],
  ] as const)
    for (const [keep, left] of [
      ['mine', ['ours']],
      ['theirs', ['of others']],
      ['both', ['of others', 'ours']],
    ] as const)
      it(`goes on after a break ${moment} move ${number}, when ${keep} is to stay`, async () => {
        await disagree();
        breakAt(number, moment, true);
        await assert.rejects(resolve('mine'), /is away/);
        await restart();
        assert.equal(uploader.conflicts().length, 1);
        await resolve(keep);
        assert.equal(readFileSync(join(share.nas, 'a.txt'), 'utf8'), left[0]);
        assert.deepEqual([...treeOf(share.nas).values()].sort(), left);
        assert.deepEqual(uploader.conflicts(), []);
      });

  it('is resolved where only the answer to the last step was lost', async () => {
    await disagree();
    fault = (call, when) => {
      if (call === 'deleteFile' && when === 'after') throw new Error('the NAS is away');
    };
    await assert.rejects(resolve('mine'), /is away/);
    await restart();
    await resolve('mine');
    assert.deepEqual([onNas(), uploader.conflicts()], [{ 'a.txt': 'ours' }, []]);
  });

  it('is left alone, with three versions, where others saved while it was broken off', async () => {
    await disagree();
    breakAt(1, 'after', true);
    await assert.rejects(resolve('mine'), /is away/);
    await restart();
    share.othersWrite('a.txt', 'newer', 1_720_000_000);
    for (const keep of ['mine', 'theirs'] as const) await assert.rejects(resolve(keep), /while it was being/);
    assert.deepEqual([...treeOf(share.nas).values()].sort(), ['newer', 'of others', 'ours']);
    await resolve('both');
    assert.deepEqual(uploader.conflicts(), []);
  });

  it('holds back what is written there meanwhile, and a stop waits for its end', async () => {
    await disagree();
    let goOn: () => void = () => undefined;
    const hold = new Promise<void>((done) => (goOn = done));
    let isHeld = false;
    fault = async (call, when) => {
      if (call !== 'moveFile' || when !== 'before' || isHeld) return;
      isHeld = true;
      await hold;
    };
    const ends: string[] = [];
    const resolved = resolve('mine').then(() => ends.push('resolved'));
    await assert.rejects(resolve('mine'), /waits to go up/);
    const stopped = uploader.stop().then(() => ends.push('stopped'));
    setTimeout(goOn, 100);
    await Promise.allSettled([resolved, stopped]);
    assert.deepEqual(ends, ['resolved', 'stopped']);
  });

  describe('on a NAS that keeps no times of files', () => {
    beforeEach(() => {
      share.precisionMs = Infinity;
      const plain = share.remote();
      // It shows when it was given a file.
      const upload: RemoteFiles['upload'] = async (local, path, options) => {
        await plain.upload(local, path, options);
        utimesSync(join(share.nas, path), 1_790_000_000, 1_790_000_000);
      };
      share.files = Object.assign(Object.create(plain) as RemoteFiles, { upload, uploadNew: undefined });
    });

    for (const [keep, left] of [
      ['mine', 'ours'],
      ['theirs', 'of others'],
    ] as const)
      it(`keeps ${keep}, as it was when it had been brought there`, async () => {
        await disagree();
        await restart();
        await resolve(keep);
        assert.deepEqual([onNas(), uploader.conflicts()], [{ 'a.txt': left }, []]);
      });

    it('keeps both where the copy was saved again, with the same size', async () => {
      await disagree();
      share.othersWrite(copy, 'OURS', 1_795_000_000);
      for (const keep of ['mine', 'theirs'] as const)
        await assert.rejects(resolve(keep), /is another one on the remote/);
      assert.deepEqual(onNas(), { 'a.txt': 'of others', [copy]: 'OURS' });
    });

    it('says that it cannot be told where nobody noted what arrived', async () => {
      await disagree();
      await uploader.stop();
      const file = join(share.records, 'places.jsonl');
      const lines = readFileSync(file, 'utf8').replaceAll(/,"arrived":\{[^}]*\}/g, '');
      writeFileSync(file, lines);
      begin();
      await settle(uploader);
      await assert.rejects(resolve('mine'), /cannot be told on this NAS/);
      assert.deepEqual(onNas(), { 'a.txt': 'of others', [copy]: 'ours' });
    });
  });
});
