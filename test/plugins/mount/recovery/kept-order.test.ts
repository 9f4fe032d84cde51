import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { describe, it } from 'node:test';
import { keepsOrder, settleOrder } from '../../../../plugins/mount/recovery/kept-order.ts';

const BTRFS = 0x9123683e;
const EXT4 = 0xef53;

describe('what is to be on the disk before records that are younger', () => {
  const settled = async (type: number, isWritten = true): Promise<readonly string[]> => {
    const asked: string[] = [];
    const settle = async (folder: string): Promise<boolean> => {
      asked.push(folder);
      return isWritten;
    };
    await settleOrder('cache/photos', { settle }, async () => type);
    return asked;
  };

  it('is written out on Btrfs, and on a file system that nobody knows', async () => {
    assert.deepEqual([await settled(BTRFS), await settled(1)], [['cache/photos'], ['cache/photos']]);
    await assert.rejects(settled(BTRFS, false), /the disk that holds cache\/photos cannot be written out/);
  });

  it('is there by itself where one journal keeps the order', async () => {
    assert.deepEqual(await settled(EXT4, false), []);
    assert.equal(typeof (await keepsOrder(tmpdir())), 'boolean');
  });
});
