/** What can be wrong with the machine: each said in a clear sentence, and the other shares go on. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { spawnSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { Daemon, runCli } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

describe('a fault of the machine', () => {
  let scratch: Scratch;
  let nas: Nas;
  let files: Files;

  before(async () => {
    scratch = await createScratch('faults');
    nas = await Nas.create(scratch, { files: { 'x.bin': 100_000 } });
    files = new Files(scratch);
  });
  after(() => scratch.close());

  /** The message of a share once it has failed. */
  const failure = async (daemon: Daemon, share: string): Promise<string> => {
    const failed = await until(
      `${share} is failed`,
      async () => {
        const now = await daemon.share(share);
        return now.health === 'failed' ? now : undefined;
      },
      { timeoutMs: 30_000 },
    );
    assert.equal(failed.mounted, false);
    assert.doesNotMatch(failed.health_message ?? '', /\.js:\d|goroutine|20\d\d\/\d\d\/\d\d/);
    return failed.health_message ?? '';
  };

  it('in a mount point (in use, not empty, not allowed) stops no other share, and can be mended', async () => {
    const room = scratch.path('points');
    for (const name of ['used', 'full']) await mkdir(`${room}/${name}`, { recursive: true });
    assert.equal(spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', `${room}/used`]).status, 0);
    await writeFile(`${room}/full/leaked.txt`, 'local');
    await writeFile(`${room}/file`, '');
    const share = (name: string, mountPoint: string): Record<string, string> => ({
      name,
      connection: 'nas',
      mount_point: mountPoint,
    });
    const daemon = await Daemon.create(scratch, {
      name: 'points',
      connections: [nas.connection('nas')],
      shares: [
        { name: 'good', connection: 'nas' },
        share('used', `${room}/used`),
        share('full', `${room}/full`),
        share('file', `${room}/file`),
        share('forbidden', '/proc/mountkeeper-test/x'),
      ],
    });
    await daemon.start();
    await daemon.healthy(['good']);
    assert.equal(await files.checksum(`${daemon.mountPoint('good')}/x.bin`), await nas.checksum('x.bin'));
    const { used, full, file, forbidden } = {
      used: await failure(daemon, 'used'),
      full: await failure(daemon, 'full'),
      file: await failure(daemon, 'file'),
      forbidden: await failure(daemon, 'forbidden'),
    };
    assert.equal(
      used,
      `something else (tmpfs, tmpfs) is mounted at ${room}/used; unmount it or choose another mount_point`,
    );
    assert.equal(
      full,
      `the mount point ${room}/full is not empty ("leaked.txt" lies there); ` +
        'move its contents away or choose another mount_point',
    );
    assert.match(
      file,
      new RegExp(`^the mount point ${room}/file cannot be used: cannot create directory .*: File exists$`),
    );
    assert.match(
      forbidden,
      new RegExp(
        '^the mount point /proc/mountkeeper-test/x cannot be used: ' +
          'cannot create directory .*/proc/mountkeeper-test.*: ',
      ),
    );
    await rm(`${room}/full/leaked.txt`);
    // Whoever looks into it in this very moment keeps it there.
    await until('the folder in use is free', () => spawnSync('umount', [`${room}/used`]).status === 0, {
      timeoutMs: 20_000,
    });
    for (const name of ['full', 'used']) await daemon.request('POST', `/api/reconnect/${name}`);
    await daemon.healthy(['good', 'full', 'used']);
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
  });

  it('a port that is taken is named at the start and on a change, and the old address stays', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    scratch.defer(() => taken.close());
    const blocked = await Daemon.create(scratch, {
      name: 'blocked',
      connections: [nas.connection('nas')],
      shares: [],
      sections: { web: { port } },
    });
    const daemon = await Daemon.create(scratch, {
      name: 'port',
      connections: [nas.connection('nas')],
      shares: [{ name: 'good', connection: 'nas' }],
    });
    void blocked.spawn();
    const said = await until(
      'the log names the port',
      async () => {
        const text = `${await blocked.log()}${await blocked.output()}`;
        return text.includes(`port ${port} on 127.0.0.1 is taken by another program; `) ? text : undefined;
      },
      { timeoutMs: 30_000 },
    );
    assert.doesNotMatch(said, /\.js:\d/);
    await daemon.start();
    await daemon.healthy();
    await daemon.submit(daemon.text({ sections: { web: { port } } }));
    await until(
      'the log names the port',
      async () => (await daemon.log()).includes(`port ${port} on 127.0.0.1 is taken by another program; `),
      { timeoutMs: 20_000 },
    );
    assert.equal((await daemon.get('/api/status')).status, 200);
    assert.equal((await daemon.share('good')).health, 'healthy');
    await daemon.stop();
  });

  it('rclone that is missing: the share says so and how to mend it, and comes up once it is there', async () => {
    const binary = scratch.path('bin-later/rclone');
    const daemon = await Daemon.create(scratch, {
      name: 'no-rclone',
      rclone: binary,
      connections: [nas.connection('nas')],
      shares: [{ name: 'good', connection: 'nas' }],
    });
    await daemon.start();
    assert.match(
      await failure(daemon, 'good'),
      new RegExp(
        `rclone is not installed or not at "${binary}": ` +
          'run "mountkeeper rclone install".* set mount\\.rclone to its path',
      ),
    );
    const doctor = await daemon.cli('doctor');
    assert.notEqual(doctor.code, 0);
    assert.match(doctor.stdout, /rclone is not installed or not at /);
    await mkdir(scratch.path('bin-later'));
    await symlink(await realpath(currentRclone()), binary);
    await daemon.request('POST', '/api/reconnect/good');
    await daemon.healthy();
    await daemon.stop();
  });

  it("a PATH with nothing but rclone and node: what mounts is found in the system's own folders", async () => {
    const bin = scratch.path('bare-bin');
    await mkdir(bin);
    await symlink(await realpath(currentRclone()), `${bin}/rclone`);
    await symlink(process.execPath, `${bin}/node`);
    const daemon = await Daemon.create(scratch, {
      name: 'no-fuse',
      env: { PATH: bin },
      connections: [nas.connection('nas')],
      shares: [{ name: 'good', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
    assert.equal(await files.checksum(`${daemon.mountPoint('good')}/x.bin`), await nas.checksum('x.bin'));
    assert.match((await daemon.cli('doctor')).stdout, /^ok +FUSE +\/dev\/fuse and fusermount3 are there$/m);
    await daemon.stop();
  });

  it('rclone that cannot be run, or is something else: the share says so', async () => {
    const odd = scratch.path('odd-rclone');
    await writeFile(odd, '#!/bin/sh\necho "this is no rclone" >&2\nexit 3\n');
    await chmod(odd, 0o755);
    const daemon = await Daemon.create(scratch, {
      name: 'odd',
      rclone: odd,
      connections: [nas.connection('nas')],
      shares: [{ name: 'good', connection: 'nas' }],
    });
    await daemon.start();
    assert.equal(await failure(daemon, 'good'), `${odd} version failed: this is no rclone`);
    await daemon.stop();
  });

  it('a second daemon on the same state folder is refused with a clear sentence', async () => {
    const first = await Daemon.create(scratch, {
      name: 'first',
      connections: [nas.connection('nas')],
      shares: [{ name: 'good', connection: 'nas' }],
    });
    await first.start();
    await first.healthy();
    const second = await runCli(['run', '--config', first.configFile]);
    assert.equal(second.code, 1);
    assert.match(
      second.stderr,
      /^mountkeeper: another mountkeeper daemon is running on the state folder \S+\/state; stop it first, or give /,
    );
    assert.equal((await first.share('good')).health, 'healthy');
    await first.stop();
  });
});
