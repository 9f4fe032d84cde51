import assert from 'node:assert/strict';
import { lstat, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stagePlugin, sweepStage } from '../../../../core/plugins/discovery/stage.ts';
import { diskDeeds } from '../../../support/platform/disk-deeds.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

/** Compared and hashed in three pieces. */
const LARGE_BYTES = 9_000_000;
const LARGE = 'node_modules/heavy/data.bin';

describe('a copy of a plugin beside a former one', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('stage');
    await mkdir(scratch.path('garden/node_modules/heavy'), { recursive: true });
  });
  after(() => scratch.close());

  async function staged(index: string, large: Buffer): Promise<string> {
    await writeFile(scratch.path('garden/index.js'), index);
    await writeFile(scratch.path('garden', LARGE), large);
    return (await stagePlugin(scratch.path('garden'), 'garden', scratch.path('state'))).folder;
  }
  const inode = async (folder: string): Promise<number> => (await lstat(path.join(folder, LARGE))).ino;

  it("shares a package's file that is the same to the last byte, and no other", async () => {
    const first = await staged('1', Buffer.alloc(LARGE_BYTES, 1));
    const same = await staged('2', Buffer.alloc(LARGE_BYTES, 1));
    assert.notEqual(same, first);
    assert.equal(await inode(same), await inode(first));
    const other = Buffer.alloc(LARGE_BYTES, 1);
    other[LARGE_BYTES - 1] = 2;
    const changed = await staged('2', other);
    assert.notEqual(await inode(changed), await inode(first));
    assert.equal((await readFile(path.join(changed, LARGE))).at(-1), 2);
    assert.equal((await readFile(path.join(first, LARGE))).at(-1), 1);
  });
});

describe('a copy of a plugin', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('stage-whole');
    await mkdir(scratch.path('garden/lib'), { recursive: true });
    await writeFile(scratch.path('garden/lib/beds.js'), '');
  });
  after(() => scratch.close());

  const staged = async (text: string): Promise<unknown> => {
    await writeFile(scratch.path('garden/index.js'), text);
    return stagePlugin(scratch.path('garden'), 'garden', scratch.path('state'));
  };

  it('is on the disk before it has its name', async (t) => {
    const deeds = diskDeeds(t, scratch.path('state/plugins'));
    await staged('1');
    assert.deepEqual(
      deeds.filter((deed) => !deed.startsWith('remove')),
      [
        'sync .staging-#/index.js',
        'sync .staging-#/lib/beds.js',
        'sync .staging-#/lib',
        'sync .staging-#',
        'rename .staging-# garden@#',
        'sync ',
      ],
    );
  });

  it('loses its name before it is removed, so that no half of one is taken for whole', async (t) => {
    for (const text of ['2', '3']) await staged(text);
    const deeds = diskDeeds(t, scratch.path('state/plugins'));
    await staged('4');
    await sweepStage(scratch.path('state'), new Set());
    assert.deepEqual(
      deeds.filter((deed) => /^re\w+ garden/.test(deed)),
      Array(4).fill('rename garden@# .staging-#'),
    );
    assert.deepEqual(
      (await readdir(scratch.path('state/plugins'))).filter((name) => name.startsWith('garden')),
      [],
    );
  });
});
