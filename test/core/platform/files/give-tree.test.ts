import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, link, lstat, mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { giveTree } from '../../../../core/platform/files/give-tree.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const USER = { uid: 65_534, gid: 65_534 };
const ROOT = { uid: 0, gid: 0 };

describe('a folder that is given to another user', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('give-tree');
  });
  after(() => scratch.close());

  const owner = async (...parts: string[]): Promise<string> => {
    const { uid, gid } = await lstat(scratch.path(...parts));
    return `${uid}:${gid}`;
  };

  it('is given with all in it, as deep as it is, and back', async () => {
    const all = ['tree', 'tree/deep', 'tree/deep/er', 'tree/deep/er/file', 'tree/file'];
    await mkdir(scratch.path('tree/deep/er'), { recursive: true });
    for (const name of ['tree/file', 'tree/deep/er/file']) await writeFile(scratch.path(name), 'kept');
    await chmod(scratch.path('tree/file'), 0o600);
    for (const [to, said] of [
      [USER, '65534:65534'],
      [ROOT, '0:0'],
    ] as const) {
      await giveTree(scratch.path('tree'), to);
      for (const name of all) assert.equal(await owner(name), said, name);
    }
    assert.equal((await lstat(scratch.path('tree/file'))).mode & 0o777, 0o600);
  });

  it('gives nothing else of the machine: by no link, by no second name, by no name that leads elsewhere', async () => {
    await mkdir(scratch.path('outside'));
    await mkdir(scratch.path('odd'));
    for (const name of ['file', 'linked', 'second']) await writeFile(scratch.path('outside', name), '');
    await symlink(scratch.path('outside'), scratch.path('odd/folder'));
    await symlink(scratch.path('outside/linked'), scratch.path('odd/file'));
    await link(scratch.path('outside/second'), scratch.path('odd/second'));
    // Whoever opens it as a file waits for a writer.
    execFileSync('mkfifo', [scratch.path('odd/pipe')]);
    await giveTree(scratch.path('odd'), USER);
    assert.equal(await owner('odd'), '65534:65534');
    for (const name of ['', 'file', 'linked', 'second'])
      assert.equal(await owner('outside', name), '0:0', name);
    await rename(scratch.path('odd/folder'), scratch.path('link'));
    await assert.rejects(giveTree(scratch.path('link'), USER), /ENOTDIR|ELOOP/);
    assert.equal(await owner('outside'), '0:0');
  });

  it('is not walked through for ever', async () => {
    const deep = Array.from({ length: 70 }, () => 'a').join('/');
    await mkdir(scratch.path('deep', deep), { recursive: true });
    await assert.rejects(
      giveTree(scratch.path('deep'), USER),
      /deep holds more than 100000 files, or folders/,
    );
    assert.equal(await owner('deep'), '0:0');
  });
});
