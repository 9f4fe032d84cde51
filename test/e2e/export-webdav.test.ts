import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../support/daemon.ts';
import { Files } from '../support/files.ts';
import { Nas } from '../support/nas.ts';
import { freePort } from '../support/ports.ts';
import { rclones } from '../support/rclones.ts';
import { createScratch } from '../support/scratch.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { exportStatus, localFile, runClient, sumOf } from './export-support.ts';

const PHOTOS = '照片 Photos';

for (const rclone of rclones()) {
  describe(`shares over WebDAV, with ${rclone.label}`, () => {
    let scratch: Scratch;
    let nas: Nas;
    let files: Files;
    let daemon: Daemon;
    let port: number;

    const url = (share: string, path = ''): string => `http://127.0.0.1:${port}/${encodeURIComponent(share)}/${path}`;
    const curl = (...args: string[]) => runClient('curl', ['-sS', '-u', 'alice:wonder:land', '-w', '\n%{http_code}', ...args]);

    before(async () => {
      scratch = await createScratch('dav');
      nas = await Nas.create(scratch, { files: { 'photos/from nas.bin': 300_000, 'team/a': 1_000, 'archive/old.bin': 1_000 } });
      files = new Files(scratch);
      port = await freePort();
      daemon = await Daemon.create(scratch, {
        rclone: rclone.command,
        connections: [nas.connection('nas')],
        shares: [
          { name: PHOTOS, connection: 'nas', remote_path: 'photos' }, { name: 'team', connection: 'nas', remote_path: 'team' },
          { name: 'archive', connection: 'nas', remote_path: 'archive', read_only: true }, { name: 'hidden', connection: 'nas', remote_path: 'team', protocols: ['smb'] },
        ],
        sections: { webdav: { enabled: true, port, users: [{ name: 'alice', password: 'wonder:land' }] } },
      });
      await daemon.start();
      await daemon.healthy();
      await until('WebDAV is served', async () => (await exportStatus(daemon)).webdav_running, { timeoutMs: 15_000 });
    });
    after(() => scratch.close());

    it('gives files back byte for byte, and takes what clients write', async () => {
      const read = await curl('-o', scratch.path('back'), url(PHOTOS, 'from%20nas.bin'));
      assert.match(read.output, /200$/);
      assert.equal(await sumOf(scratch.path('back')), await nas.checksum('photos/from nas.bin'));
      const { path, sum } = await localFile(scratch, 'up.bin', 3_000_000);
      assert.match((await curl('-T', path, url(PHOTOS, '%E6%96%B0%20file.bin'))).output, /201$/);
      assert.equal(await files.checksum(`${daemon.mountPoint(PHOTOS)}/新 file.bin`), sum);
      await until('it is on the NAS', async () => (await nas.has('photos/新 file.bin')) && (await nas.checksum('photos/新 file.bin')) === sum, { timeoutMs: 15_000 });
    });
  });
}
