import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { keepReserve, withReserve } from '../../../../core/platform/files/reserve.ts';
import { releaseForMount } from '../../../../plugins/mount/cache/reserve.ts';

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
      assert.equal(await keepReserve(folder), true);
      const { blocks, mtimeMs } = await stat(join(folder, 'reserve'));
      assert.ok(blocks * 512 >= 2_000_000);
      await releaseForMount(folder);
      assert.equal(await keepReserve(folder), true);
      assert.equal((await stat(join(folder, 'reserve'))).mtimeMs, mtimeMs);
    }));

  it('gives its space to what must be noted on a full disk, once', () =>
    inFolder(async (folder) => {
      await keepReserve(folder);
      let tries = 0;
      const work = async (): Promise<boolean> => {
        tries += 1;
        if (existsSync(join(folder, 'reserve'))) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
        return true;
      };
      assert.deepEqual([await withReserve(folder, work), tries], [true, 2]);
      await assert.rejects(
        withReserve(folder, () => Promise.reject(new Error('not that'))),
        /not that/,
      );
    }));

  it('is not looked for in a cache that is new', async () => {
    await releaseForMount('/nowhere/at/all');
  });

  it('is given up without a word where it cannot be written', async () => {
    assert.equal(await keepReserve('/nowhere/at/all'), false);
  });
});
