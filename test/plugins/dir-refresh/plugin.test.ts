import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import dirRefresh from '../../../plugins/dir-refresh/index.ts';
import { folderOf } from '../../../plugins/dir-refresh/routes.ts';
import { runCommand } from '../../api/cli.ts';
import { testShare } from './fixture.ts';
import { stepUntil, turn } from '../../support/platform/wait.ts';
import { sharesOf } from '../../support/shares/fake-shares.ts';

const document = (dir: object, share: object = {}) => ({
  connections: [{ name: 'nas', type: 'sftp' }],
  dir_refresh: dir,
  shares: [
    { name: 'photos', connection: 'nas', mount_point: '/mnt/photos', ...share },
    { name: '文件', connection: 'nas', mount_point: '/mnt/x' },
  ],
});

async function start(t: TestContext, config: object) {
  const photos = testShare('photos');
  const host = await createTestHost({
    plugins: [dirRefresh],
    config: { ...config },
    services: { shares: sharesOf(() => [photos.live]) },
  });
  t.after(() => host.close());
  return { host, photos };
}

describe('dir-refresh', () => {
  it('is active only for configured shares with an effective interval, live', async (t) => {
    const { host } = await start(t, document({ interval: '5m' }, { dir_refresh_interval: '0' }));
    const active = () =>
      ['photos', '文件', 'stranger'].map((name) => host.shareStatus(name).dirRefreshActive);
    assert.deepEqual(active(), [false, true, false]);
    await host.configure(document({}, { dir_refresh_interval: '10s' }));
    assert.deepEqual(active(), [true, false, false]);
  });

  it('refuses an interval below a second', async (t) => {
    const { host } = await start(t, document({}));
    await assert.rejects(host.configure(document({ interval: '10ms' })), /at least "1s"/);
    await assert.rejects(host.configure(document({}, { dir_refresh_interval: 'soon' })), /not a duration/);
  });

  it('tells in the status what came of the refresh', async (t) => {
    const { host, photos } = await start(t, document({ interval: '10s', recursive: false }));
    assert.deepEqual(
      [host.shareStatus('photos').lastDirRefreshAt, host.shareStatus('photos').lastDirRefreshDirsOk],
      [null, 0],
    );
    await host.advance(12_000);
    assert.equal(photos.made.waiting[0]?.recursive, false);
    photos.made.finish({ ok: 3, failed: [{ path: 'bad', reason: 'no' }] });
    await host.advance(0);
    const status = host.shareStatus('photos');
    assert.deepEqual(
      [status.lastDirRefreshDirsOk, status.lastDirRefreshDirsFailed, status.lastDirRefreshAt !== null],
      [3, 1, true],
    );
  });

  it('refreshes by request, whatever the interval', async (t) => {
    const { host, photos } = await start(t, document({}));
    const asked = host.inject({
      method: 'POST',
      url: '/api/refresh/photos',
      payload: { path: '/2024//mai/' },
    });
    await stepUntil('the mount is asked', () => photos.made.waiting.length > 0, turn);
    assert.equal(photos.made.waiting[0]?.path, '2024/mai');
    const again = (await host.inject({ method: 'POST', url: '/api/refresh/photos' })).json() as {
      ok: boolean;
      message: string;
    };
    assert.deepEqual([again.ok, /already/.test(again.message)], [false, true]);
    photos.made.finish({ ok: 2, failed: [{ path: '2024/mai/x', reason: 'no' }] });
    assert.deepEqual((await asked).json(), {
      ok: false,
      message: "Refreshed 2 folders of share 'photos', 1 failed",
      dirs_ok: 2,
      dirs_failed: 1,
      failed: [{ path: '2024/mai/x', reason: 'no' }],
    });
    const another = host.inject({ method: 'POST', url: '/api/refresh/photos' });
    await stepUntil('the mount is asked', () => photos.made.waiting.length > 0, turn);
    photos.made.finish({ ok: 1, failed: [] });
    const { message } = (await another).json() as { message: string };
    assert.equal(message, "Refreshed 1 folder of share 'photos'");
    const absent = await host.inject({ method: 'POST', url: '/api/refresh/nobody' });
    assert.deepEqual(
      [absent.statusCode, (absent.json() as { message: string }).message],
      [200, "Share 'nobody' not found"],
    );
  });

  it('refuses paths that leave the share and bodies that are no JSON', async (t) => {
    const { host } = await start(t, document({}));
    for (const payload of [{ path: '../x' }, { path: 5 }, '[1]', 'nonsense']) {
      const answer = await host.inject({
        method: 'POST',
        url: '/api/refresh/photos',
        payload,
        headers: { 'content-type': 'application/json' },
      });
      assert.equal(answer.statusCode, 400, JSON.stringify(payload));
      assert.equal((answer.json() as { ok: boolean }).ok, false);
    }
    assert.deepEqual(
      [folderOf(undefined), folderOf(null), folderOf({ path: 'a/./b' }), folderOf({ path: 'a\0' })],
      ['', '', 'a/b', undefined],
    );
  });
});

describe('mountkeeper refresh', () => {
  it('asks the daemon and says what came of it', async () => {
    const asked: unknown[] = [];
    const answering =
      (body: object) =>
      async (...args: unknown[]) => {
        asked.push(args);
        return { status: 200, body: JSON.stringify(body) };
      };
    const good = await runCommand(dirRefresh, ['refresh', '文件', 'a/b'], {
      request: answering({ ok: true, message: 'Refreshed', failed: [] }),
    });
    assert.deepEqual(
      [good.code, good.printed, asked],
      [0, ['Refreshed'], [['POST', `/api/refresh/${encodeURIComponent('文件')}`, { path: 'a/b' }]]],
    );
    const bad = await runCommand(dirRefresh, ['refresh', 'photos'], {
      request: answering({ ok: false, message: 'One failed', failed: [{ path: '', reason: 'no way' }] }),
    });
    assert.deepEqual([bad.code, bad.errors], [1, ['One failed\n  /: no way']]);
    assert.equal((await runCommand(dirRefresh, ['refresh'], { request: answering({}) })).code, 64);
  });
});
