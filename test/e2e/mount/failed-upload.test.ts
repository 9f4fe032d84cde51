import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { createWorkbench } from '../../support/mount/workbench.ts';
import { unlessRoot } from '../../runner/skips.ts';

async function run(command: string, ...args: string[]): Promise<void> {
  const [code] = (await once(spawn(command, args, { stdio: 'ignore' }), 'exit')) as [number];
  assert.equal(code, 0, `${command} ${args.join(' ')}`);
}

const rclone = currentRclone();

describe('a file that the NAS does not take, with rclone', { skip: unlessRoot }, () => {
  it('counts as errored and is reported until it is uploaded', { timeout: 150_000 }, async () => {
    const scratch = await createScratch('failed-upload');
    try {
      const nas = await Nas.create(scratch, { files: { 'work/old': 10 } });
      const bench = createWorkbench(scratch, { rclone, nas });
      const mount = await bench.mount(bench.spec('work', { remote_path: 'work' }));
      const stats = (): ReturnType<typeof mount.stats> => mount.stats(AbortSignal.timeout(4_000));
      await run('chattr', '+i', nas.path('work'));
      scratch.defer(() => run('chattr', '-i', nas.path('work')));
      await run('sh', '-c', 'echo hello > "$1/new: 1"', 'sh', mount.plan.mountPoint);
      const failing = await until(
        'the failure is told',
        async () => {
          const figures = await stats();
          return figures.trouble === undefined ? undefined : figures;
        },
        { timeoutMs: 60_000, everyMs: 250 },
      );
      assert.match(
        failing.trouble ?? '',
        /^1 of the files written here cannot be .* \(new: 1: the remote does not let this user .*not permitted/,
      );
      assert.deepEqual([failing.erroredFiles, failing.dirtyFiles], [1, 1]);
      const [queued, ...others] = (await mount.uploadQueue?.(AbortSignal.timeout(4_000))) ?? [];
      assert.deepEqual([queued?.path, queued?.bytes, others.length], ['new: 1', 6, 0]);
      assert.ok((queued?.failures ?? 0) >= 3);
      await run('chattr', '-i', nas.path('work'));
      await until('it is up', async () => (await stats()).dirtyFiles === 0, {
        timeoutMs: 60_000,
        everyMs: 250,
      });
      const after = await stats();
      assert.deepEqual(
        [after.erroredFiles, after.trouble, await nas.has('work/new: 1')],
        [0, undefined, true],
      );
      await mount.unmount();
    } finally {
      await scratch.close();
    }
  });
});
