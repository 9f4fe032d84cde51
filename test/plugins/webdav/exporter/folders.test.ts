import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { chown, link, lstat, mkdir, symlink, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import {
  canOwn,
  formerSpools,
  giveFolders,
  rightsIn,
  SPOOL,
} from '../../../../plugins/webdav/exporter/folders.ts';
import { webdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const USER = { uid: 61_001, gid: 61_002 };

describe('the folders of the WebDAV proxy', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let spool: string;
  const paths = () => webdavPaths(scratch.path('state'));
  const owners = async (...files: string[]) =>
    Promise.all(files.map(async (file) => `${(await lstat(file)).uid} ${(await lstat(file)).gid}`));
  beforeEach(async () => {
    scratch = await createScratch('dav-folders');
    spool = scratch.path(`cache/${SPOOL}`);
  });
  afterEach(() => scratch.close());

  it('are its own but for that of the sockets, with what a proxy of root has left', async () => {
    const { own, journal, sockets } = paths();
    for (const folder of [journal, spool]) await mkdir(folder, { recursive: true, mode: 0o700 });
    const left = [`${journal}/a.json`, `${spool}/a.part`];
    for (const file of left) await writeFile(file, '', { mode: 0o600 });
    await giveFolders(paths(), spool, USER);
    const its = '61001 61002';
    assert.deepEqual(await owners(own, journal, spool, ...left), [its, its, its, its, its]);
    assert.deepEqual(await owners(sockets, scratch.path('cache')), ['0 61002', '0 0']);
    const modes = await Promise.all(
      [own, journal, sockets, spool].map(async (one) => (await lstat(one)).mode & 0o777),
    );
    assert.deepEqual(modes, [0o700, 0o700, 0o710, 0o700]);

    // An older version has run meanwhile, as root.
    await writeFile(`${spool}/b.part`, '');
    await giveFolders(paths(), spool, USER);
    assert.deepEqual(await owners(`${spool}/b.part`), [its]);

    await giveFolders(paths(), spool, undefined);
    assert.deepEqual(await owners(own, journal, spool, sockets, ...left), Array(6).fill('0 0'));
    assert.equal((await lstat(sockets)).mode & 0o777, 0o700);
  });

  it('bring nobody any other file: not by a link, not by a second name', async () => {
    const { journal } = paths();
    await mkdir(journal, { recursive: true });
    for (const name of ['secret', 'linked']) await writeFile(scratch.path(name), '');
    await symlink(scratch.path('secret'), `${journal}/a.json`);
    await link(scratch.path('linked'), `${journal}/b.json`);
    await giveFolders(paths(), spool, USER);
    assert.deepEqual(await owners(scratch.path('secret'), scratch.path('linked')), ['0 0', '0 0']);
    await symlink(scratch.path('secret'), scratch.path('elsewhere'));
    await assert.rejects(giveFolders(paths(), scratch.path('elsewhere'), USER));
    assert.deepEqual(await owners(scratch.path('secret')), ['0 0']);
  });

  it('are found out to be on a disk that has no owners', async () => {
    assert.equal(await canOwn(spool, USER), true);
    assert.deepEqual(await owners(spool), ['61001 61002']);
    assert.equal(await canOwn('/proc/self/task', USER), false);
  });

  it('take a proxy with all rights where root itself owns nothing, as on a disk of another user', async () => {
    const [asUser, asRoot] = [{ user: USER, capabilities: [] }, { capabilities: [] }];
    assert.deepEqual(await rightsIn(spool, asUser), asUser);
    assert.deepEqual(await rightsIn(spool, asRoot), asRoot);
    // There the kernel lets nobody be made an owner, not even the one who is.
    const ownerless = '/proc/sys/user';
    assert.deepEqual(await Promise.all([rightsIn(ownerless, asUser), rightsIn(ownerless, asRoot)]), [
      undefined,
      undefined,
    ]);
    await giveFolders(paths(), ownerless, undefined);
    assert.deepEqual(await owners(paths().own), ['0 0']);
  });

  it('are those of former caches, too, as long as an upload has its content there', async () => {
    const { journal } = paths();
    await giveFolders(paths(), spool, USER);
    const old = scratch.path(`old/${SPOOL}`);
    for (const folder of [old, scratch.path(`foreign/${SPOOL}`), scratch.path('own/other')]) {
      await mkdir(folder, { recursive: true });
      if (!folder.includes('foreign')) await chown(folder, USER.uid, USER.gid);
    }
    const bodies = [
      `${spool}/1.part`,
      `${old}/2.part`,
      `${old}/3.part`,
      scratch.path(`foreign/${SPOOL}/4.part`),
      scratch.path('own/other/5.part'),
      scratch.path(`nowhere/${SPOOL}/6.part`),
      7,
    ];
    for (const [index, body] of bodies.entries())
      await writeFile(`${journal}/${index}.json`, JSON.stringify({ body }));
    await writeFile(`${journal}/torn.json`, '{');
    assert.deepEqual(await formerSpools(paths(), spool, USER), [old]);
  });

  it('are read from notes alone: by no link, from no pipe, from nothing that is too long', async () => {
    const { journal } = paths();
    await giveFolders(paths(), spool, USER);
    const old = scratch.path(`old/${SPOOL}`);
    await mkdir(old, { recursive: true });
    await chown(old, USER.uid, USER.gid);
    const note = JSON.stringify({ body: `${old}/1.part` });
    await writeFile(scratch.path('note'), note);
    await symlink(scratch.path('note'), `${journal}/link.json`);
    await writeFile(`${journal}/long.json`, note + ' '.repeat(1_048_576));
    // Whoever opens it as a file waits for a writer, for ever, with a thread of the daemon's four.
    execFileSync('mkfifo', [`${journal}/pipe.json`]);
    const found = formerSpools(paths(), spool, USER);
    const late = AbortSignal.timeout(10_000);
    const answer = await Promise.race([found, once(late, 'abort').then(() => 'it waits')]).finally(() => {
      // Lets go of a reader, so that the test ends.
      closeSync(openSync(`${journal}/pipe.json`, constants.O_RDWR | constants.O_NONBLOCK));
    });
    assert.deepEqual(answer, []);
    await writeFile(`${journal}/real.json`, note);
    assert.deepEqual(await formerSpools(paths(), spool, USER), [old]);
  });
});
