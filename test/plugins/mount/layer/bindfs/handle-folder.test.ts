/** The mirror from which NFS shows a share with a write layer, by real bindfs over a file system in memory. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { createClock } from '../../../../../core/platform/clock.ts';
import { createMountTable } from '../../../../../core/platform/mounts/mount-table.ts';
import { createProcesses } from '../../../../../core/platform/processes/processes.ts';
import { KeptHandles } from '../../../../../plugins/mount/layer/bindfs/handle-folder.ts';
import { overlaySource } from '../../../../../plugins/mount/layer/overlay.ts';
import { SKIPS } from '../../../../runner/skips.ts';
import { CAN_HANG_A_MOUNT } from '../../../../support/platform/hung-mount.ts';
import { isAlive } from '../../../../support/platform/processes.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import { until } from '../../../../support/platform/wait.ts';
import { isMounted } from '../../../../support/platform/mounted-file-systems.ts';

const mount = (...args: string[]): void => assert.equal(spawnSync('mount', args).status, 0);

async function setUp(t: TestContext) {
  const scratch = await createScratch('handles');
  t.after(() => scratch.close());
  const [mountPoint, place] = [scratch.path('share'), scratch.path('handles')];
  await mkdir(mountPoint);
  mount('-t', 'tmpfs', '-o', 'size=1m', overlaySource('a'), mountPoint);
  /** As the daemon has it, or the next one. */
  const kept = () => {
    const clock = createClock();
    const log = pino({ level: 'silent' });
    const tools = {
      clock,
      mountTable: createMountTable(),
      processes: createProcesses({ stateDir: scratch.path('state'), clock, log }),
    };
    return new KeptHandles({
      shareName: 'a',
      mountPoint,
      flags: { exec: false, readOnly: false },
      place,
      tools,
    });
  };
  return { mountPoint, place, kept };
}

describe('the folder of handles of a share', { skip: !CAN_HANG_A_MOUNT && SKIPS.hangingMount.reason }, () => {
  it('shows the share, is kept for the next daemon, and started anew when its process has ended', async (t) => {
    const { mountPoint, place, kept } = await setUp(t);
    const first = kept();
    await writeFile(`${mountPoint}/file`, 'text');
    const { path, pid } = await first.folder();
    assert.equal(path, place);
    assert.equal(await readFile(`${path}/file`, 'utf8'), 'text');
    await rename(`${path}/file`, `${path}/other`);
    assert.equal(await readFile(`${mountPoint}/other`, 'utf8'), 'text');
    assert.equal((await first.folder()).pid, pid);
    first.release();
    await assert.rejects(first.folder(), /is being unmounted/);
    const next = kept();
    assert.equal((await next.folder()).pid, pid);
    process.kill(pid, 'SIGKILL');
    // Its parent is this process here, which has to hear of its end first.
    const anew = async () => {
      const found = await next.folder();
      return found.pid === pid ? undefined : found;
    };
    const again = await until('another one runs', anew, { timeoutMs: 20_000 });
    assert.equal(await readFile(`${again.path}/other`, 'utf8'), 'text');
    await again.end();
    assert.equal(isAlive(again.pid), false);
    assert.equal(await isMounted(place), false);
    const last = await next.folder();
    assert.equal(await readFile(`${last.path}/other`, 'utf8'), 'text');
    await next.end();
    assert.equal(isAlive(last.pid), false);
    assert.equal(await isMounted(place), false);
    await assert.rejects(next.folder(), /is being unmounted/);
  });

  it('is not led out of the share by a symlink, nor shows what covers a frozen one', async (t) => {
    const { mountPoint, place, kept } = await setUp(t);
    await symlink('/etc', `${mountPoint}/link`);
    assert.match(await readFile(`${mountPoint}/link/passwd`, 'utf8'), /root/);
    const handles = kept();
    mount('-t', 'tmpfs', '-o', 'ro', 'mountkeeper-sealed', mountPoint);
    await assert.rejects(handles.folder(), /is not at/);
    assert.equal(await isMounted(place), false);
    assert.equal(spawnSync('umount', [mountPoint]).status, 0);
    await handles.folder();
    await assert.rejects(readFile(`${mountPoint}/link/passwd`), { code: 'ELOOP' });
    await handles.end();
  });
});
