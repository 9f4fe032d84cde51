/** The path to a mount point, turned by the user of this machine to whom a folder on it belongs. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, readFile, rename, stat, symlink } from 'node:fs/promises';
import { after, beforeEach, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createMountTable } from '../../../../core/platform/mounts/mount-table.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import { dropNames, moveThenDropNames } from '../../../../plugins/mount/layer/overlay.ts';
import { stackPaths } from '../../../../plugins/mount/layer/paths.ts';
import { clearStack, prepareStack, show } from '../../../../plugins/mount/layer/stack.ts';
import { freezeMount } from '../../../../plugins/mount/lifecycle/freeze.ts';
import { narrowMount } from '../../../../plugins/mount/lifecycle/mount-flags.ts';
import { prepareMountPoint, unlockMountPoint } from '../../../../plugins/mount/lifecycle/mount-point.ts';
import { turnableMountPoints, turnableNotices } from '../../../../plugins/mount/lifecycle/passage.ts';
import type { MountTools } from '../../../../plugins/mount/lifecycle/tools.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { isMounted } from '../../../support/platform/mounted-file-systems.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const BOB = 65_534;
const mount = (...args: string[]): void => assert.equal(spawnSync('mount', args).status, 0, args.join(' '));

/** Nothing of this daemon works there. */
const photos = { share: 'photos', work: '/nowhere' };

