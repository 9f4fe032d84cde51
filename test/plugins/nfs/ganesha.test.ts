import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { hasMountTable } from '../../../plugins/nfs/ganesha.ts';

describe('the file in which NFS-Ganesha looks for mounts', () => {
  it('is there as a link into /proc, and not where it is missing or leads nowhere', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'mountkeeper-mtab-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    await symlink('/proc/self/mounts', join(folder, 'mtab'));
    await symlink('/proc/self/nothing', join(folder, 'nowhere'));
    const found = await Promise.all(
      ['mtab', 'nowhere', 'missing'].map((name) => hasMountTable(join(folder, name))),
    );
    assert.deepEqual(found, [true, false, false]);
  });
});
