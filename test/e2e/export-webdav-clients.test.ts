import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Daemon } from '../support/daemon.ts';
import { Files } from '../support/files.ts';
import type { Nas } from '../support/nas.ts';
import { rclones } from '../support/rclones.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { openDavHouse } from '../support/exports/dav.ts';
import type { DavHouse } from '../support/exports/dav.ts';
import { localFile, runClient } from '../support/exports/exports.ts';

for (const rclone of rclones()) {
  describe(`what WebDAV clients do to files that are there, with ${rclone.label}`, () => {
    let scratch: Scratch;
    let nas: Nas;
    let files: Files;
    let daemon: Daemon;
    let url: DavHouse['url'];
    let dav: DavHouse['dav'];

    before(async () => {
      ({ scratch, nas, daemon, url, dav } = await openDavHouse('dav-clients', rclone));
      files = new Files(scratch);
    });
    after(() => scratch.close());

    it('copies and moves over a file with its time, also one that is locked', async () => {
      const { path, sum } = await localFile(scratch, 'timed', 100_000);
      await dav('-T', path, '-H', 'X-OC-Mtime: 1500000000', url('timed.bin'));
      await dav('-T', path, url('target.bin'));
      const body = '<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';
      const { output } = await runClient('curl', ['-sS', '-D', '-', '-o', '/dev/null', '-u', 'alice:wonder', '-X', 'LOCK', '-H', 'Timeout: Second-60', '-d', body, url('target.bin')]);
      const token = /lock-token: <([^>]+)>/i.exec(output)?.[1] ?? assert.fail(output);
      const moveOver = (...extra: string[]) => dav('-X', 'MOVE', '-H', `Destination: ${url('target.bin')}`, ...extra, url('timed.bin'));
      assert.equal(await moveOver(), 423);
      assert.equal(await moveOver('-H', `If: <${url('target.bin')}> (<${token}>)`), 204);
      assert.equal(await dav(url('timed.bin')), 404, 'the source');
      assert.equal(await files.checksum(`${daemon.mountPoint('team')}/target.bin`), sum);
      await until('it is there with its time', async () => Math.round((await stat(nas.path('team/target.bin'))).mtimeMs / 1_000) === 1_500_000_000, { timeoutMs: 30_000 });
    });
  });
}
