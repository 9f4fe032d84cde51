import assert from 'node:assert/strict';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { MountEntry } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { ReadOnlyLook } from '../../../../plugins/mount/cache/file-system.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

describe('the look whether the disk of a cache can be read only', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('holder');
  });
  after(() => scratch.close());

  const setUp = async () => {
    const [disk, other, link] = ['disk', 'other', 'link'].map((name) => scratch.path(name));
    await Promise.all([disk, other].map((dir) => mkdir(dir as string, { recursive: true })));
    await rm(link as string, { force: true });
    await symlink(disk as string, link as string);
    const clock = createManualClock();
    const entry = (mountPoint: string, readOnly: boolean): MountEntry => ({
      mountPoint,
      fsType: 'ext4',
      source: '/dev/vdb',
      deviceMinor: 1,
      readOnly,
    });
    const mounts = {
      table: [
        entry('/', false),
        entry(disk as string, false),
        entry(other as string, true),
      ] as readonly MountEntry[],
    };
    const look = new ReadOnlyLook(
      link as string,
      { list: async () => mounts.table, find: () => Promise.reject(new Error('not asked')) },
      clock,
    );
    const answer = (): Promise<boolean> => look.isReadOnly();
    return {
      clock,
      mounts,
      entry,
      answer,
      disk: disk as string,
      other: other as string,
      link: link as string,
    };
  };

  it('sees at once that the table says so, and that it does not any more', async () => {
    const { answer, disk, entry, mounts } = await setUp();
    const seen: boolean[] = [];
    for (const readOnly of [false, true, false]) {
      mounts.table = [entry('/', false), entry(disk, readOnly)];
      seen.push(await answer(), await answer());
    }
    assert.deepEqual(seen, [false, false, true, true, false, false]);
  });

  it('follows a link that was made to lead elsewhere, within a minute', async () => {
    const { answer, clock, link, other } = await setUp();
    assert.equal(await answer(), false);
    await rm(link);
    await symlink(other, link);
    await clock.advance(60_000);
    assert.equal(await answer(), true);
  });

  it('says nothing of a disk when the table cannot be read', async () => {
    const { answer, disk, entry, mounts } = await setUp();
    mounts.table = [entry(disk, true)];
    assert.equal(await answer(), true);
    Object.defineProperty(mounts, 'table', {
      get: () => {
        throw new Error('no /proc');
      },
    });
    assert.equal(await answer(), false);
  });
});
