import assert from 'node:assert/strict';
import { mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import { prepareMountPoint, unlockMountPoint } from '../../../../plugins/mount/lifecycle/mount-point.ts';
import type { MountPointTools } from '../../../../plugins/mount/lifecycle/mount-point.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

/** Nothing of this daemon works there. */
const photos = { share: 'photos', work: '/nowhere' };

describe('a mount point', () => {
  let scratch: Scratch;
  let tools: MountPointTools;

  before(async () => {
    scratch = await createScratch('mount-point');
    const processes = createProcesses({
      stateDir: scratch.path('state'),
      clock: createClock(),
      log: collectLog().log,
    });
    const nothing = { list: () => Promise.resolve([]), find: () => Promise.resolve(undefined) };
    tools = { processes, mountTable: nothing, mountReader: {} as never };
  });
  after(() => scratch.close());

  it('is made with the folders above it, and taken again as it is', async () => {
    const path = scratch.path('above', "it's a *? point");
    await prepareMountPoint(path, photos, tools);
    try {
      assert.ok((await stat(path)).isDirectory());
      await prepareMountPoint(path, photos, tools);
    } finally {
      await unlockMountPoint(path, tools);
    }
    assert.equal((await stat(path)).mode & 0o777, 0o755);
  });

  it('in which something lies, under whatever name, is refused by that name and left as it was', async () => {
    const path = scratch.path('full');
    await mkdir(path);
    for (const name of ['file', '*', '.hidden', '..two', '...', '-n', 'two words']) {
      await writeFile(scratch.path('full', name), '');
      await assert.rejects(prepareMountPoint(path, photos, tools), {
        message:
          `the mount point ${path} is not empty ("${name}" lies there); ` +
          'move its contents away or choose another mount_point',
      });
      await rm(scratch.path('full', name));
    }
    await symlink('nowhere', scratch.path('full', 'link'));
    await assert.rejects(prepareMountPoint(path, photos, tools), /is not empty \("link" lies there\)/);
  });

  it('that is a file, or is reached through a link, is refused', async () => {
    await writeFile(scratch.path('file'), '');
    await assert.rejects(
      prepareMountPoint(scratch.path('file'), photos, tools),
      /cannot be used: .*File exists/,
    );
    await mkdir(scratch.path('real'));
    await symlink('real', scratch.path('link'));
    await assert.rejects(
      prepareMountPoint(scratch.path('link'), photos, tools),
      new RegExp(`through a symbolic link; the kernel knows it as ${scratch.path('real')}:`),
    );
  });
});
