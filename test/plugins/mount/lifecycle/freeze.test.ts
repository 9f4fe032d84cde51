/** A share that is frozen while a file of it is open for writing: a real overlay, and the kernel's mounts. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile, readdir, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createMountTable } from '../../../../core/platform/mounts/mount-table.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import { overlaySource } from '../../../../plugins/mount/layer/overlay.ts';
import { stackPaths } from '../../../../plugins/mount/layer/paths.ts';
import { clearStack, prepareStack } from '../../../../plugins/mount/layer/stack.ts';
import { freezeMount } from '../../../../plugins/mount/lifecycle/freeze.ts';
import { clearMountPoint } from '../../../../plugins/mount/lifecycle/mount-point.ts';
import type { MountTools } from '../../../../plugins/mount/lifecycle/tools.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { isMounted } from '../../../support/platform/mounted-file-systems.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';

const FLAGS = 'nosuid,nodev,nosymfollow,noexec';

describe('a share that is frozen while a file of it is open for writing', { skip: unlessRoot }, () => {
  const setUp = async (t: TestContext) => {
    const scratch = await createScratch('freeze');
    const { log } = collectLog();
    const clock = createClock();
    const end = new AbortController();
    const stateDir = scratch.path('state');
    const tools = {
      clock,
      log,
      processes: createProcesses({ stateDir, clock, log }),
      mountTable: createMountTable(),
    } as unknown as MountTools;
    const stack = stackPaths(stateDir, 'photos');
    await prepareStack(stack, tools);
    for (const name of ['lower', 'upper', 'work', 'mnt']) await mkdir(scratch.path(name));
    await writeFile(scratch.path('lower', 'film'), 'film');
    // As below systemd: what is mounted there is shared with copies of it in other namespaces.
    const above = scratch.path('mnt');
    assert.equal(spawnSync('mount', ['--bind', '--make-shared', above, above]).status, 0);
    const mountPoint = scratch.path('mnt', 'share');
    await mkdir(mountPoint);
    const [lower, upper, work] = ['lower', 'upper', 'work'].map((name) => scratch.path(name));
    const layers = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    const args = ['-t', 'overlay', '-o', `${layers},${FLAGS}`, overlaySource('photos'), mountPoint];
    assert.equal(spawnSync('mount', args).status, 0);
    t.after(async () => {
      end.abort();
      await clearMountPoint(mountPoint, tools, { share: 'photos', active: 'detach' });
      await clearStack(stack, tools);
      spawnSync('umount', ['-l', above]);
      await scratch.close();
    });
    const freeze = (): Promise<void> =>
      freezeMount({ mountPoint, flags: FLAGS, staging: stack.staging }, tools, end.signal);
    return { scratch, mountPoint, stack, tools, freeze };
  };

  it('shows its files, takes no others, and lets what is open be written to its end', async (t) => {
    const { mountPoint, stack, freeze, tools } = await setUp(t);
    const writer = await open(`${mountPoint}/edit`, 'w');
    await writer.write('first, ');
    await freeze();
    assert.deepEqual((await readdir(mountPoint)).sort(), ['edit', 'film']);
    assert.equal(await readFile(`${mountPoint}/film`, 'utf8'), 'film');
    await assert.rejects(writeFile(`${mountPoint}/new`, ''), { code: 'EROFS' });
    await assert.rejects(writeFile(`${mountPoint}/edit`, ''), { code: 'EROFS' });
    await writer.write('last');
    await writer.close();
    assert.equal(await readFile(`${mountPoint}/edit`, 'utf8'), 'first, last');
    assert.equal(await isMounted(stack.staging), false);
    await clearMountPoint(mountPoint, tools, { share: 'photos', active: 'detach' });
    assert.equal(await isMounted(mountPoint), false);
  });

  it('is covered once, also when another daemon freezes it again', async (t) => {
    const { mountPoint, freeze, tools } = await setUp(t);
    const writer = await open(`${mountPoint}/edit`, 'w');
    const there = async () => (await tools.mountTable.list()).filter((one) => one.mountPoint === mountPoint);
    await freeze();
    await freeze();
    assert.deepEqual(
      (await there()).map((one) => one.readOnly),
      [false, true],
    );
    await clearMountPoint(mountPoint, tools, { share: 'photos', active: 'detach' });
    assert.deepEqual(await there(), []);
    await writer.close();
  });

  it('takes nothing more from who was in it before, either, once nothing is open for writing', async (t) => {
    const { mountPoint, freeze } = await setUp(t);
    const writer = await open(`${mountPoint}/edit`, 'w');
    // As smbd, which stays in the folder that it has entered.
    const inside = spawn(
      'sh',
      ['-c', 'while read name; do true > "$name" && echo made || echo refused; done'],
      {
        cwd: mountPoint,
        stdio: ['pipe', 'pipe', 'ignore'],
      },
    );
    t.after(() => inside.kill('SIGKILL'));
    const make = async (name: string): Promise<string> => {
      inside.stdin.write(`${name}\n`);
      const [said] = (await once(inside.stdout, 'data')) as [Buffer];
      return said.toString().trim();
    };
    await freeze();
    assert.equal(await make('by-the-one-inside'), 'made');
    await writer.close();
    let count = 0;
    await until('nothing is taken any more', async () => (await make(`n${(count += 1)}`)) === 'refused', {
      timeoutMs: 20_000,
      everyMs: 200,
    });
    assert.equal(await readFile(`${mountPoint}/film`, 'utf8'), 'film');
  });
});
