import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { Mount } from 'mountkeeper';
import { isMounted, mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { isAlive } from '../../support/platform/processes.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { createWorkbench } from '../../support/mount/workbench.ts';
import type { Workbench } from '../../support/mount/workbench.ts';
import { userOfCache } from '../../../plugins/mount/cache/sole-user.ts';
import { unlessRoot } from '../../runner/skips.ts';

interface Room {
  readonly scratch: Scratch;
  readonly nas: Nas;
  readonly bench: Workbench;
}

const deadline = (ms = 5_000): AbortSignal => AbortSignal.timeout(ms);

async function inRoom(
  command: string,
  work: (room: Room) => Promise<void>,
  mount: { write_back?: string } = {},
): Promise<void> {
  const scratch = await createScratch('life');
  try {
    const nas = await Nas.create(scratch, { files: { 'a.bin': 100_000 } });
    await work({ scratch, nas, bench: createWorkbench(scratch, { rclone: command, nas, mount }) });
  } finally {
    await scratch.close();
  }
}

/** A shell that does something below the mount; it may hang, the test does not. */
function shell(script: string, mount: Mount): { readonly ended: Promise<number>; end(): void } {
  const child = spawn('sh', ['-c', script, 'sh', mount.plan.mountPoint], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  return { ended: once(child, 'exit').then(([code]) => code as number), end: () => child.stdin.end() };
}

const rclone = currentRclone();

describe('the life of a mount by rclone', () => {
  it('is adopted by the next daemon with its figures, and ends by it', () =>
    inRoom(rclone, async ({ scratch, nas, bench }) => {
      const first = await bench.mount(bench.spec('photos'));
      const { pid, rcPort } = first;
      // Which place it is comes with its share's configuration, not from its process.
      const { place: _, ...plan } = first.plan;
      first.release();
      const next = createWorkbench(scratch, { rclone, nas });
      const [mount, ...others] = await next.mounter.adopt();
      assert.equal(others.length, 0);
      assert.deepEqual(
        { pid: mount?.pid, plan: mount?.plan, rcPort: mount?.rcPort, adopted: mount?.adopted },
        { pid, plan, rcPort, adopted: true },
      );
      assert.equal((await mount?.stats(deadline()))?.dirtyFiles, 0);
      await mount?.unmount();
      assert.equal(isAlive(pid), false);
      assert.equal(await isMounted(plan.mountPoint), false);
    }));

  it('is not adopted when its mount is gone', () =>
    inRoom(rclone, async ({ scratch, nas, bench }) => {
      const first = await bench.mount(bench.spec('photos'));
      first.release();
      process.kill(first.pid, 'SIGKILL');
      const next = createWorkbench(scratch, { rclone, nas });
      await until('the process has ended', () => Promise.resolve(!isAlive(first.pid)), { timeoutMs: 20_000 });
      assert.deepEqual(await next.mounter.adopt(), []);
      const mount = await next.mount(next.spec('photos'));
      await mount.unmount();
    }));

  it('ends though its process is stopped and callers hang in it', () =>
    inRoom(rclone, async ({ bench }) => {
      const mount = await bench.mount(bench.spec('photos'));
      process.kill(mount.pid, 'SIGSTOP');
      const caller = shell('ls "$1"', mount);
      // For a second after the mount the kernel answers what it has just been told.
      await until(
        'it is seen',
        () =>
          mount.checkAlive(300).then(
            () => false,
            ({ name }: Error) => name === 'TimeoutError',
          ),
        { timeoutMs: 10_000 },
      );
      await assert.rejects(mount.stats(deadline(300)));
      await mount.kill();
      await caller.ended;
      assert.equal(await isMounted(mount.plan.mountPoint), false);
      assert.match(await mount.exited, /bindfs below the share has ended/);
    }));

  for (const [state, prepare] of [
    ['works', () => undefined],
    ['has stopped', (pid: number) => process.kill(pid, 'SIGSTOP')],
  ] as const) {
    it(`ends an unadopted rclone that ${state}, and takes over what waits in its cache`, () =>
      inRoom(
        rclone,
        async ({ scratch, nas, bench }) => {
          const first = await bench.mount(bench.spec('photos'));
          assert.equal(await shell('echo waits > "$1/w.txt"', first).ended, 0);
          first.release();
          prepare(first.pid);
          const next = createWorkbench(scratch, { rclone, nas });
          const mount = await next.mount(next.spec('photos'));
          assert.equal(isAlive(first.pid), false);
          assert.notEqual(mount.pid, first.pid);
          assert.deepEqual((await mountsBelow(mount.plan.mountPoint)).length, 1);
          await until('the file is up', () => nas.has('w.txt'), { timeoutMs: 30_000 });
          await mount.unmount();
        },
        { write_back: '1h' },
      ));
  }

  it('brings files up that waited at the stop', () =>
    inRoom(
      rclone,
      async ({ scratch, nas, bench }) => {
        const spec = bench.spec('photos');
        const mount = await bench.mount(spec);
        assert.equal(await shell('echo waits > "$1/w.txt"', mount).ended, 0);
        await mount.unmount();
        assert.deepEqual((await bench.mounter.pending('photos')).paths, ['w.txt']);
        assert.deepEqual(await bench.mounter.cached(), ['photos']);
        const next = await createWorkbench(scratch, { rclone, nas }).mount(spec);
        await until('the file is up', () => nas.has('w.txt'), { timeoutMs: 30_000 });
        await next.unmount();
      },
      { write_back: '1h' },
    ));

  it('sends queued files up at once', () =>
    inRoom(
      rclone,
      async ({ nas, bench }) => {
        const mount = await bench.mount(bench.spec('photos'));
        assert.equal(await shell('echo now > "$1/n.txt"', mount).ended, 0);
        await until('the file waits', async () => (await mount.stats(deadline())).dirtyFiles === 1, {
          timeoutMs: 20_000,
        });
        const flushed = async (): Promise<boolean> => {
          await mount.flush(deadline());
          return nas.has('n.txt');
        };
        await until('the file is up', flushed, { timeoutMs: 20_000 });
        await mount.unmount();
      },
      { write_back: '1h' },
    ));

  it('takes no new writes once it is frozen, and lets writers finish', { skip: unlessRoot }, () =>
    inRoom(rclone, async ({ nas, bench }) => {
      const mount = await bench.mount(bench.spec('photos'));
      const writer = shell(
        'exec 3> "$1/open.txt"; echo one >&3; touch "$1/ready"; read -r line; echo two >&3; exec 3>&-',
        mount,
      );
      await until('the writer is at it', () => nas.has('ready'), { timeoutMs: 20_000 });
      await mount.freeze();
      assert.notEqual(await shell('echo no > "$1/no.txt"', mount).ended, 0);
      writer.end();
      assert.equal(await writer.ended, 0);
      await until(
        'the open file is up',
        async () =>
          (await nas.has('open.txt')) && (await readFile(nas.path('open.txt'), 'utf8')) === 'one\ntwo\n',
        { timeoutMs: 20_000 },
      );
      await until('nothing is dirty', async () => (await mount.stats(deadline())).dirtyFiles === 0, {
        timeoutMs: 20_000,
      });
      await mount.unmount();
      assert.deepEqual(await mountsBelow(mount.plan.mountPoint), []);
    }),
  );

  it(
    'is mounted without a probe where it was before, and not where its path is gone',
    { skip: unlessRoot },
    () =>
      inRoom(rclone, async ({ scratch, nas, bench }) => {
        await nas.put('photos/a.bin', 1_000);
        const spec = bench.spec('photos', { remote_path: 'photos' });
        const isLeft = () => bench.mounter.mountsUnprobed?.(spec);
        const mountIt = () => bench.mounter.mount(spec, deadline(30_000), { isUnprobed: true });
        assert.equal(await isLeft(), false, 'it was never mounted here');
        await (await bench.mount(spec)).unmount();
        assert.equal(await isLeft(), true);
        const again = await mountIt();
        assert.equal(await shell('test -e "$1/a.bin"', again).ended, 0);
        await again.unmount();
        await rm(nas.path('photos'), { recursive: true });
        await assert.rejects(mountIt(), /its path is not there/);
        assert.deepEqual(await mountsBelow(scratch.path('bench')), []);
        assert.equal(
          await userOfCache(`${scratch.path('bench')}/cache/photos`),
          undefined,
          'no rclone is left',
        );
      }),
  );

  it('says in plain words why it cannot be mounted', () =>
    inRoom(rclone, async ({ scratch, nas, bench }) => {
      const wrong = bench.spec('photos');
      const withOptions = (options: Record<string, string>): typeof wrong => ({
        ...wrong,
        connection: { ...wrong.connection, options: { ...wrong.connection.options, ...options } },
      });
      await assert.rejects(
        bench.mounter.probe(withOptions({ pass: 'wrong' }), deadline(10_000)),
        /refused the user name or password/,
      );
      await assert.rejects(
        bench.mounter.probe(bench.spec('x', { remote_path: 'not/there' }), deadline(10_000)),
        /is not there on the remote/,
      );
      await nas.stop();
      await assert.rejects(bench.mounter.probe(wrong, deadline(10_000)), /refuses connections/);
      assert.equal(await bench.mounter.mountsWithoutRemote?.(wrong), false, 'it was never seen there');
      assert.deepEqual(await mountsBelow(scratch.root), []);
      const missing = createWorkbench(scratch, { rclone: scratch.path('no-rclone'), nas, name: 'missing' });
      await assert.rejects(
        missing.mount(missing.spec('x')),
        /rclone is not installed .*mountkeeper rclone install/,
      );
    }));

  it('sends nothing to the wrong NAS: dirty files wait for their own', () =>
    inRoom(
      rclone,
      async ({ scratch, nas, bench }) => {
        const other = await Nas.create(scratch, { name: 'other' });
        const spec = bench.spec('photos');
        const first = await bench.mount(spec);
        assert.equal(await shell('echo mine > "$1/mine.txt"', first).ended, 0);
        await first.unmount();
        // Same address for the tests' sake, another path: another place.
        await writeFile(nas.path('dir-marker'), '');
        const elsewhere = {
          ...spec,
          connection: other.connection('nas') as typeof spec.connection,
          share: { ...spec.share, remote_path: '/' },
        };
        const second = await bench.mount(elsewhere);
        assert.equal((await second.pending()).count, 0);
        assert.equal((await bench.mounter.pending('photos')).count, 1);
        await second.unmount();
        const third = await createWorkbench(scratch, { rclone, nas }).mount(spec);
        await until('the file is up where it belongs', () => nas.has('mine.txt'), { timeoutMs: 30_000 });
        assert.equal(await other.has('mine.txt'), false);
        await third.unmount();
      },
      { write_back: '1h' },
    ));
});
