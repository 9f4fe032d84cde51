import assert from 'node:assert/strict';
import { lstat, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stagePlugin } from '../../../../core/plugins/discovery/stage.ts';
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
