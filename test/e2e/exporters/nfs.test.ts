/** Shares over NFS: what clients get and change, old handles, kills, and who is let in. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readlink, rename, symlink } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { allProcesses, isAlive } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SLOW_MACHINE } from '../../support/platform/cpu-pressure.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { ask } from '../../../plugins/nfs/health-check.ts';
import { opaque, operation, uint } from '../../../plugins/nfs/xdr.ts';
import { lock, writeUnstable } from '../../support/clients/nfs-file.ts';
import { NfsClient } from '../../support/clients/nfs-session.ts';
import { NfsFault } from '../../support/clients/nfs-wire.ts';
import { exportStatus, flagged, localFile, runClient, sumOf } from '../../support/exports/client-programs.ts';

const PHOTOS = '照片 Photos';
const NOT_THERE = 2;
/** All that a path may hold and a configuration could take for something else. */
const ODD = "odd #1; {x} = $y [z] 'q' %d & co";
const STALE_STATE = 10_023;
const BOTH = 3;

describe('shares over NFS', () => {
  let scratch: Scratch;
  let nas: Nas;
  let files: Files;
  let daemon: Daemon;
  let port: number;

  const url = (path: string) => `nfs://127.0.0.1/${path}?version=4&nfsport=${port}`;
  const list = (share: string) => runClient('nfs-ls', [url(share)], 10_000);
  const server = async () =>
    (await allProcesses()).find(
      (one) => one.args[0]?.endsWith('ganesha.nfsd') === true && one.command.includes(daemon.stateDir),
    )?.pid;
  const question = (...operations: Buffer[]) =>
    ask({ host: '127.0.0.1', port }, operations, AbortSignal.timeout(3_000));
  /** The handle that a client of this machine gets for a file. */
  const handleOf = async (share: string, file: string): Promise<Buffer> => {
    const { status, results } = await question(
      operation.putRoot(),
      operation.lookup(share),
      operation.lookup(file),
      operation.getHandle(),
    );
    assert.equal(status, 0, `status ${status} for ${file}`);
    const length = results.readUInt32BE(4 * 8);
    return results.subarray(4 * 9, 4 * 9 + length);
  };
  /** The beginning of the file, or the error's number. */
  const readBy = async (handle: Buffer): Promise<string | number> => {
    const { status, results } = await question(operation.putHandle(handle), operation.read(16));
    return status === 0 ? results.toString('latin1', 4 * 6, 4 * 6 + results.readUInt32BE(4 * 5)) : status;
  };

  before(async () => {
    scratch = await createScratch('nfs');
    nas = await Nas.create(scratch, {
      files: {
        'photos/from nas.bin': 300_000,
        'team/a': 1_000,
        'team/one': 100,
        'team/two': 100,
        'team/three': 100,
        'archive/old.bin': 1_000,
      },
    });
    files = new Files(scratch);
    // What lies outside, by way of the NAS's own links.
    await symlink('/etc/passwd', `${nas.dir}/team/link`);
    await symlink('/etc', `${nas.dir}/team/links`);
    port = await freePort();
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [
        { name: PHOTOS, connection: 'nas', remote_path: 'photos' },
        { name: 'team', connection: 'nas', remote_path: 'team' },
        {
          name: 'archive',
          connection: 'nas',
          remote_path: 'archive',
          read_only: true,
          mount_point: scratch.path(ODD),
        },
        { name: 'hidden', connection: 'nas', remote_path: 'team', protocols: ['smb'] },
      ],
      sections: { nfs: { enabled: true, port, allowed_clients: ['127.0.0.1', '::1'] } },
    });
    await daemon.start();
    await daemon.healthy();
    await until('NFS is served', async () => (await exportStatus(daemon)).nfs_exported, {
      timeoutMs: 30_000,
    });
    for (const share of [PHOTOS, 'team', 'archive'])
      await until(`${share} is shown`, async () => (await list(share)).code === 0, { timeoutMs: 30_000 });
  });
  after(() => scratch.close());

  it('gives files back byte for byte, and refuses what does not belong', async () => {
    const read = await runClient('nfs-cp', [url(`${PHOTOS}/from nas.bin`), scratch.path('back')]);
    assert.equal(read.code, 0, read.output);
    assert.equal(await sumOf(scratch.path('back')), await nas.checksum('photos/from nas.bin'));
    const { path } = await localFile(scratch, 'small', 2_000);
    assert.notEqual((await list('hidden')).code, 0);
    await runClient('nfs-cp', [path, url('archive/new.bin')]);
    assert.equal(await nas.has('archive/new.bin'), false);
    assert.doesNotMatch((await list('archive')).output, /new\.bin/);
    for (const way of ['..', '../../etc/passwd', 'link', 'links/passwd'])
      assert.notEqual((await runClient('nfs-cp', [url(`team/${way}`), scratch.path('stolen')])).code, 0, way);
    const parent = await question(
      operation.putRoot(),
      operation.lookup('team'),
      operation.lookup('..'),
      operation.lookup('..'),
      operation.lookup('etc'),
      operation.getHandle(),
    );
    assert.notEqual(parent.status, 0);
    assert.equal(
      (
        await question(
          operation.putRoot(),
          operation.lookup('team'),
          operation.lookup('link'),
          operation.getHandle(),
        )
      ).status,
      NOT_THERE,
    );
  });

  it('lets in every user of an allowed machine as the owner of the mounts', async () => {
    const { path } = await localFile(scratch, 'anybody', 2_000);
    for (const uid of [0, 65_534, 12_345]) {
      const sent = await runClient(
        'nfs-cp',
        [path, `${url(`team/by ${uid}`)}&uid=${uid}&gid=${uid}`],
        20_000,
      );
      assert.equal(sent.code, 0, sent.output);
      assert.equal(
        (
          await runClient('stat', ['-c', '%u', `${daemon.mountPoint('team')}/by ${uid}`], 10_000)
        ).output.trim(),
        String(process.getuid?.()),
      );
    }
  });

  it('brings files that clients overwrote to the NAS within 15 s', async () => {
    const sums = new Map<string, string>();
    for (let index = 0; index < 50; index += 1) {
      const { path } = await localFile(scratch, `over-${index}`, 2_000);
      const { code, output } = await runClient('nfs-cp', [path, url(`team/over ${index}.bin`)]);
      assert.equal(code, 0, output);
    }
    for (let index = 0; index < 50; index += 1) {
      const content = randomBytes(40_000);
      const { status } = await question(
        operation.putRoot(),
        operation.lookup('team'),
        operation.lookup(`over ${index}.bin`),
        write(content),
      );
      assert.equal(status, 0);
      sums.set(`team/over ${index}.bin`, createHash('sha256').update(content).digest('hex'));
    }
    await until(
      'all are on the NAS',
      async () => {
        for (const [name, sum] of sums)
          if (!(await nas.has(name)) || (await nas.checksum(name)) !== sum) return false;
        return true;
      },
      { timeoutMs: 15_000, everyMs: 300 },
    );
    assert.equal(
      await files.checksum(`${daemon.mountPoint('team')}/over 3.bin`),
      sums.get('team/over 3.bin'),
    );
  });

  it('shows by an old handle the same file or none, over ten rclones and a restart of the daemon', async () => {
    const names = ['one', 'two', 'three'];
    for (const name of names)
      assert.equal((await runClient('test', ['-s', `${daemon.mountPoint('team')}/${name}`])).code, 0);
    const now = (name: string): Promise<Buffer> =>
      until(`the share gives a handle for ${name}`, () => handleOf('team', name), { timeoutMs: 30_000 });
    const known: { readonly name: string; readonly handle: Buffer }[] = [];
    const begins = new Map<string, string | number>();
    for (const name of names) begins.set(name, await readBy(await now(name)));
    assert.equal(new Set(begins.values()).size, names.length);
    /** Handles that lead to their file. Rejects when one leads to another's. */
    const right = async (): Promise<number> => {
      const answers = await Promise.all(known.map(({ handle }) => readBy(handle)));
      const shown = answers.map((answer, index) => [answer, begins.get(known[index]?.name ?? '')] as const);
      // An error may be one of another rclone that is just coming.
      const wrong = shown.filter(([answer, own]) => typeof answer === 'string' && answer !== own);
      assert.deepEqual(wrong, [], 'an old handle showed another file');
      return shown.filter(([answer, own]) => answer === own).length;
    };
    for (let round = 0; round < 10; round += 1) {
      // In another order each time, so that the numbers that a file system gives out mean other files.
      for (const name of round % 2 === 0 ? ['one', 'three', 'two'] : ['two', 'one', 'three'])
        known.push({ name, handle: await now(name) });
      const pid = await daemon.rclonePid('team');
      if (round === 5) await daemon.end();
      process.kill(pid, 'SIGKILL');
      if (round === 5) await daemon.start();
      await until('another rclone is there', async () => (await daemon.rclonePid('team')) !== pid, {
        timeoutMs: 30_000,
      });
      await until('all handles lead to their files', async () => (await right()) === known.length, {
        timeoutMs: 30_000,
      });
    }
  });

  it('serves again within 3 s of a kill -9 without a grace period, and survives one of the daemon', async () => {
    const old = await server();
    assert.ok(old !== undefined);
    const opened = async (deny: number) => {
      const client = await NfsClient.connect(port);
      const file = await client.open(`${PHOTOS}/from nas.bin`, 'open', { access: BOTH, deny });
      await lock(client, file, { offset: 0, bytes: 10 });
      return { client, file };
    };
    const former = await opened(BOTH);
    process.kill(old, 'SIGKILL');
    const killed = performance.now();
    await until(
      'it serves again',
      async () =>
        (await question(operation.putRoot(), operation.lookup(PHOTOS), operation.getType())).status === 0,
      { timeoutMs: 30_000 },
    );
    const { client } = await opened(0);
    assert.ok(
      performance.now() - killed < 3_000 * SLOW_MACHINE,
      `back after ${Math.round(performance.now() - killed)} ms`,
    );
    await assert.rejects(
      writeUnstable(client, former.file, 0, Buffer.from('mine')),
      (error) => error instanceof NfsFault && error.status === STALE_STATE,
    );
    for (const one of [client, former.client]) one.close();
    // It may need a moment to give its memory back.
    await until('nothing is left of the former one', () => !isAlive(old), { timeoutMs: 20_000 });
    const pid = await server();
    const handle = await handleOf(PHOTOS, 'from nas.bin');
    await daemon.end();
    assert.equal(typeof (await readBy(handle)), 'string');
    await daemon.start();
    await until('NFS is said to be served', async () => (await exportStatus(daemon)).nfs_exported, {
      timeoutMs: 20_000,
    });
    assert.equal(await server(), pid);
    assert.equal(typeof (await readBy(handle)), 'string');
  });

  it('says so while it is not certain whom the server lets in', async () => {
    const isTold = async (): Promise<boolean> =>
      /did not say that it has read its exports/.test((await daemon.get('/api/notices')).text);
    assert.equal(await isTold(), false);
    // What it says goes where nobody looks for it.
    const log = await readlink(`/proc/${await server()}/fd/2`);
    await rename(log, `${log}.away`);
    const allowed_clients = ['127.0.0.1', '::1', '192.0.2.1'];
    const { body } = await daemon.submit(daemon.text({ sections: { nfs: { allowed_clients } } }));
    assert.deepEqual([body.ok, body.still_open], [true, ['nfs']]);
    await until('it is told', isTold, { timeoutMs: 30_000 });
    await flagged(daemon, { nfs_exported: false });
    for (let look = 0; look < 20; look += 1) {
      assert.equal((await exportStatus(daemon)).nfs_exported, false);
      await sleep(250);
    }
    await rename(`${log}.away`, log);
    await until('it is certain', async () => !(await isTold()), { timeoutMs: 30_000 });
    await flagged(daemon, { nfs_exported: true });
  });

  it('lets other clients in or out without a new mount, and is off when switched off', async () => {
    const handle = await handleOf(PHOTOS, 'from nas.bin');
    await daemon.submit(daemon.text({ sections: { nfs: { allowed_clients: ['192.0.2.77'] } } }));
    await until(
      'this machine is refused',
      async () =>
        (await question(operation.putRoot(), operation.lookup(PHOTOS), operation.getType())).status !== 0,
      { timeoutMs: 30_000 },
    );
    assert.equal(typeof (await readBy(handle)), 'number');
    for (const allowed_clients of [
      ['0.0.0.0/0'],
      ['192.0.2.77', '127.0.0.5/8', 'fe80::1/10', 'fd00::/8', '2001:0db8::1', '::ffff:192.0.2.1'],
      ['::/0', '127.0.0.1'],
    ]) {
      await daemon.submit(daemon.text({ sections: { nfs: { allowed_clients } } }));
      await until(
        `this machine is let in by ${allowed_clients.join()}`,
        async () =>
          (await question(operation.putRoot(), operation.lookup(PHOTOS), operation.getType())).status === 0,
        { timeoutMs: 30_000 },
      );
      assert.equal(typeof (await readBy(handle)), 'string', 'a handle from before is still good');
      await daemon.submit(daemon.text({ sections: { nfs: { allowed_clients: ['192.0.2.77'] } } }));
      await until(
        'this machine is refused again',
        async () =>
          (await question(operation.putRoot(), operation.lookup(PHOTOS), operation.getType())).status !== 0,
        { timeoutMs: 30_000 },
      );
    }
    await daemon.submit(daemon.text({ sections: { nfs: { allowed_clients: [] } } }));
    await until(
      'it is told that nobody is let in',
      async () =>
        (await daemon.get('/api/notices')).text.includes(
          'nfs.allowed_clients is empty: no machine may mount',
        ),
      { timeoutMs: 30_000 },
    );
    await flagged(daemon, { nfs_exported: false });
    assert.notEqual(
      (await question(operation.putRoot(), operation.lookup(PHOTOS), operation.getType())).status,
      0,
      'nobody, this machine least of all',
    );
    assert.equal(typeof (await readBy(handle)), 'number');
    await daemon.submit(daemon.text({ sections: { nfs: { enabled: false } } }));
    await until('nothing of the server is left', async () => (await server()) === undefined, {
      timeoutMs: 30_000,
    });
    await flagged(daemon, { nfs_exported: false });
    assert.equal((await daemon.stop()).code, 0);
  });
});

/** From the file's beginning, without opening it, as a client of NFS 4 may. */
function write(content: Buffer): Buffer {
  const [opWrite, unstable] = [38, 0];
  return Buffer.concat([uint(opWrite), Buffer.alloc(16), Buffer.alloc(8), uint(unstable), opaque(content)]);
}
