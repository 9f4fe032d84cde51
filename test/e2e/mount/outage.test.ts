// @load quiet
// @start 2
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile, readdir, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { Mount } from 'mountkeeper';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { createWorkbench } from '../../support/mount/workbench.ts';
import type { Workbench } from '../../support/mount/workbench.ts';

const AT = 20_000_000;
/** Changes four bytes far from what is in the cache, and closes. */
const EDIT = `printf "$2" | dd of="$1/big.bin" bs=4 seek=$(( ${AT} / 4 )) conv=notrunc 2>/dev/null`;

const deadline = (): AbortSignal => AbortSignal.timeout(4_000);

async function run(script: string, ...args: string[]): Promise<number> {
  const child = spawn('sh', ['-c', script, 'sh', ...args], { stdio: 'ignore' });
  const [code] = (await once(child, 'exit')) as [number];
  return code;
}

/** Gives up soon, so that a test need not wait for an outage of minutes. */
async function hasty(scratch: Scratch, command: string): Promise<string> {
  const file = scratch.path('hasty-rclone');
  await writeFile(
    file,
    `#!/bin/sh\n[ "$1" = mount ] && exec ${command} "$@" --low-level-retries=1 --contimeout=1s\nexec ${command} "$@"\n`,
  );
  await chmod(file, 0o755);
  return file;
}

/**
 * A file that is in the cache in part only, changed in place while the NAS is away, until rclone has given it
 * up.
 */
async function giveUp(nas: Nas, mount: Mount, scratch: Scratch): Promise<void> {
  assert.equal(await run('head -c 4096 "$1/big.bin" > /dev/null', mount.plan.mountPoint), 0);
  await nas.stop();
  assert.equal(await run(EDIT, mount.plan.mountPoint, 'EDIT'), 0);
  const folder = scratch.path('bench', 'state', 'processes');
  await until(
    'rclone gives the file up',
    async () => {
      assert.ok((await mount.stats(deadline())).dirtyFiles > 0, 'it counts as dirty');
      await mount.checkRemote(deadline()).catch(() => undefined);
      const logs = await Promise.all(
        (await readdir(folder))
          .filter((name) => name.endsWith('.log'))
          .map((name) => readFile(`${folder}/${name}`, 'utf8')),
      );
      return logs.some((text) => text.includes('failed to download missing parts'));
    },
    { timeoutMs: 120_000, everyMs: 500 },
  );
}

/** They wait for rclone to give up, each in a room of its own: all beside each other. */
describe('a file changed in place while the NAS is away', { concurrency: true }, () => {
  describe('by rclone', () => {
    const inRoom = async (
      work: (room: { scratch: Scratch; nas: Nas; bench: Workbench; mount: Mount }) => Promise<void>,
    ): Promise<void> => {
      const scratch = await createScratch('outage');
      try {
        const nas = await Nas.create(scratch, { files: { 'big.bin': 30_000_000 } });
        const bench = createWorkbench(scratch, {
          rclone: await hasty(scratch, currentRclone()),
          nas,
          mount: { chunk_size: '1M', read_ahead: '0', buffer_size: '0', multi_thread_streams: 0 },
        });
        await work({ scratch, nas, bench, mount: await bench.mount(bench.spec('photos')) });
      } finally {
        await scratch.close();
      }
    };
    const onNas = async (nas: Nas): Promise<string> =>
      (await readFile(nas.path('big.bin'))).subarray(AT, AT + 4).toString('latin1');

    it('is uploaded when the NAS is back, by a new start of rclone', { timeout: 200_000 }, () =>
      inRoom(async ({ scratch, nas, bench, mount }) => {
        await giveUp(nas, mount, scratch);
        await nas.start();
        const exited = mount.exited.then(() => true);
        await until(
          'rclone is ended for a new start',
          async () => {
            await mount.stats(deadline()).catch(() => undefined);
            await mount.checkRemote(deadline()).catch(() => undefined);
            return Promise.race([exited, Promise.resolve(false)]);
          },
          { timeoutMs: 30_000, everyMs: 300 },
        );
        await mount.kill();
        const next = await bench.mount(bench.spec('photos'));
        await until('the change is on the NAS', async () => (await onNas(nas)) === 'EDIT', {
          timeoutMs: 30_000,
          everyMs: 200,
        });
        await next.unmount();
      }),
    );

    it('is kept in quarantine when it is opened before and rclone deletes it', { timeout: 200_000 }, () =>
      inRoom(async ({ scratch, nas, mount }) => {
        await giveUp(nas, mount, scratch);
        await run(EDIT, mount.plan.mountPoint, 'LATE');
        const folder = scratch.path('bench', 'cache', 'photos');
        await until(
          'the content is held, or still in the cache',
          async () => {
            await mount.stats(deadline()).catch(() => undefined);
            const names = await readdir(folder, { recursive: true });
            const kept = names.find(
              (name) =>
                /(recovered\/.*|held\/\d+\/data|vfs\/nas)\/big\.bin$/.test(name) && !name.includes('vfsMeta'),
            );
            return (
              kept !== undefined &&
              (await readFile(`${folder}/${kept}`)).subarray(AT, AT + 4).toString('latin1') === 'EDIT'
            );
          },
          { timeoutMs: 20_000, everyMs: 300 },
        );
        await mount.kill();
      }),
    );
  });
});
