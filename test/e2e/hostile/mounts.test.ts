/** What somebody with root does to a living mount behind the daemon's back. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chown, mkdir, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { applied, mountedAnew } from '../../support/config/applied-config.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

function run(command: string, ...args: string[]): void {
  assert.equal(spawnSync(command, args).status, 0, `${command} ${args.join(' ')}`);
}

const rclone = currentRclone();

describe("a mount behind the daemon's back", () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let files: Files;
  before(async () => {
    scratch = await createScratch('behind');
    nas = await Nas.create(scratch, { files: { 'x.bin': 50_000 } });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('is unmounted with a file open: it is mounted again, and what was written is uploaded', async () => {
    const mountPoint = daemon.mountPoint('work');
    const rclone = await daemon.rclonePid('work');
    const close = await files.holdForWriting(`${mountPoint}/held.bin`, 20_000);
    run('umount', '-l', mountPoint);
    await mountedAnew(daemon, 'work', rclone, 30_000);
    assert.equal(await files.checksum(`${mountPoint}/x.bin`), await nas.checksum('x.bin'));
    assert.match(await daemon.log(), /unmounted by somebody else/);
    await close().catch(() => undefined);
    await until('what was written is up', () => nas.has('held.bin'), { timeoutMs: 20_000 });
    await daemon.synced(60_000);
  });

  it('is covered by another mount: the status says by which, until it is gone', async () => {
    const message = async (): Promise<string> => (await daemon.share('work')).health_message ?? '';
    run('mount', '-t', 'tmpfs', 'somebody', daemon.mountPoint('work'));
    await until('the status tells', async () => /tmpfs, somebody/.test(await message()), {
      timeoutMs: 20_000,
    });
    assert.equal((await daemon.status()).all_synced, false, 'what is written there, nobody knows');
    // Whoever looks into it in this very moment keeps it there.
    await until('it is taken away', () => spawnSync('umount', [daemon.mountPoint('work')]).status === 0, {
      timeoutMs: 20_000,
    });
    await until('nothing is wrong any more', async () => (await message()) === '', { timeoutMs: 20_000 });
    assert.equal(await files.checksum(`${daemon.mountPoint('work')}/x.bin`), await nas.checksum('x.bin'));
  });

  it('is hidden by a disk over a folder above: the status says by which, until it is gone', async () => {
    const message = async (): Promise<string> => (await daemon.share('work')).health_message ?? '';
    // With a folder where the share was: whoever comes by the path finds that, and so does the daemon.
    await mkdir(scratch.path('disk', 'work'), { recursive: true });
    run('mount', '--bind', scratch.path('disk'), daemon.mountRoot);
    await until(
      'the status tells',
      async () => new RegExp(`is mounted over ${daemon.mountRoot}, above it`).test(await message()),
      { timeoutMs: 20_000 },
    );
    await until('it is taken away', () => spawnSync('umount', [daemon.mountRoot]).status === 0, {
      timeoutMs: 20_000,
    });
    await until('nothing is wrong any more', async () => (await message()) === '', { timeoutMs: 20_000 });
    assert.equal(await files.checksum(`${daemon.mountPoint('work')}/x.bin`), await nas.checksum('x.bin'));
  });

  // A mount is frozen in two ways: read-only, or covered as long as a file is open.
  for (const isHeld of [false, true]) {
    it(`is writable again after a kill of its daemon in a drain, ${isHeld ? 'a' : 'no'} file open`, async () => {
      const mountPoint = daemon.mountPoint('work');
      await applied(daemon, daemon.text({ sections: { mount: { write_back: '100s' } } }));
      const close = await files.holdForWriting(`${mountPoint}/drained.bin`, 20_000);
      if (!isHeld) await close().then(() => nas.stop());
      daemon.signal('SIGTERM');
      await until(
        'writers are refused',
        () =>
          files.write(`${mountPoint}/late.bin`, 10).then(
            () => false,
            (error: NodeJS.ErrnoException) => error.code === 'EROFS',
          ),
        { timeoutMs: 30_000 },
      );
      await daemon.end();
      if (!isHeld) await nas.start();
      await daemon.start();
      await daemon.healthy();
      await until(
        'writers are let in',
        () =>
          files.write(`${mountPoint}/again.bin`, 10).then(
            () => true,
            () => false,
          ),
        { timeoutMs: 20_000, everyMs: 300 },
      );
      if (isHeld) await close().catch(() => undefined);
    });
  }
});

describe('a cache, or a state folder, in a folder of another user', { skip: unlessRoot }, () => {
  const NOBODY = 65_534;
  let scratch: Scratch;
  let nas: Nas;
  before(async () => {
    scratch = await createScratch('led');
    nas = await Nas.create(scratch, { files: { 'x.bin': 1_000 } });
  });
  after(() => scratch.close());

  it("is not followed to where links in its place lead, and used once it is root's", async () => {
    const [disk, target] = [scratch.path('ssd'), scratch.path('machine')];
    for (const folder of [disk, target, join(target, 'etc'), join(target, 'work')])
      await mkdir(folder, { recursive: true });
    await chown(disk, NOBODY, NOBODY);
    const dir = `${disk}/cache`;
    await mkdir(join(dir, 'work', 'layer'), { recursive: true });
    await symlink(`${target}/etc`, join(dir, 'work', 'layer', 'upper'));
    await symlink(join(target, 'work'), join(dir, 'work', 'layer', 'work'));
    const daemon = await Daemon.create(scratch, {
      rclone,
      name: 'led',
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: { cache: { dir } },
    });
    await daemon.start();
    const said = await until(
      'the share says why it is down',
      async () => {
        const { health, health_message: message } = await daemon.share('work');
        return health === 'failed' ? message : undefined;
      },
      { timeoutMs: 30_000 },
    );
    assert.match(said, /ssd belongs to user 65534.*would follow as root.*choose a cache\.dir/);
    assert.deepEqual(await readdir(`${target}/etc`), []);
    assert.deepEqual(await readdir(join(target, 'work')), []);
    assert.deepEqual(await readdir(dir), ['work'], 'nothing was written there');
    assert.match((await daemon.cli('doctor')).stdout, /ssd belongs to user 65534/);
    await chown(disk, 0, 0);
    await rm(join(dir, 'work'), { recursive: true });
    assert.equal((await daemon.cli('reconnect', 'work')).code, 0);
    await daemon.healthy();
    // A version that noted no disks has mounted it: whoever adopts it does.
    const noted = join(daemon.stateDir, 'mount', 'cache-disks.jsonl');
    process.kill(daemon.pid, 'SIGKILL');
    await daemon.exit(10_000);
    await rm(noted);
    await daemon.start();
    await until('the disk is noted', async () => (await readFile(noted, 'utf8')).includes(dir), {
      timeoutMs: 20_000,
    });
    await daemon.healthy();
    await daemon.stop();
  });

  it('keeps the daemon from its start where it is the state folder, and tells what to do', async () => {
    const home = scratch.path('home');
    await mkdir(`${home}/state`, { recursive: true });
    await chown(home, NOBODY, NOBODY);
    const daemon = await Daemon.create(scratch, {
      name: 'led-state',
      connections: [nas.connection('nas')],
      shares: [],
      sections: { supervisor: { state_dir: `${home}/state` } },
    });
    assert.notEqual((await daemon.spawn()).code, 0);
    const said = /home belongs to user 65534.*mend that with chown and chmod, or move the folder/;
    assert.match(await daemon.output(), said);
    assert.deepEqual(await readdir(`${home}/state`), []);
    assert.match((await daemon.cli('doctor')).stdout, /state folder[^]*home belongs to user 65534/);
  });
});
