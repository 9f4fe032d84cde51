import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { cacheLimitBytes, cacheRoom } from '../../../plugins/mount/cache-limit.ts';

const GB = 1_073_741_824;
const limit = (maxSize: string, room: { free: number; own?: number; shares?: number }): number =>
  cacheLimitBytes({ max_size: maxSize, min_free_space: '1G' }, { freeBytes: room.free * GB, ownBytes: (room.own ?? 0) * GB, shares: room.shares ?? 1 }) / GB;

describe('the limit of a cache whose rclone cannot keep space free', () => {
  it('takes what is free beyond the minimum, and what it holds already', () => {
    assert.equal(limit('0', { free: 10 }), 9);
    assert.equal(limit('0', { free: 10, own: 5 }), 14);
  });

  it('leaves the other shares their part, so that all together keep the minimum', () => {
    assert.equal(limit('0', { free: 9, own: 3, shares: 4 }), 5);
    assert.equal(limit('0', { free: 9, shares: 0 }), 8);
  });

  it('gives back what is missing to the minimum', () => {
    assert.equal(limit('0', { free: 0.5, own: 4, shares: 4 }), 3.5);
  });

  it('keeps a smaller max_size and lowers a larger one', () => {
    assert.equal(limit('2G', { free: 10 }), 2);
    assert.equal(limit('50G', { free: 10 }), 9);
  });

  it('is never without a limit, not even on a full disk', () => {
    assert.equal(limit('0', { free: 0 }) * GB, 1_048_576);
    assert.equal(cacheLimitBytes({ max_size: '0', min_free_space: '0' }, { freeBytes: 0, ownBytes: 0, shares: 1 }), 1_048_576);
  });

  it('counts the space that cached content takes, not its length', async () => {
    const cacheDir = await mkdtemp(join(tmpdir(), 'mk-limit-'));
    try {
      assert.equal((await cacheRoom(cacheDir, 2)).ownBytes, 0);
      await mkdir(join(cacheDir, 'vfs', 'nas', 'deep'), { recursive: true });
      await writeFile(join(cacheDir, 'vfs', 'nas', 'deep', 'a'), Buffer.alloc(100_000, 1));
      await writeFile(join(cacheDir, 'elsewhere'), Buffer.alloc(500_000, 1));
      const { freeBytes, ownBytes, shares } = await cacheRoom(cacheDir, 2);
      assert.ok(ownBytes >= 100_000 && ownBytes < 200_000, `${ownBytes}`);
      assert.ok(freeBytes > 0);
      assert.equal(shares, 2);
    } finally {
      await rm(cacheDir, { recursive: true, force: true });
    }
  });
});
