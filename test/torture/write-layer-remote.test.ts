/** The remote's side of a write layer, by a real rclone against real servers. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { RemoteFailure } from 'mountkeeper';
import { createClock } from '../../core/platform/clock.ts';
import { createRcClient } from '../../plugins/mount/rclone/control/remote-control.ts';
import { RcloneFiles } from '../../plugins/mount/rclone/remote-files.ts';
import { Nas } from '../support/nas/nas.ts';
import { freePort } from '../support/platform/free-port.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';

const rclone = currentRclone();
const clock = createClock();
const signal = (): AbortSignal => clock.deadline(20_000);

interface Control {
  readonly address: { port: number; user: string; password: string };
  readonly child: ChildProcess;
}

/** An rclone that mounts nothing: the calls are the same. */
async function control(scratch: Scratch, options: Readonly<Record<string, string>>): Promise<Control> {
  const port = await freePort();
  const env: Record<string, string | undefined> = {
    PATH: process.env['PATH'],
    HOME: scratch.root,
    RCLONE_RC_USER: 'u',
    RCLONE_RC_PASS: 'p',
  };
  for (const [name, value] of Object.entries(options)) env[`RCLONE_CONFIG_NAS_${name.toUpperCase()}`] = value;
  const child = spawn(
    rclone ?? '',
    [
      'rcd',
      `--rc-addr=127.0.0.1:${port}`,
      '--config=',
      '--contimeout=3s',
      '--timeout=5s',
      '--low-level-retries=1',
      '--retries=1',
    ],
    { stdio: 'ignore', env },
  );
  scratch.defer(() => child.kill('SIGKILL'));
  const address = { port, user: 'u', password: 'p' };
  const rc = createRcClient(address);
  await until('the remote control answers', () => rc.call('core/pid', {}, signal()).then(() => true), {
    timeoutMs: 10_000,
  });
  rc.close();
  return { address, child };
}

