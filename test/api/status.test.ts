import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { createApi } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const DEFAULT_SHARE = {
  name: 'photos',
  mounted: false,
  rc_port: 0,
  cache_bytes: 0,
  cache_display: '0 B',
  dirty_count: 0,
  errored_files: 0,
  speed: 0,
  speed_display: '0 B/s',
  transfers: 0,
  errors: 0,
  health: 'pending',
  health_message: null,
  warmup_state: 'none',
  warmup_done: 0,
  warmup_total: 0,
  dir_refresh_active: false,
  last_dir_refresh_ago: null,
  last_dir_refresh_dirs_ok: 0,
  last_dir_refresh_dirs_failed: 0,
};

describe('GET /api/status', () => {
  let api: ApiFixture;
  before(async () => {
    api = await createApi();
  });
  after(() => api.close());

  it('has every field of the contract with its default, and no other', async () => {
    api.publish([{ name: 'photos' }]);
    const answer = await api.get('/api/status');
    assert.equal(answer.status, 200);
    assert.match(String(answer.headers['content-type']), /^application\/json/);
    const { uptime, ...rest } = answer.json() as Record<string, unknown>;
    assert.match(String(uptime), /^\d+s$/);
    assert.deepEqual(rest, {
      shares: [DEFAULT_SHARE],
      smbd_running: false,
      webdav_running: false,
      nfs_exported: false,
      warmup: [],
      nas_offline: false,
      all_synced: false,
    });
  });

  it('maps every field of a busy share and of a warmup rule', async () => {
    const before = api.status.snapshot.takenAt;
    api.publish(
      [
        {
          name: '照片 2024',
          mounted: true,
          rcPort: 41000,
          cacheBytes: 1536,
          dirtyCount: 3,
          erroredFiles: 1,
          speed: 2_097_152.5,
          transfers: 2,
          errors: 7,
          health: 'failed',
          healthMessage: 'the NAS does not answer',
          warmupState: 'caching',
          warmupDone: 5,
          warmupTotal: 9,
          dirRefreshActive: true,
          lastDirRefreshAt: before - 65_000,
          lastDirRefreshDirsOk: 4,
          lastDirRefreshDirsFailed: 2,
        },
      ],
      {
        smbdRunning: true,
        webdavRunning: true,
        nfsExported: true,
        nasOffline: true,
        allSynced: true,
        warmup: [
          {
            share: '照片 2024',
            path: 'a/b',
            newerThan: '7d',
            state: 'listing',
            totalFiles: 4,
            skipped: 1,
            cached: 2,
            errors: 1,
          },
        ],
      },
    );
    const body = (await api.get('/api/status')).json() as {
      shares: Record<string, unknown>[];
      warmup: unknown[];
    } & Record<string, unknown>;
    const { last_dir_refresh_ago: ago, ...share } = body.shares[0] ?? {};
    assert.match(String(ago), /^1m \d+s ago$/);
    assert.deepEqual(share, {
      name: '照片 2024',
      mounted: true,
      rc_port: 41000,
      cache_bytes: 1536,
      cache_display: '1.5 KiB',
      dirty_count: 3,
      errored_files: 1,
      speed: 2_097_152.5,
      speed_display: '2.0 MiB/s',
      transfers: 2,
      errors: 7,
      health: 'failed',
      health_message: 'the NAS does not answer',
      warmup_state: 'caching',
      warmup_done: 5,
      warmup_total: 9,
      dir_refresh_active: true,
      last_dir_refresh_dirs_ok: 4,
      last_dir_refresh_dirs_failed: 2,
    });
    assert.deepEqual(body.warmup, [
      {
        share: '照片 2024',
        path: 'a/b',
        newer_than: '7d',
        state: 'listing',
        total_files: 4,
        skipped: 1,
        cached: 2,
        errors: 1,
      },
    ]);
    assert.deepEqual(
      [
        body['smbd_running'],
        body['webdav_running'],
        body['nfs_exported'],
        body['nas_offline'],
        body['all_synced'],
      ],
      [true, true, true, true, true],
    );
  });

  it('answers 304 to the ETag of the running snapshot and 200 after the next one', async () => {
    api.publish([{ name: 'photos' }]);
    const first = await api.get('/api/status');
    const etag = String(first.headers.etag);
    const second = await api.get('/api/status', { 'if-none-match': etag });
    assert.equal(second.status, 304);
    assert.equal(second.body, '');
    api.publish([{ name: 'photos', dirtyCount: 1 }]);
    const third = await api.get('/api/status', { 'if-none-match': etag });
    assert.equal(third.status, 200);
    assert.notEqual(third.headers.etag, etag);
  });

  it('tells in a header how long ago the shares were asked whether all is synced, and only while it is', async () => {
    const age = async (headers = {}): Promise<unknown> =>
      (await api.get('/api/status', headers)).headers['mountkeeper-synced-age'];
    api.publish([{ name: 'photos' }], { allSynced: false });
    assert.equal(await age(), undefined);
    api.publish([{ name: 'photos' }], { allSynced: true });
    api.status.confirm(performance.now() - 1_500);
    const told = Number(await age());
    assert.ok(told >= 1_500 && told <= 4_500, `${told}`);
    const { etag } = (await api.get('/api/status')).headers;
    assert.ok(Number(await age({ 'if-none-match': String(etag) })) >= told, 'also with a 304');
    api.status.confirm(performance.now() - 4_600);
    assert.equal(await age(), undefined);
  });

  it('says the length in bytes of a body of any size, in any script', async () => {
    for (const count of [1, 200]) {
      api.publish(Array.from({ length: count }, (_, index) => ({ name: `照片 ${index} é` })));
      const { body, bytes, headers } = await api.get('/api/status');
      assert.equal(Number(headers['content-length']), bytes.length);
      assert.equal(
        (JSON.parse(body) as { shares: { name: string }[] }).shares.at(-1)?.name,
        `照片 ${count - 1} é`,
      );
    }
  });

  it('sends gzip only to those who take it, with the same content and an ETag of its own', async () => {
    api.publish(Array.from({ length: 20 }, (_, index) => ({ name: `share-${index}` })));
    const plain = await api.get('/api/status');
    const zipped = await api.get('/api/status', { 'accept-encoding': 'br, gzip;q=0.8' });
    const refused = await api.get('/api/status', { 'accept-encoding': 'gzip;q=0, *;q=0' });
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.equal(refused.headers['content-encoding'], undefined);
    assert.equal(zipped.headers['content-encoding'], 'gzip');
    assert.ok(zipped.bytes.length < plain.bytes.length / 3);
    assert.equal(gunzipSync(zipped.bytes).toString(), plain.body);
    assert.notEqual(zipped.headers.etag, plain.headers.etag);
    assert.match(String(plain.headers.vary), /accept-encoding/);
    const unchanged = await api.get('/api/status', {
      'accept-encoding': 'gzip',
      'if-none-match': String(zipped.headers.etag),
    });
    assert.equal(unchanged.status, 304);
  });

  it('answers HEAD with the same length and no body', async () => {
    api.publish([{ name: 'photos' }]);
    const head = await api.call({ method: 'HEAD', path: '/api/status' });
    const full = await api.get('/api/status');
    assert.equal(head.status, 200);
    assert.equal(head.body, '');
    assert.equal(head.headers['content-length'], String(full.bytes.length));
  });
});

