import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { isMounted } from '../../support/platform/mounted-file-systems.ts';
import type { Nas } from '../../support/nas/nas.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { openWebdavShare } from '../../support/exports/webdav-share.ts';
import type { WebdavShare } from '../../support/exports/webdav-share.ts';
import { localFile, runClient, sumOf } from '../../support/exports/client-programs.ts';
import { unlessRoot } from '../../runner/skips.ts';

describe('a share over WebDAV that is mounted with davfs2', () => {
  let scratch: Scratch;
  let nas: Nas;
  let url: WebdavShare['url'];

  before(async () => {
    ({ scratch, nas, url } = await openWebdavShare('davfs2'));
  });
  after(() => scratch.close());

  it('works as a file system', { skip: unlessRoot }, async () => {
    const [point, room] = [scratch.path('davfs'), scratch.path('davfs-room')];
    for (const folder of [point, room, `${room}/etc`, `${room}/cache`]) await mkdir(folder);
    await writeFile(`${room}/etc/secrets`, `${url()} alice wonder\n`, { mode: 0o600 });
    await writeFile(
      `${room}/etc/davfs2.conf`,
      `dav_user root\ndav_group root\ncache_dir ${room}/cache\ndelay_upload 0\ndir_refresh 1\nask_auth 0\n`,
    );
    const { path, sum } = await localFile(scratch, 'davfs-in', 3_000_000);
    const work = [
      // Its settings are this machine's own: other ones lie over them, for what runs here alone.
      `mount --bind '${room}/etc' /etc/davfs2`,
      `mount.davfs '${url()}' '${point}'`,
      `cp '${point}/from nas.bin' '${room}/out'`,
      `mkdir '${point}/Ordner ü'`,
      `cp '${path}' '${point}/Ordner ü/in.bin'`,
      `mv '${point}/Ordner ü/in.bin' '${point}/Ordner ü/moved %.bin'`,
      `printf one > '${point}/note.txt'`,
      `printf two >> '${point}/note.txt'`,
      `printf new > '${point}/note.new'`,
      `cp '${point}/note.txt' '${room}/note'`,
      `mv '${point}/note.new' '${point}/note.txt'`,
      `printf XX | dd of='${point}/Ordner ü/moved %.bin' bs=1 seek=10 conv=notrunc status=none`,
      `umount '${point}'`,
    ];
    const done = await runClient(
      'unshare',
      ['--mount', '--propagation', 'slave', 'sh', '-exc', work.join('\n')],
      90_000,
    );
    assert.equal(done.code, 0, done.output);
    assert.equal(await isMounted(point), false);
    assert.equal(await sumOf(`${room}/out`), await nas.checksum('team/from nas.bin'));
    assert.equal(await readFile(`${room}/note`, 'utf8'), 'onetwo');
    const edited = await readFile(path);
    edited.write('XX', 10);
    await writeFile(path, edited);
    assert.notEqual(await sumOf(path), sum);
    await until(
      'all of it is on the NAS',
      async () =>
        (await nas.has('team/Ordner ü/moved %.bin')) &&
        (await nas.checksum('team/Ordner ü/moved %.bin')) === (await sumOf(path)) &&
        (await readFile(nas.path('team/note.txt'), 'utf8')) === 'new',
      { timeoutMs: 30_000, everyMs: 200 },
    );
    await until(
      'it has its new name alone',
      async () =>
        (await readdir(nas.path('team'))).filter((name) => name.startsWith('note')).join() === 'note.txt',
      { timeoutMs: 20_000 },
    );
  });
});
