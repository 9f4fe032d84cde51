/** Requests of processes of third parties' plugins, where nobody is asked for a password. */
import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const RIGHT = { authorization: `Basic ${Buffer.from('admin:pw').toString('base64')}` };

describe('a process of a plugin', () => {
  let api: ApiFixture;
  afterEach(() => api.close());
  /** The test itself is such a process, by its user. */
  const open = async (toml: string, user = process.geteuid?.()): Promise<ApiFixture> =>
    (api = await createApi({ toml, http: { pluginsUser: async () => user } }));

  it('may use nothing of the server without a password, whatever it brings', async () => {
    await open(SAMPLE);
    for (const headers of [{}, RIGHT, { 'x-forwarded-for': '192.0.2.9' }]) {
      const answer = await api.get('/api/status', headers);
      assert.equal(answer.status, 403);
      assert.match(answer.body, /third party's plugin.*Set web\.password/);
    }
    assert.equal((await api.post('/api/config', SAMPLE)).status, 403);
    assert.equal(api.sent.length, 0);
    assert.equal((await api.get('/healthz')).status, 200);
  });

  it('is asked for a password like all others where there is one', async () => {
    await open(`${SAMPLE}\n[web]\npassword = "pw"\n`);
    assert.equal((await api.get('/api/status')).status, 401);
    assert.equal((await api.get('/api/status', RIGHT)).status, 200);
  });

  for (const [what, user] of [
    ['of another user', 4_000_000_000],
    ['where plugins have no user of their own', undefined],
  ] as const)
    it(`is not taken for one ${what}`, async () => {
      api = await createApi({ toml: SAMPLE, http: { pluginsUser: async () => user } });
      assert.equal((await api.get('/api/status')).status, 200);
    });
});
