import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { keepReserve, releaseReserve } from '../../../../plugins/mount/cache/reserve.ts';

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'mk-reserve-'));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

describe('the reserve of a cache', () => {
  it('takes room on the disk once, and keeps it while there is enough', () =>
    inFolder(async (folder) => {
      assert.equal(await keepReserve(folder, 1e9), true);
      const { blocks, mtimeMs } = await stat(join(folder, 'reserve'));
      assert.ok(blocks * 512 >= 2_000_000);
      await releaseReserve(folder);
      assert.equal(await keepReserve(folder, 0), true);
      assert.equal((await stat(join(folder, 'reserve'))).mtimeMs, mtimeMs);
    }));

  it('is not taken from a disk that is nearly full', () =>
    inFolder(async (folder) => {
      assert.equal(await keepReserve(folder, 1e6), false);
      assert.deepEqual(await readdir(folder), []);
    }));

  it('is not looked for in a cache that is new', async () => {
    await releaseReserve('/nowhere/at/all');
  });

  it('is given up without a word where it cannot be written', async () => {
    assert.equal(await keepReserve('/nowhere/at/all', 1e9), false);
  });
});
