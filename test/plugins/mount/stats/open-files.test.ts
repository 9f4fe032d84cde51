import assert from 'node:assert/strict';
import { mkdir, open, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { openFiles } from '../../../../plugins/mount/stats/open-files.ts';
import { writtenBytes } from '../../../../plugins/mount/stats/written-bytes.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const NO_PROCESS = 2 ** 22 + 1;

describe('what a process does with files, as the kernel shows it', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('open-files');
    await mkdir(scratch.path('real/data/a'), { recursive: true });
    await mkdir(scratch.path('real/meta/a'), { recursive: true });
    await symlink('real', scratch.path('link'));
  });
  after(() => scratch.close());

  it('counts files of the cache open for writing, also behind a link, and the changed ones among them', async () => {
    const trees = {
      data: scratch.path('link/data'),
      meta: scratch.path('link/meta'),
    };
    assert.deepEqual(await openFiles(process.pid, trees), {
      open: 0,
      dirty: 0,
    });
    await writeFile(scratch.path('real/meta/a/changed'), JSON.stringify({ Dirty: true, Rs: [] }));
    await writeFile(scratch.path('real/meta/a/clean'), JSON.stringify({ Dirty: false, Rs: [] }));
    await writeFile(scratch.path('real/data/a/read'), '');
    const handles = [
      await open(scratch.path('real/data/a/changed'), 'w'),
      await open(scratch.path('real/data/a/clean'), 'w'),
      await open(scratch.path('real/data/a/read'), 'r'),
      await open(scratch.path('real/other'), 'w'),
    ];
    try {
      assert.deepEqual(await openFiles(process.pid, trees), {
        open: 2,
        dirty: 1,
      });
    } finally {
      for (const handle of handles) await handle.close();
    }
    assert.deepEqual(await openFiles(process.pid, trees), {
      open: 0,
      dirty: 0,
    });
    await assert.rejects(openFiles(NO_PROCESS, trees), /ENOENT/);
  });

  it('tells the bytes that a process has written, and nothing of one that is gone', async () => {
    const before = writtenBytes(process.pid);
    await writeFile(scratch.path('written'), Buffer.alloc(256 * 1024));
    const after = writtenBytes(process.pid);
    assert.ok(before !== undefined && after !== undefined && after >= before, `${before}, ${after}`);
    assert.equal(writtenBytes(NO_PROCESS), undefined);
  });
});
