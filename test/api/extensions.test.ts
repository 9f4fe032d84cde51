/** Fields of the status that plugins add, beside the objects of the API. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { definePlugin } from 'mountkeeper';
import { API_PLUGINS, createApi } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const garden = definePlugin({
  name: 'garden',
  version: '1.0.0',
  apiVersion: 1,
  description: 'A garden.',
  register(ctx) {
    ctx.status('gardenBeds' as never, { default: 0 as never, read: () => 3 as never });
    ctx.status('smbdRunning', { default: false, read: () => true });
    ctx.status('warmup', { default: [], read: () => [{ share: 'photos' }, RULE] as never });
    ctx.shareStatus({
      defaults: { gardenMood: 'dull' } as never,
      read: (share) => (share === 'photos' ? { gardenMood: 'sunny' } : {}) as never,
    });
    ctx.shareStatus({
      defaults: { warmupState: 'none', warmupDone: 0, lastDirRefreshAt: null },
      read: () => ({ warmupState: 'odd' as never, warmupDone: -1, lastDirRefreshAt: 'now' as never }),
    });
  },
});

const RULE = {
  share: 'photos',
  path: 'a',
  newerThan: null,
  state: 'complete',
  totalFiles: 1.5,
  skipped: 0,
  cached: 2,
  errors: 0,
};

describe('GET /api/extensions', () => {
  let api: ApiFixture;
  before(async () => {
    api = await createApi({ plugins: [...API_PLUGINS, garden as never] });
    api.publish([{ name: 'photos' }, { name: 'extensions' }]);
  });
  after(() => api.close());

  it('tells what plugins add, by plugin', async () => {
    const answer = await api.get('/api/extensions');
    assert.deepEqual([answer.status, answer.json()], [200, { extensions: { garden: { gardenBeds: 3 } } }]);
    const again = await api.get('/api/extensions', { 'if-none-match': String(answer.headers['etag']) });
    assert.equal(again.status, 304);
  });

  it('tells the same of each share, and of no other', async () => {
    const of = async (share: string) => (await api.get(`/api/extensions/${share}`)).json();
    assert.deepEqual(await of('photos'), { extensions: { garden: { gardenMood: 'sunny' } } });
    assert.deepEqual(await of('extensions'), { extensions: { garden: { gardenMood: 'dull' } } });
    const missing = await api.get('/api/extensions/nobody');
    assert.deepEqual([missing.status, missing.body], [404, '']);
  });

  it("leaves the API's own objects as they are, whatever a plugin says", async () => {
    const status = (await api.get('/api/status')).json() as Record<string, unknown>;
    assert.deepEqual(Object.keys(status), [
      'uptime',
      'shares',
      'smbd_running',
      'webdav_running',
      'nfs_exported',
      'warmup',
      'nas_offline',
      'all_synced',
    ]);
    assert.deepEqual(
      [status['smbd_running'], status['webdav_running'], status['nas_offline']],
      [true, false, false],
    );
    assert.deepEqual(status['warmup'], [
      {
        share: 'photos',
        path: 'a',
        newer_than: null,
        state: 'complete',
        total_files: 0,
        skipped: 0,
        cached: 2,
        errors: 0,
      },
    ]);
    const share = (await api.get('/api/status/extensions')).json() as Record<string, unknown>;
    assert.equal(share['name'], 'extensions');
    assert.deepEqual(
      ['warmup_state', 'warmup_done', 'warmup_total', 'dir_refresh_active', 'last_dir_refresh_ago'].map(
        (field) => share[field],
      ),
      ['none', 0, 0, false, null],
    );
    assert.equal(Object.keys(share).length, 20);
  });
});
