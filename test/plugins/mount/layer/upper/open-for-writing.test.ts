/** Who uses a mount, from a folder that looks like `/proc`. */
import assert from 'node:assert/strict';
import { mkdir, symlink } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { isRootInUse, usedPaths } from '../../../../../plugins/mount/layer/upper/open-for-writing.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';

describe('users of a mount', () => {
  it('are those in a folder of it, and those in its root', async (t) => {
    const scratch = await createScratch('users');
    t.after(() => scratch.close());
    const proc = async (name: string, links: Readonly<Record<string, string>>): Promise<string> => {
      await mkdir(scratch.path(name, '1', 'fd'), { recursive: true });
      for (const [link, target] of Object.entries(links))
        await symlink(target, scratch.path(name, '1', link));
      return scratch.path(name);
    };
    const away = await proc('away', { cwd: '/mnt', 'fd/3': '/mnt/photos2', exe: '/usr/bin/sh' });
    assert.deepEqual([isRootInUse('/mnt/photos', away), [...usedPaths('/mnt/photos', away)]], [false, []]);
    const below = await proc('below', { cwd: '/mnt/photos/2024', 'fd/3': '/mnt/photos/a.raw' });
    assert.equal(isRootInUse('/mnt/photos', below), false);
    assert.deepEqual([...usedPaths('/mnt/photos', below)], ['2024', 'a.raw']);
    for (const link of ['cwd', 'fd/3']) {
      const inRoot = await proc(`root-${link.replace('/', '-')}`, { [link]: '/mnt/photos' });
      assert.deepEqual(
        [isRootInUse('/mnt/photos', inRoot), [...usedPaths('/mnt/photos', inRoot)]],
        [true, []],
      );
    }
  });
});
