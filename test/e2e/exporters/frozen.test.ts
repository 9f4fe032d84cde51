// @load normal
/**
 * A share that waits for its files to go up before it is mounted from another folder of the NAS, while one of them is
 * still open for writing: whoever comes by SMB, NFS, WebDAV or its path reads on, and is never shown an empty folder.
 */
import assert from 'node:assert/strict';
import { constants } from 'node:fs';
import { access, open, readFile, readdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { unlessRoot } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { exportStatus, runClient, smb } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const [NAME, PASSWORD] = ['alice', 'pw'];
const SOON = { timeoutMs: 30_000, everyMs: 200 };

describe(
  'a share that waits for its files before it is mounted from another folder',
  { skip: unlessRoot },
  () => {
    let scratch: Scratch;
    let nas: Nas;
    let daemon: Daemon;
    const ports = { smb: 0, nfs: 0, webdav: 0 };
    const share = { name: 'team', connection: 'nas', remote_path: 'team' };

    const bySmb = (command: string) => smb('team', command, { port: ports.smb, user: `${NAME}%${PASSWORD}` });
    const byNfs = (program: string, path: string, ...more: string[]) =>
      runClient(program, [`nfs://127.0.0.1/team${path}?version=4&nfsport=${ports.nfs}`, ...more]);
    const byWebdav = (path: string, ...more: string[]) =>
      runClient(
        'curl',
        [
          '-sS',
          '-w',
          '\n%{http_code}',
          '-u',
          `${NAME}:${PASSWORD}`,
          ...more,
          `http://127.0.0.1:${ports.webdav}/team/${path}`,
        ],
        45_000,
      );

    before(async () => {
      scratch = await createScratch('frozen');
      nas = await Nas.create(scratch, { files: { 'team/a': 10, 'other/x': 10 } });
      await writeFile(nas.path('team', 'note'), 'from the NAS');
      for (const name of ['smb', 'nfs', 'webdav'] as const) ports[name] = await freePort();
      const users = [{ name: NAME, password: PASSWORD }];
      daemon = await Daemon.create(scratch, {
        connections: [nas.connection('nas')],
        shares: [share],
        sections: {
          bandwidth: { up: '50K' },
          smb: { enabled: true, port: ports.smb, users },
          nfs: { enabled: true, port: ports.nfs, allowed_clients: ['127.0.0.1'] },
          webdav: { enabled: true, port: ports.webdav, users },
        },
      });
      await daemon.start();
      await daemon.healthy();
      const isServed = async () => {
        const {
          smbd_running: isSmb,
          nfs_exported: isNfs,
          webdav_running: isDav,
        } = await exportStatus(daemon);
        return (
          isSmb && isNfs && isDav && (await byNfs('nfs-ls', '')).code === 0 && (await bySmb('ls')).code === 0
        );
      };
      await until('all is served', isServed, SOON);
    });
    after(() => scratch.close());

    it('is read on by everybody, and takes nothing new', { timeout: 240_000 }, async () => {
      const mountPoint = daemon.mountPoint('team');
      const writer = await open(`${mountPoint}/edit`, 'w');
      await writer.write('first, ');
      await writeFile(`${mountPoint}/film`, Buffer.alloc(3_000_000, 'f'));
      const former = await daemon.bindfsPid('team');
      const moved = { shares: [{ ...share, remote_path: 'other' }] };
      assert.equal((await daemon.submit(daemon.text(moved))).body.ok, true);
      const isReadOnly = () =>
        access(mountPoint, constants.W_OK).then(
          () => false,
          () => true,
        );
      await until('it takes nothing more', isReadOnly, SOON);
      assert.equal(
        await daemon.bindfsPid('team'),
        former,
        'it was mounted anew already: the test shows nothing',
      );

      assert.deepEqual((await readdir(mountPoint)).sort(), ['a', 'edit', 'film', 'note']);
      assert.equal(await readFile(`${mountPoint}/note`, 'utf8'), 'from the NAS');
      await assert.rejects(writeFile(`${mountPoint}/new`, ''), { code: 'EROFS' });
      assert.match((await bySmb('ls')).output, /note/);
      assert.match((await bySmb(`put ${daemon.configFile} new`)).output, /NT_STATUS_/);
      assert.match((await byNfs('nfs-ls', '')).output, /note/);
      assert.equal((await byNfs('nfs-cat', '/note')).output, 'from the NAS');
      assert.equal((await byWebdav('note')).output, 'from the NAS\n200');
      assert.match((await byWebdav('', '-X', 'PROPFIND', '-H', 'Depth: 1')).output, /note[^]*207$/);
      assert.match((await byWebdav('new', '-T', daemon.configFile)).output, /can only be read[^]*503$/);

      await writer.write('last');
      await writer.close();
      await daemon.request('POST', '/api/bwlimit', { up: '10M' });
      await until('it shows its new folder', async () => (await readdir(mountPoint)).join() === 'x', {
        timeoutMs: 120_000,
        everyMs: 200,
      });
      assert.equal(await readFile(nas.path('team', 'edit'), 'utf8'), 'first, last');
      assert.equal((await readFile(nas.path('team', 'film'))).length, 3_000_000);
      assert.match((await byWebdav('new', '-T', daemon.configFile)).output, /201$/);
    });
  },
);
