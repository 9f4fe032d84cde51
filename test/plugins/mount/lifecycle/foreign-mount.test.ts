/** What a user of this machine has mounted where a share is to be, or is. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createMountReader } from '../../../../core/platform/mounts/mount-reader.ts';
import { createMountTable } from '../../../../core/platform/mounts/mount-table.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import { overlaySource } from '../../../../plugins/mount/layer/overlay.ts';
import {
  clearMountPoint,
  FREEZE_SOURCE,
  prepareMountPoint,
  unlockMountPoint,
} from '../../../../plugins/mount/lifecycle/mount-point.ts';
import type { MountPointTools } from '../../../../plugins/mount/lifecycle/mount-point.ts';
import { SKIPS } from '../../../runner/skips.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { CAN_HANG_A_MOUNT } from '../../../support/platform/hung-mount.ts';
import { isMounted, mountsBelow } from '../../../support/platform/mounted-file-systems.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';

const BOB = 65_534;
const mount = (...args: string[]): void => assert.equal(spawnSync('mount', args).status, 0, args.join(' '));

/** Nothing of this daemon works there. */
const photos = { share: 'photos', work: '/nowhere' };

describe('a mount of a user', { skip: !CAN_HANG_A_MOUNT && SKIPS.hangingMount.reason }, () => {
  let scratch: Scratch;
  let tools: MountPointTools;
  let path: string;

  beforeEach(async () => {
    scratch = await createScratch('foreign');
    const { log } = collectLog();
    const clock = createClock();
    const mountReader = createMountReader({ clock, log });
    scratch.defer(() => mountReader.close());
    const processes = createProcesses({ stateDir: scratch.path('state'), clock, log });
    tools = { processes, mountTable: createMountTable(), mountReader };
    path = scratch.path('photos');
    await mkdir(path);
  });
  afterEach(() => scratch.close());

  /** By root's hand, and of user bob, who lets nobody else in: as his own fusermount3 mounts it. */
  const mountOfBob = async (): Promise<ChildProcess> => {
    const script =
      'exec 3<>/dev/fuse; ' +
      `mount -i -t fuse.sshfs -o fd=3,rootmode=40000,user_id=${BOB},group_id=${BOB} bob@nas:/ "$1"; exec sleep 100`;
    const child = spawn('sh', ['-c', script, 'sh', path], { stdio: 'ignore' });
    scratch.defer(() => child.kill('SIGKILL'));
    await until('it is mounted', async () => (await sources()).includes('bob@nas:/'), { timeoutMs: 10_000 });
    return child;
  };
  const sources = async (): Promise<readonly string[]> =>
    (await mountsBelow(path)).map((entry) => entry.source);

  it('lets root not in: it is alive all the same, and the share is refused until it has ended', async () => {
    const child = await mountOfBob();
    await assert.rejects(
      prepareMountPoint(path, photos, tools),
      /another mount \(bob@nas:\/\) is already in use/,
    );
    assert.deepEqual(await sources(), ['bob@nas:/']);
    child.kill('SIGKILL');
    await once(child, 'exit');
    // The kernel lets nobody in to see that it is dead: he has to take it off himself.
    assert.equal(spawnSync('umount', [path]).status, 0);
    await prepareMountPoint(path, photos, tools);
    await unlockMountPoint(path, tools);
  });

  it("lies over a share: the share's end does not take it off, and takes off the share once it is gone", async () => {
    mount('-t', 'tmpfs', '-o', 'size=1m', overlaySource('photos'), path);
    mount('-t', 'tmpfs', '-o', 'size=1m', FREEZE_SOURCE, path);
    await mountOfBob();
    const clearing = { share: 'photos', active: 'detach' } as const;
    await assert.rejects(
      clearMountPoint(path, tools, clearing),
      /something else \(fuse\.sshfs, bob@nas:\/\)/,
    );
    assert.equal((await sources()).length, 3);
    assert.equal(spawnSync('umount', [path]).status, 0);
    await clearMountPoint(path, tools, clearing);
    assert.equal(await isMounted(path), false);
  });

  it("is another share's: it is left at the end of this one", async () => {
    mount('-t', 'tmpfs', '-o', 'size=1m', overlaySource('films'), path);
    await assert.rejects(
      clearMountPoint(path, tools, { share: 'photos', active: 'detach' }),
      /something else \(tmpfs, mountkeeper-layer:films\)/,
    );
    assert.equal(await isMounted(path), true);
  });

  it('is a share of a daemon with another state folder: it is left there while it lives', async () => {
    const through = scratch.path('other-state', 'mount', 'lower', 'photos', 'through');
    for (const folder of ['lower', 'upper', 'work']) await mkdir(scratch.path(folder));
    await mkdir(through, { recursive: true });
    assert.equal(spawnSync('bindfs', [scratch.path('lower'), through]).status, 0);
    const layers = `lowerdir=${through},upperdir=${scratch.path('upper')},workdir=${scratch.path('work')}`;
    mount('-t', 'overlay', '-o', layers, overlaySource('photos'), path);
    await assert.rejects(prepareMountPoint(path, photos, tools), {
      message:
        `another daemon, whose state folder is ${scratch.path('other-state')}, has its share "photos" at ${path}: ` +
        'end it (start and stop it once more if it was killed), or choose another mount_point',
    });
    assert.deepEqual(await sources(), [overlaySource('photos')]);
    assert.equal(spawnSync('umount', ['-l', path]).status, 0);
    // This daemon's own, which it left when it was killed: it works in its cache.
    const [work, own] = [scratch.path('own', 'work'), scratch.path('own', 'work', 'of-1a2B3c')];
    await mkdir(own, { recursive: true });
    await mkdir(scratch.path('own', 'upper'));
    const left = `lowerdir=${through},upperdir=upper,workdir=work/of-1a2B3c`;
    const args = ['-i', '-t', 'overlay', '-o', left, overlaySource('photos'), path];
    assert.equal(spawnSync('mount', args, { cwd: scratch.path('own') }).status, 0);
    await prepareMountPoint(path, { share: 'photos', work }, tools);
    assert.equal(await isMounted(path), false);
    await unlockMountPoint(path, tools);
    mount('-t', 'overlay', '-o', layers, overlaySource('photos'), path);
    await assert.rejects(prepareMountPoint(path, photos, tools), /another daemon/);
    assert.equal(spawnSync('umount', ['-l', through]).status, 0);
    await prepareMountPoint(path, photos, tools);
    assert.equal(await isMounted(path), false);
    await unlockMountPoint(path, tools);
  });

  it('has died: it is taken off before the share is mounted', async () => {
    const script =
      'exec 3<>/dev/fuse; ' +
      'mount -i -t fuse.sshfs -o fd=3,rootmode=40000,user_id=0,group_id=0,allow_other ada@nas:/ "$1"';
    assert.equal(spawnSync('sh', ['-c', script, 'sh', path]).status, 0);
    await prepareMountPoint(path, photos, tools);
    assert.equal(await isMounted(path), false);
    await unlockMountPoint(path, tools);
  });
});