describe('a mount point below a folder of another user', { skip: unlessRoot }, () => {
  const scratches: Scratch[] = [];
  let scratch: Scratch;
  let tools: MountTools;
  let home: string;
  let mountPoint: string;

  beforeEach(async () => {
    scratch = await createScratch('turned');
    scratches.push(scratch);
    const { log } = collectLog();
    const clock = createClock();
    const processes = createProcesses({ stateDir: scratch.path('state'), clock, log });
    tools = { processes, clock, log, mountTable: createMountTable(), mountReader: {} } as never;
    home = scratch.path('home', 'bob');
    mountPoint = `${home}/photos`;
    await mkdir(home, { recursive: true });
    await chown(home, BOB, BOB);
  });
  after(async () => {
    for (const one of scratches) await one.close();
  });

  const turnTo = async (target: string): Promise<void> => {
    await rename(home, scratch.path('home', 'bob2'));
    await mkdir(home);
    await symlink(target, mountPoint);
  };
  const flags = async (path: string): Promise<string> =>
    (await readFile('/proc/self/mountinfo', 'utf8'))
      .split('\n')
      .filter((line) => line.includes(` ${path} `))
      .join('\n');

  it('is refused with the folder, its owner and what to do, and nothing is made there', async () => {
    const said =
      `the mount point ${mountPoint} could be turned to any place of this machine ` +
      `(${home} belongs to user ${BOB}), and the daemon would follow as root: choose a mount_point below folders ` +
      'that belong to root and that nobody else can write, or leave mount_point out; ' +
      'a symbolic link from the old place may lead there';
    await assert.rejects(prepareMountPoint(mountPoint, photos, tools), { message: said });
    await assert.rejects(stat(mountPoint), { code: 'ENOENT' });
    await assert.rejects(prepareMountPoint(`${home}/nas/photos`, photos, tools), /belongs to user/);
    const shares = [
      { name: 'photos', mount_point: mountPoint },
      { name: 'films', mount_point: scratch.path('films') },
    ];
    const turnable = await turnableMountPoints(shares, tools.processes);
    assert.deepEqual([...turnable], [['photos', said]]);
    const [notice] = turnableNotices(turnable);
    assert.equal(notice?.message, `share 'photos' is not mounted again once it is taken off: ${said}`);
  });

  it('is refused where everybody may write, and where another user has made it in a folder like /tmp', async () => {
    await chown(home, 0, 0);
    await chmod(home, 0o777);
    await assert.rejects(prepareMountPoint(mountPoint, photos, tools), /bob may be written by everybody\)/);
    await chmod(home, 0o775);
    await assert.rejects(prepareMountPoint(mountPoint, photos, tools), /bob may be written by its group\)/);
    await chmod(home, 0o1777);
    await mkdir(mountPoint);
    await chown(mountPoint, BOB, BOB);
    await assert.rejects(prepareMountPoint(mountPoint, photos, tools), /photos belongs to user 65534\)/);
    await prepareMountPoint(`${home}/new/photos`, photos, tools);
    await unlockMountPoint(`${home}/new/photos`, tools);
    // In a folder that only root can write it may belong to anybody.
    await chmod(home, 0o755);
    await prepareMountPoint(mountPoint, photos, tools);
    await unlockMountPoint(mountPoint, tools);
  });

  it('is refused through a link on the way, by the real path', async () => {
    await symlink(home, scratch.path('link'));
    await assert.rejects(
      prepareMountPoint(scratch.path('link', 'photos'), photos, tools),
      new RegExp(`through a symbolic link; the kernel knows it as ${mountPoint}:`),
    );
    await assert.rejects(stat(mountPoint), { code: 'ENOENT' });
  });

  it('leads to a file of root: it keeps its mode when the daemon lets go of the mount point', async () => {
    const secret = scratch.path('secret');
    await mkdir(secret, { mode: 0o700 });
    await turnTo(secret);
    await unlockMountPoint(mountPoint, tools);
    assert.equal((await stat(secret)).mode & 0o777, 0o700);
  });

  it('leads to another mount: that keeps its flags, and is neither frozen nor covered', async () => {
    const other = scratch.path('other');
    await mkdir(other);
    mount('-t', 'tmpfs', '-o', 'size=1m', 'somebody', other);
    await turnTo(other);
    const before = await flags(other);
    const spec = { exec: false, readOnly: true };
    await assert.rejects(dropNames(mountPoint, spec, tools), /leads to/);
    const moved = await moveThenDropNames([], { upper: scratch.root, mountPoint, spec }, tools);
    assert.equal(moved.isDropped, false);
    const end = new AbortController();
    const frozen = { mountPoint, flags: 'nosuid', staging: scratch.path('staging') };
    await assert.rejects(freezeMount(frozen, tools, end.signal), /leads to/);
    await narrowMount({ name: 'photos', mount_point: mountPoint }, tools);
    assert.equal(await flags(other), before);
  });

  it('leads to another folder by the time the share is shown: nothing is mounted there', async () => {
    const other = scratch.path('other');
    await mkdir(other);
    const stack = stackPaths(scratch.path('state'), 'photos');
    await prepareStack(stack, tools);
    mount('-t', 'tmpfs', '-o', 'size=1m', 'share', stack.staging);
    await turnTo(other);
    await assert.rejects(show(stack, { mountPoint, isFresh: false }, tools), /leads to/);
    assert.equal(await isMounted(other), false);
    const place = scratch.path('place');
    await mkdir(place);
    await show(stack, { mountPoint: place, isFresh: false }, tools);
    assert.equal(await isMounted(place), true);
    await clearStack(stack, tools);
  });

  it('that was not turned is frozen with the flags that it has, and its names are dropped', async () => {
    const upper = scratch.path('upper');
    const place = scratch.path('place');
    for (const name of ['lower', 'upper', 'work', 'place']) await mkdir(scratch.path(name));
    const layers = `lowerdir=${scratch.path('lower')},upperdir=${upper},workdir=${scratch.path('work')}`;
    mount('-t', 'overlay', '-o', layers, 'o', place);
    const spec = { exec: false, readOnly: false };
    await dropNames(place, spec, tools);
    assert.match(await flags(place), / rw,nosuid,nodev,noexec,.*nosymfollow/);
    const to = { upper, mountPoint: place, spec: { exec: true, readOnly: false } };
    assert.equal((await moveThenDropNames([], to, tools)).isDropped, true);
    assert.match(await flags(place), / rw,nosuid,nodev,rel.*nosymfollow/);
    const flagsThen = 'nosuid,nodev,nosymfollow,noexec';
    const frozen = { mountPoint: place, flags: flagsThen, staging: scratch.path('staging') };
    await freezeMount(frozen, tools, new AbortController().signal);
    assert.match(await flags(place), / ro,nosuid,nodev,noexec,.*nosymfollow/);
  });
});