describe('GET /api/status/{share}', () => {
  let api: ApiFixture;
  before(async () => {
    api = await createApi();
  });
  after(() => api.close());

  it('gives the one share, by its percent-encoded name too', async () => {
    api.publish([{ name: 'photos', dirtyCount: 2 }, { name: '照片 2024' }, { name: 'a b' }]);
    assert.deepEqual((await api.get('/api/status/photos')).json(), { ...DEFAULT_SHARE, dirty_count: 2 });
    for (const name of ['照片 2024', 'a b']) {
      const answer = await api.get(`/api/status/${encodeURIComponent(name)}`);
      assert.deepEqual(answer.json(), { ...DEFAULT_SHARE, name });
    }
    assert.equal(
      ((await api.get('/api/status/%E7%85%A7%E7%89%87%202024')).json() as { name: string }).name,
      '照片 2024',
    );
  });

  it('answers an unknown share with 404 and not one byte of body', async () => {
    api.publish([{ name: 'photos' }]);
    for (const name of ['nope', 'Photos', '%E4%B8%AD', 'photos%2F']) {
      const answer = await api.get(`/api/status/${name}`);
      assert.equal(answer.status, 404, name);
      assert.equal(answer.body, '');
      assert.equal(answer.headers['content-type'], undefined);
    }
  });

  it('follows the snapshot', async () => {
    api.publish([{ name: 'photos', dirtyCount: 1 }]);
    assert.equal(((await api.get('/api/status/photos')).json() as { dirty_count: number }).dirty_count, 1);
    api.publish([{ name: 'photos', dirtyCount: 0 }]);
    assert.equal(((await api.get('/api/status/photos')).json() as { dirty_count: number }).dirty_count, 0);
    api.publish([]);
    assert.equal((await api.get('/api/status/photos')).status, 404);
  });
});
