// @load quiet
/** A file that a client writes over via WebDAV while the cache disk fills up: neither version is lost. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, stat, statfs, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { runClient } from '../../support/exports/client-programs.ts';
import { openWebdavShare, PASSWORD, SHARE, USER } from '../../support/exports/webdav-share.ts';
import type { WebdavShare } from '../../support/exports/webdav-share.ts';
import { detachAll, mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { until } from '../../support/platform/wait.ts';

const NAME = 'from nas.bin';
const FILE = encodeURIComponent(NAME);
const CONTENT = randomBytes(80_000_000);

describe('a file that is written over via WebDAV while the disk fills up', () => {
  let share: WebdavShare;
  const resize = async (mb: number): Promise<boolean> =>
    (await runClient('mount', ['-o', `remount,size=${mb}m`, share.daemon.cacheDir])).code === 0;
  const isThere = async (): Promise<boolean> =>
    (await runClient('ls', [`${share.daemon.mountPoint(SHARE)}/${NAME}`])).code === 0;

  before(async () => {
    share = await openWebdavShare('dav-full', {
      cache: { min_free_space: '20M' },
      prepare: async ({ cacheDir }, scratch) => {
        await mkdir(cacheDir, { recursive: true });
        const args = ['-t', 'tmpfs', '-o', 'size=400m', 'mountkeeper-test', cacheDir];
        assert.equal((await runClient('mount', args)).code, 0);
        scratch.defer(async () =>
          detachAll((await mountsBelow(cacheDir)).filter(({ fsType }) => fsType === 'tmpfs')),
        );
      },
    });
  });
  after(() => share.scratch.close());

  it('comes back once there is room, and reaches the NAS', async () => {
    const { daemon, scratch, dav, url, nas } = share;
    const local = scratch.path('content');
    await writeFile(local, CONTENT);
    const answered = dav('-T', local, url(FILE));
    const written = `${daemon.cacheDir}/${SHARE}/layer/upper/${NAME}`;
    await until(
      'it is being written',
      async () => (await stat(written).catch(() => ({ size: 0 }))).size > 1_000_000,
      { timeoutMs: 60_000, everyMs: 1 },
    );
    await until(
      'only 20 MB of it have room',
      async () => {
        const { blocks, bfree, bsize } = await statfs(daemon.cacheDir);
        return resize(Math.ceil(((blocks - bfree) * bsize) / 1_048_576) + 20);
      },
      { timeoutMs: 10_000, everyMs: 1 },
    );
    assert.equal(await answered, 502);
    assert.equal(await isThere(), false, 'the server of rclone has taken it away');
    let notices = '';
    await until(
      'a notice says where its content is',
      async () =>
        /upload of 'team\/from nas\.bin' .*kept in .*~webdav/.test(
          (notices = (await daemon.get('/api/notices')).text),
        ),
      { timeoutMs: 120_000, everyMs: 1_000 },
    ).catch((error: Error) => assert.fail(`${error.message}: ${notices}`));
    assert.ok(await resize(400));
    await until(
      'it is there',
      async () => {
        const { code } = await runClient(
          'curl',
          ['-sS', '-f', '-u', `${USER}:${PASSWORD}`, '-o', scratch.path('got'), url(FILE)],
          60_000,
        );
        return code === 0 && (await readFile(scratch.path('got'))).equals(CONTENT);
      },
      { timeoutMs: 120_000, everyMs: 500 },
    );
    await until(
      'no notice says so any more',
      async () => !/kept in/.test((await daemon.get('/api/notices')).text),
      {
        timeoutMs: 20_000,
      },
    );
    await daemon.synced(120_000);
    assert.ok((await readFile(nas.path(SHARE, NAME))).equals(CONTENT));
    assert.deepEqual(await readdir(`${daemon.cacheDir}/~webdav`), []);
  });
});
