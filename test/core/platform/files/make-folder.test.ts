import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { makeFolder } from '../../../../core/platform/files/make-folder.ts';

describe('a folder', () => {
  it('is made with all above it, for one user, and by many at once', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'mountkeeper-folder-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const deep = join(folder, 'a/b/c');
    await Promise.all([deep, deep, join(deep, 'd'), join(folder, 'a')].map(makeFolder));
    for (const one of ['a', 'a/b/c', 'a/b/c/d'])
      assert.equal((await stat(join(folder, one))).mode & 0o777, 0o700, one);
    await makeFolder(folder);
    await symlink(deep, join(folder, 'link'));
    await makeFolder(join(folder, 'link'));
  });

  it('is not made over a file, below one, or where the kernel makes none', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'mountkeeper-folder-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'file');
    await writeFile(file, '');
    await assert.rejects(makeFolder(file), { code: 'EEXIST' });
    await assert.rejects(makeFolder(join(file, 'x/y')), { code: 'ENOTDIR' });
    await assert.rejects(makeFolder('/proc/mountkeeper/state'), { code: 'ENOENT' });
  });
});
