import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Mount } from 'mountkeeper';
import { isMounted } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { rightsOfRoots, rootsRights } from '../../support/platform/rights.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { createWorkbench } from '../../support/mount/workbench.ts';
import type { Workbench } from '../../support/mount/workbench.ts';
import { unlessRoot } from '../../runner/skips.ts';

const sh = async (script: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)('sh', ['-c', script, 'sh', ...args], { timeout: 20_000 })).stdout;

const rclone = currentRclone();

describe('a mount by rclone', () => {
  let scratch: Scratch;
  let nas: Nas;
  let bench: Workbench;
  let mount: Mount;

  before(async () => {
    scratch = await createScratch('mount');
    nas = await Nas.create(scratch, { files: { 'photos/a.bin': 300_000, 'photos/sub/b.bin': 10 } });
    bench = createWorkbench(scratch, { rclone, nas });
    mount = await bench.mount(bench.spec('照 片', { remote_path: 'photos' }));
    scratch.defer(() => mount.unmount());
  });
  after(() => scratch.close());

  const deadline = (ms = 5_000): AbortSignal => AbortSignal.timeout(ms);

  it("shows the remote's files byte for byte", async () => {
    assert.equal(
      await sh('sha256sum < "$1"/a.bin', mount.plan.mountPoint).then((text) => text.slice(0, 64)),
      await nas.checksum('photos/a.bin'),
    );
  });

  it('keeps the cache under a path without a hash of the options', async () => {
    await readFile(`${scratch.path('bench')}/cache/照 片/vfs/nas/photos/a.bin`);
  });

  it('shows no secret on its command line', async () => {
    assert.doesNotMatch(await readFile(`/proc/${mount.pid}/cmdline`, 'utf8'), /pass-Wort|RC_PASS|pass=/);
  });

  it('leaves no configuration with secrets behind', async () => {
    await assert.rejects(readFile(`${scratch.path('bench')}/state/mount/照 片.conf`), { code: 'ENOENT' });
  });

  it('has one capability, that to mount, and gets no others', { skip: unlessRoot }, async () => {
    assert.deepEqual(await rightsOfRoots(mount.pid), rootsRights('sys_admin'));
  });

  it('counts a file from its first change until it is on the remote', async () => {
    const writer = spawn(
      'sh',
      [
        '-c',
        'exec 3> "$1/new.txt"; echo one >&3; read -r line; echo two >&3; exec 3>&-',
        'sh',
        mount.plan.mountPoint,
      ],
      { stdio: ['pipe', 'ignore', 'ignore'] },
    );
    scratch.defer(() => writer.kill('SIGKILL'));
    const ended = once(writer, 'exit');
    const seen = [
      await until('the open file is counted', async () => (await mount.stats(deadline())).dirtyFiles, {
        timeoutMs: 20_000,
        everyMs: 20,
      }),
    ];
    writer.stdin.end();
    await until(
      'it is on the remote',
      async () => {
        if (await nas.has('photos/new.txt')) return true;
        seen.push((await mount.stats(deadline())).dirtyFiles);
        return false;
      },
      { timeoutMs: 30_000, everyMs: 0 },
    );
    assert.deepEqual(await ended, [0, null]);
    assert.ok(
      seen.slice(0, -2).every((count) => count > 0),
      `counts seen: ${seen.join(' ')}`,
    );
    await until('nothing is dirty', async () => (await mount.stats(deadline())).dirtyFiles === 0, {
      timeoutMs: 20_000,
    });
    assert.equal(await readFile(nas.path('photos/new.txt'), 'utf8'), 'one\ntwo\n');
  });

  it('limits bandwidth, checks the remote and answers', async () => {
    await mount.setBandwidth({ up: 1_048_576, down: 0 }, deadline());
    await mount.setBandwidth({ up: 0, down: 0 }, deadline());
    await mount.checkRemote(deadline());
    await mount.checkAlive(3_000);
  });

  it('lets in nobody but its owner', { skip: unlessRoot }, async () => {
    await assert.rejects(
      sh('setpriv --reuid 65534 --regid 65534 --clear-groups ls "$1"', mount.plan.mountPoint),
    );
  });

  it('refuses a mount point that is in use or not empty', async () => {
    await assert.rejects(
      bench.mount(bench.spec('other', { mount_point: mount.plan.mountPoint })),
      /already in use/,
    );
    await mkdir(scratch.path('full'));
    await writeFile(scratch.path('full', 'x'), '');
    await assert.rejects(
      bench.mount(bench.spec('full', { mount_point: scratch.path('full') })),
      /is not empty \("x" lies there\)/,
    );
  });

  it('is unmounted without a trace', async () => {
    await mount.unmount();
    assert.equal(await isMounted(mount.plan.mountPoint), false);
    assert.equal(await sh('ls -A "$1"', mount.plan.mountPoint), '');
    await assert.rejects(sh('echo lost > "$1/lost"', mount.plan.mountPoint));
  });
});
