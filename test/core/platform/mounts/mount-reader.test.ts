import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createMountReader } from '../../../../core/platform/mounts/mount-reader.ts';
import { createMountTable } from '../../../../core/platform/mounts/mount-table.ts';
import type { MountReader } from '../../../../core/contract/platform.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until, within } from '../../../support/platform/wait.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { CAN_HANG_A_MOUNT, mountToHang } from '../../../support/platform/hung-mount.ts';
import { SKIPS, unlessRoot } from '../../../runner/skips.ts';

const clock = createClock();
const table = createMountTable();

/** Living shells of mount readers that this process has started. */
async function helpers(): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [stat = '', line = ''] = await Promise.all(
        [`/proc/${pid}/stat`, `/proc/${pid}/cmdline`].map((file) => readFile(file, 'utf8').catch(() => '')),
      );
      const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const isAlive = !['', 'Z', 'X'].includes(state);
      return isAlive && Number(parent) === process.pid && line.includes('read -r path') ? pid : 0;
    }),
  );
  return found.filter((pid) => pid > 0);
}

async function controlFileSystems(): Promise<number> {
  return (await table.list()).filter(({ fsType }) => fsType === 'fusectl').length;
}

describe('mount reader', () => {
  let scratch: Scratch;
  let reader: MountReader & { close(): void };
  /** Of other suites, which run in this process, too: they may be on their way out. */
  let others: readonly number[] = [];
  before(async () => {
    scratch = await createScratch('reader');
    others = await helpers();
    reader = createMountReader({ clock, log: collectLog().log });
    scratch.defer(() => reader.close());
  });
  after(async () => {
    reader.close();
    await until('no helper is left', async () => (await helpers()).length === 0, { timeoutMs: 20_000 });
    await scratch.close();
  });

  it('opens a folder, whatever its name', async () => {
    for (const name of ['照 片', '-n', 'it\'s "quoted" $HOME `x` \\n', '*', 'a: b']) {
      await mkdir(scratch.path('names', name), { recursive: true });
      await reader.touch(scratch.path('names', name), { timeoutMs: 20_000 });
    }
  });

  it('says why a folder cannot be opened', async () => {
    await writeFile(scratch.path('file'), '');
    await assert.rejects(
      reader.touch(scratch.path('missing'), { timeoutMs: 20_000 }),
      /^Error: open .*missing: No such file/,
    );
    await assert.rejects(reader.touch(scratch.path('file'), { timeoutMs: 20_000 }), /^Error: open .*file: /);
    await assert.rejects(reader.touch('/tmp\n/etc', { timeoutMs: 20_000 }), /line end/);
    await reader.touch(scratch.root, { timeoutMs: 20_000 });
  });

  it('lists names as they are', async () => {
    const names = ['照片', ' a b ', '-rf', 'line\nend', '.hidden', '..odd'];
    for (const name of names) await mkdir(scratch.path('list', name), { recursive: true });
    assert.deepEqual(
      [...(await reader.list(scratch.path('list'), { timeoutMs: 20_000 }))].sort(),
      names.sort(),
    );
    assert.deepEqual(await reader.list(scratch.path('list', '照片'), { timeoutMs: 20_000 }), []);
    await assert.rejects(
      reader.list(scratch.path('missing'), { timeoutMs: 20_000 }),
      /list .*missing.*No such file/,
    );
  });

  it('uses few helpers for many calls', async () => {
    const touched = (calls: number): Promise<unknown> =>
      Promise.all(Array.from({ length: calls }, () => reader.touch(scratch.root, { timeoutMs: 20_000 })));
    // On a busy machine a helper takes longer to start than a call may hold a place; those that are there do not.
    await touched(4);
    await touched(100);
    const own = (await helpers()).filter((pid) => !others.includes(pid));
    assert.ok(own.length <= 4, `${own.length} helpers`);
  });

  it('has nothing to detach where nothing is mounted, and keeps away from mounts that are not its own', async () => {
    await reader.detach(scratch.path('missing'), { timeoutMs: 20_000 });
    await assert.rejects(
      reader.detach('/proc', { timeoutMs: 20_000 }),
      /\/proc holds a proc file system that is not ours/,
    );
    assert.ok(await table.find('/proc'));
  });

  it(
    'has nothing to abort when the connection has ended, and leaves no mount behind',
    { skip: unlessRoot },
    async () => {
      const controls = await controlFileSystems();
      await reader.abort(987_654);
      assert.equal(await reader.waiting(987_654), 0);
      assert.equal(await controlFileSystems(), controls);
    },
  );

  describe('on a mount that hangs', { skip: !CAN_HANG_A_MOUNT && SKIPS.hangingMount.reason }, () => {
    let mountPoint: string;

    before(async () => {
      const mount = await mountToHang(scratch);
      mountPoint = mount.mountPoint;
      await reader.touch(mountPoint, { timeoutMs: 20_000 });
      assert.deepEqual(await reader.list(mountPoint, { timeoutMs: 20_000 }), ['folder']);
      assert.equal(await reader.waiting((await table.find(mountPoint))?.deviceMinor ?? -1), 0);
      mount.hang();
    });

    it('gives up, answers for others meanwhile, and leaves one helper for all calls', async () => {
      let isOver = false;
      const hanging = assert
        .rejects(reader.touch(mountPoint, { timeoutMs: 3_000 }), {
          name: 'TimeoutError',
          message: `${mountPoint} did not answer within 3000 ms`,
        })
        .finally(() => (isOver = true));
      // Whoever had to wait for the hanging call would not be answered before it is given up.
      await reader.touch(scratch.root, { timeoutMs: 20_000 });
      assert.equal(isOver, false, 'the hanging call holds up others');
      for (let call = 0; call < 20; call += 1) await reader.touch(scratch.root, { timeoutMs: 20_000 });
      await hanging;
      const many = await Promise.allSettled(
        Array.from({ length: 10 }, () => reader.touch(mountPoint, { timeoutMs: 200 })),
      );
      assert.ok(
        many.every(
          (result) => result.status === 'rejected' && (result.reason as Error).name === 'TimeoutError',
        ),
      );
      assert.ok((await helpers()).length <= 6, `${(await helpers()).length} helpers`);
    });

    it('gives up listing in time', async () => {
      await assert.rejects(reader.list(`${mountPoint}/folder`, { timeoutMs: 200 }), { name: 'TimeoutError' });
    });

    it('has calls that wait', async () => {
      const controls = await controlFileSystems();
      const entry = await table.find(mountPoint);
      const hanging = reader.touch(`${mountPoint}/folder`, { timeoutMs: 3_000 }).catch(() => undefined);
      await until('one waits', async () => (await reader.waiting(entry?.deviceMinor ?? -1)) > 0, {
        timeoutMs: 2_500,
      });
      await hanging;
      assert.equal(await controlFileSystems(), controls, 'none is left mounted');
    });

    it("is detached while its process hangs, and the kernel's abort then frees every helper", async () => {
      const controls = await controlFileSystems();
      const entry = await table.find(mountPoint);
      await within('detach', 25_000, reader.detach(mountPoint, { timeoutMs: 20_000 }));
      assert.equal(await table.find(mountPoint), undefined);
      await reader.touch(mountPoint, { timeoutMs: 2_000 }).catch(() => undefined);
      await within('abort', 20_000, reader.abort(entry?.deviceMinor ?? -1));
      await until('helpers that hung have ended', async () => (await helpers()).length <= 4, {
        timeoutMs: 20_000,
      });
      await reader.touch(mountPoint, { timeoutMs: 20_000 });
      assert.equal(await controlFileSystems(), controls, 'none is left mounted');
    });
  });

  it('refuses calls once it is closed', async () => {
    reader.close();
    await assert.rejects(reader.touch(scratch.root, { timeoutMs: 1_000 }), /closed/);
  });
});
