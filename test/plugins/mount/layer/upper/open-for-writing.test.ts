/** Who uses a mount, from a folder that looks like `/proc`. */
import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import {
  isRootInUse,
  openForWriting,
  recentlyOpenForWriting,
  usedPaths,
} from '../../../../../plugins/mount/layer/upper/open-for-writing.ts';
import { createManualClock } from 'mountkeeper/testing';
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

describe('files that are open for writing', () => {
  it('are found by one look for all shares that ask at the same time', async (t) => {
    const scratch = await createScratch('writers');
    t.after(() => scratch.close());
    const proc = scratch.path('proc');
    await mkdir(scratch.path('upper', 'sub'), { recursive: true });
    await writeFile(scratch.path('upper', 'sub', 'd.raw'), '');
    const clock = createManualClock();
    let fds = 0;
    const open = async (target: string, flags: string): Promise<string> => {
      const [fd, folder] = [String((fds += 1)), scratch.path('proc', '7')];
      for (const name of ['fd', 'fdinfo']) await mkdir(`${folder}/${name}`, { recursive: true });
      await symlink(target, `${folder}/fd/${fd}`);
      await writeFile(`${folder}/fdinfo/${fd}`, `pos:\t0\nflags:\t0${flags}\nmnt_id:\t1\n`);
      return `${folder}/fd/${fd}`;
    };
    const places = ['photos', 'video'].map((name) => ({
      mountPoint: `/mnt/${name}`,
      upper: scratch.path('upper'),
    }));
    const now = () => places.map((place) => [...openForWriting(place, proc)].sort());
    const lately = async () =>
      (await Promise.all(places.map((place) => recentlyOpenForWriting(place, clock, proc)))).map((one) =>
        [...one].sort(),
      );
    await open('/mnt/photos/a.raw', '100002');
    await open('/mnt/photos/read.raw', '100000');
    const closed = await open('/mnt/video/b.mov', '100001');
    // Open in an overlay that is not mounted any more; and one whose name only begins like it.
    await open('/sub/d.raw', '2');
    await open('/sub/gone.raw', '2');
    await open('/sub', '2');
    const first = [
      ['a.raw', 'sub', 'sub/d.raw'],
      ['b.mov', 'sub', 'sub/d.raw'],
    ];
    assert.deepEqual(now(), first);
    assert.deepEqual(await lately(), first);

    await open('/mnt/photos/c.raw', '2');
    await rm(closed);
    const second = [
      ['a.raw', 'c.raw', 'sub', 'sub/d.raw'],
      ['sub', 'sub/d.raw'],
    ];
    assert.deepEqual(now(), second, 'whoever must know asks the kernel');
    assert.deepEqual(
      await lately(),
      [['a.raw', 'sub', 'sub/d.raw'], second[1]],
      'what is closed waits no longer',
    );
    await clock.advance(251);
    assert.deepEqual(await lately(), second);
  });
});