async function obscured(text: string): Promise<string> {
  const child = spawn(rclone ?? '', ['obscure', '-'], { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.end(text);
  let answer = '';
  child.stdout.on('data', (piece: Buffer) => (answer += piece.toString()));
  await once(child, 'close');
  return answer.trim();
}

for (const type of ['sftp', 'webdav', 'local'] as const) {
  describe(`files of a remote over ${type}`, () => {
    let scratch: Scratch;
    let nas: Nas;
    let files: RcloneFiles;
    let address: Control['address'];

    const local = async (
      name: string,
      text: string,
      modified = new Date('2024-05-06T07:08:09Z'),
    ): Promise<string> => {
      const file = scratch.path('upper', name);
      await mkdir(scratch.path('upper'), { recursive: true });
      await writeFile(file, text);
      await utimes(file, modified, modified);
      return file;
    };
    const onNas = (path: string): Promise<string> => readFile(nas.path(path), 'utf8');

    before(async () => {
      scratch = await createScratch(`remote-${type}`);
      nas = await Nas.create(scratch, {
        protocol: type === 'local' ? 'sftp' : type,
        start: type !== 'local',
      });
      await mkdir(nas.path('share'), { recursive: true });
      const { options = {} } = nas.connection('nas');
      const given = options as Readonly<Record<string, string>>;
      const settings =
        type === 'local' ? { type } : { type, ...given, pass: await obscured(given['pass'] ?? '') };
      ({ address } = await control(scratch, settings));
      files = new RcloneFiles({
        address,
        fs: type === 'local' ? `nas:${nas.path('share')}` : 'nas:share',
        type,
        clock,
      });
    });
    after(async () => {
      files.close();
      await scratch.close();
    });

    it('brings a file up, with its time where the backend keeps times, and tells of it', async () => {
      const file = await local('a', 'one');
      await files.upload(file, 'new folder/a ü：.txt', { signal: signal() });
      assert.equal(await onNas('share/new folder/a ü：.txt'), 'one');
      const entry = await files.stat('new folder/a ü：.txt', { signal: signal(), hash: true });
      assert.ok(entry?.kind === 'file');
      assert.equal(entry.version.bytes, 3);
      assert.equal(files.precisionMs, { sftp: 1000, webdav: Infinity, local: 1e-6 }[type]);
      if (type !== 'webdav') assert.equal(entry.version.modifiedMs, Date.parse('2024-05-06T07:08:09Z'));
      if (type === 'local')
        assert.deepEqual(entry.version.hash, { kind: 'md5', value: 'f97c5d29941bfb1b2fdab0874906ab82' });
    });

    it('sends a file whose size and time are as before, for its content may be another', async () => {
      await files.upload(await local('b', 'aaa'), 'b', { signal: signal() });
      await files.upload(await local('b', 'bbb'), 'b', { signal: signal(), isReplacing: true });
      assert.equal(await onNas('share/b'), 'bbb');
    });

    if (type !== 'webdav')
      it('sends what is new, and leaves what it finds, a file or a folder', async () => {
        assert.equal(files.leavesTaken, true);
        const small = await local('new', 'of users');
        const [empty, large] = [await local('empty', ''), scratch.path('upper', 'large')];
        await writeFile(large, Buffer.alloc(5 * 1_048_576, 1));
        assert.equal(await files.uploadNew(small, 'made/new', { signal: signal() }), true);
        assert.equal(await files.uploadNew(empty, 'made/empty', { signal: signal() }), true);
        assert.equal(await files.uploadNew(large, 'made/large', { signal: signal() }), true);
        assert.equal(await onNas('share/made/new'), 'of users');
        assert.equal((await stat(nas.path('share/made/large'))).size, 5 * 1_048_576);
        for (const theirs of ['of other', 'of others, longer']) {
          await writeFile(nas.path('share/made/new'), theirs);
          assert.equal(await files.uploadNew(small, 'made/new', { signal: signal() }), false);
          assert.equal(await onNas('share/made/new'), theirs);
        }
        assert.equal(await files.uploadNew(large, 'made/new', { signal: signal() }), false);
        await mkdir(nas.path('share/made/folder'));
        await assert.rejects(files.uploadNew(small, 'made/folder', { signal: signal() }));
        assert.deepEqual((await readdir(nas.path('share/made'))).sort(), ['empty', 'folder', 'large', 'new']);
      });

    it('ends a small upload, too, before it says that it is given up', async () => {
      await files.upload(await local('s', 'former'), 's', { signal: signal() });
      const small = scratch.path('upper', 'small');
      await writeFile(small, Buffer.alloc(3 * 1_048_576, 1));
      const rc = createRcClient(address);
      await rc.call('core/bwlimit', { rate: '100k' }, signal());
      await assert.rejects(files.upload(small, 's', { signal: clock.deadline(1_500), isReplacing: true }));
      const { runningIds } = await rc.call<{ runningIds: number[] }>('job/list', {}, signal());
      // The question itself is a job, too.
      const groups = await Promise.all(
        runningIds.map((jobid) =>
          rc.call<{ group: string; finished: boolean }>('job/status', { jobid }, signal()),
        ),
      );
      assert.deepEqual(
        groups.filter(({ group, finished }) => group.startsWith('mountkeeper-write') && !finished),
        [],
      );
      await rc.call('core/bwlimit', { rate: 'off' }, signal());
      rc.close();
      assert.equal(await onNas('share/s'), 'former');
      await files.upload(await local('s', 'after'), 's', { signal: signal(), isReplacing: true });
      assert.equal(await onNas('share/s'), 'after');
    });

    it('ends a small upload whose daemon is gone with its connection', async () => {
      await files.upload(await local('g', 'former'), 'g', { signal: signal() });
      const small = scratch.path('upper', 'gone');
      await writeFile(small, Buffer.alloc(3 * 1_048_576, 1));
      const [rc, gone] = [createRcClient(address), createRcClient(address)];
      await rc.call('core/bwlimit', { rate: '100k' }, signal());
      const cut = gone.call(
        'operations/copyfile',
        {
          srcFs: ':local:/',
          srcRemote: small.slice(1),
          dstFs: type === 'local' ? `nas:${nas.path('share')}` : 'nas:share',
          dstRemote: 'g',
          _group: 'mountkeeper-write/former/2',
        },
        clock.deadline(1_000),
      );
      await assert.rejects(cut);
      const next = new RcloneFiles({
        address,
        fs: type === 'local' ? `nas:${nas.path('share')}` : 'nas:share',
        type,
        clock,
      });
      await next.makeFolder('whatever', { signal: signal() });
      await rc.call('core/bwlimit', { rate: 'off' }, signal());
      await next.upload(await local('g', 'newer'), 'g', { signal: signal(), isReplacing: true });
      await clock.sleep(500);
      assert.equal(await onNas('share/g'), 'newer');
      next.close();
      rc.close();
    });

    it('leaves the former version as it is, and nothing beside it, when an upload is ended', async () => {
      await files.upload(await local('c', 'former'), 'c', { signal: signal() });
      const big = scratch.path('upper', 'big');
      await writeFile(big, Buffer.alloc(64 * 1_048_576, 1));
      const rc = createRcClient(address);
      await rc.call('core/bwlimit', { rate: '8M' }, signal());
      const end = new AbortController();
      let told = 0;
      await assert.rejects(
        files.upload(big, 'c', {
          signal: end.signal,
          onProgress: (bytes) => {
            told = bytes;
            if (bytes > 0) end.abort(new Error('enough'));
          },
        }),
        /enough/,
      );
      await rc.call('core/bwlimit', { rate: 'off' }, signal());
      assert.ok(told > 0);
      const { jobids } = await rc.call<{ jobids: number[] }>('job/list', {}, signal());
      const states = await Promise.all(
        jobids.map((jobid) => rc.call<{ finished: boolean }>('job/status', { jobid }, signal())),
      );
      assert.deepEqual(
        states.filter(({ finished }) => !finished),
        [],
      );
      rc.close();
      assert.equal(await onNas('share/c'), 'former');
      assert.deepEqual(
        (await readdir(nas.path('share'))).filter((name) => /partial|mountkeeper/.test(name)),
        [],
      );
    });

    if (type !== 'local')
      it('clears away what an upload that the NAS broke off has left, and nothing of others', async () => {
        const big = scratch.path('upper', 'cut');
        await writeFile(big, Buffer.alloc(64 * 1_048_576, 1));
        const rc = createRcClient(address);
        await rc.call('core/bwlimit', { rate: '8M' }, signal());
        let stopping: Promise<void> | undefined;
        await assert.rejects(
          files.upload(big, 'cut', {
            signal: signal(),
            onProgress: (bytes) => {
              if (bytes > 0) stopping ??= nas.stop();
            },
          }),
        );
        await stopping;
        await rc.call('core/bwlimit', { rate: 'off' }, signal());
        rc.close();
        await nas.start();
        const others = ['cut.0a1b2c3d.partial', 'cut.mkv', 'cut.0a1b2c3d.mk00000000'];
        for (const name of others) await writeFile(nas.path('share', name), 'of others');
        const beside = async (): Promise<string[]> =>
          (await readdir(nas.path('share'))).filter((name) => /^cut\.|mountkeeper/.test(name)).sort();
        if (type === 'sftp')
          assert.equal((await beside()).length, others.length + 1, 'there is something to clear away');
        await files.upload(await local('cut', 'whole'), 'cut', { signal: signal() });
        await files.clearLeftovers('cut', { signal: signal() });
        assert.deepEqual(await beside(), [...others].sort());
        assert.equal(await onNas('share/cut'), 'whole');
      });

    it('ends what a daemon that is gone has left at work, before it changes anything', async () => {
      await files.upload(await local('d', 'former'), 'd', { signal: signal() });
      const big = scratch.path('upper', 'big');
      await writeFile(big, Buffer.alloc(64 * 1_048_576, 1));
      const rc = createRcClient(address);
      await rc.call('core/bwlimit', { rate: '4M' }, signal());
      const { jobid } = await rc.call<{ jobid: number }>(
        'operations/copyfile',
        {
          srcFs: ':local:/',
          srcRemote: big.slice(1),
          dstFs: type === 'local' ? `nas:${nas.path('share')}` : 'nas:share',
          dstRemote: 'd',
          _async: true,
          _group: 'mountkeeper-write/former/1',
        },
        signal(),
      );
      const next = new RcloneFiles({
        address,
        fs: type === 'local' ? `nas:${nas.path('share')}` : 'nas:share',
        type,
        clock,
      });
      await next.makeFolder('whatever', { signal: signal() });
      assert.equal((await rc.call<{ finished: boolean }>('job/status', { jobid }, signal())).finished, true);
      await rc.call('core/bwlimit', { rate: 'off' }, signal());
      await next.upload(await local('d', 'newer'), 'd', { signal: signal(), isReplacing: true });
      assert.equal(await onNas('share/d'), 'newer');
      next.close();
      rc.close();
    });

    it('moves files and whole folders, empty ones and hidden ones with them', async () => {
      await files.upload(await local('e', 'e'), 'from/sub/e', { signal: signal() });
      await files.makeFolder('from/empty', { signal: signal() });
      await files.moveFolder('from', 'to/there', { signal: signal() });
      assert.deepEqual((await readdir(nas.path('share/to/there'))).sort(), ['empty', 'sub']);
      assert.equal(await files.stat('from', { signal: signal() }), undefined);
      await files.moveFile('to/there/sub/e', 'to/e2', { signal: signal() });
      assert.equal(await onNas('share/to/e2'), 'e');
      assert.equal(await files.stat('to/there/sub/e', { signal: signal() }), undefined);
    });

    it('lists a folder, and tells what is not there', async () => {
      await files.upload(await local('f', 'ff'), 'list/f', { signal: signal() });
      await files.makeFolder('list/g', { signal: signal() });
      const entries = await files.list('list', { signal: signal() });
      assert.deepEqual(entries?.map(({ name, kind }) => [name, kind]).sort(), [
        ['f', 'file'],
        ['g', 'folder'],
      ]);
      assert.equal(await files.list('nothing', { signal: signal() }), undefined);
      assert.equal(await files.stat('nothing/below', { signal: signal() }), undefined);
      assert.deepEqual(await files.stat('list', { signal: signal() }), { name: 'list', kind: 'folder' });
      assert.deepEqual(await files.stat('', { signal: signal() }), { name: '', kind: 'folder' });
    });

    it('deletes a file, and a folder only when it is empty; what is gone already is well', async () => {
      await files.upload(await local('h', 'h'), 'full/h', { signal: signal() });
      await assert.rejects(files.removeFolder('full', { signal: signal() }));
      assert.equal(await onNas('share/full/h'), 'h');
      await files.deleteFile('full/h', { signal: signal() });
      await files.deleteFile('full/h', { signal: signal() });
      await files.removeFolder('full', { signal: signal() });
      await files.removeFolder('full', { signal: signal() });
      await assert.rejects(stat(join(nas.path('share'), 'full')), /ENOENT/);
    });

    if (type !== 'local')
      it('says whether the remote was silent', async () => {
        await nas.stop();
        const file = await local('i', 'i');
        // All are looked after from the start: one that fails before its turn would be nobody's.
        const calls = [
          files.stat('b', { signal: signal() }),
          files.list('', { signal: signal() }),
          files.upload(file, 'i', { signal: signal() }),
        ];
        await Promise.all(
          calls.map((call) => assert.rejects(call, (error: RemoteFailure) => error.remote === 'silent')),
        );
        await nas.start();
        assert.equal((await files.stat('b', { signal: signal() }))?.kind, 'file');
      });
  });
}
