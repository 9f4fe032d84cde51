import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { BANDWIDTH, createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

describe('POST /api/bwlimit', () => {
  let api: ApiFixture;
  beforeEach(async () => {
    api = await createApi();
  });
  afterEach(() => api.close());

  it('passes the texts on as they are', async () => {
    const answer = await api.post('/api/bwlimit', { up: '10M', down: 'anything at all' });
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.json(), { ok: true, message: 'Bandwidth limit updated' });
    assert.deepEqual(api.sent, [{ command: 'bwlimit', args: [{ up: '10M', down: 'anything at all' }] }]);
  });

  it('takes what is left out as "0"', async () => {
    for (const [body, expected] of [
      [{}, { up: '0', down: '0' }],
      [{ up: '1M' }, { up: '1M', down: '0' }],
      [{ down: '2M' }, { up: '0', down: '2M' }],
      [undefined, { up: '0', down: '0' }],
    ] as const) {
      api.sent.length = 0;
      const answer = await api.post('/api/bwlimit', body);
      assert.deepEqual([answer.status, api.sent[0]?.args], [200, [expected]]);
    }
  });

  it('answers a failed send with 200 and the reason', async () => {
    api.refusal = '64 commands are waiting already';
    const answer = await api.post('/api/bwlimit', { up: '1M' });
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.json(), {
      ok: false,
      message: 'Failed to send command: 64 commands are waiting already',
    });
  });

  it('refuses values that are no text, and bodies that are no object, in its own shape', async () => {
    for (const body of [{ up: 5 }, { down: null }, { up: ['1M'] }, [], 'text', 3]) {
      const answer = await api.post('/api/bwlimit', body);
      const parsed = answer.json() as { ok: boolean; message: string };
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual([parsed.ok, Object.keys(parsed)], [false, ['ok', 'message']]);
    }
    const broken = await api.call({
      method: 'POST',
      path: '/api/bwlimit',
      headers: { 'content-type': 'application/json' },
      body: '{',
    });
    assert.deepEqual([broken.status, (broken.json() as { ok: boolean }).ok], [400, false]);
    assert.deepEqual(api.sent, []);
  });
});

describe('GET /api/bwlimit', () => {
  it('tells what holds now, in bytes per second', async () => {
    const api = await createApi();
    const answer = await api.get('/api/bwlimit');
    await api.close();
    assert.deepEqual([answer.status, answer.json()], [200, BANDWIDTH]);
  });
});

describe('POST /api/reconnect/{share}', () => {
  let api: ApiFixture;
  beforeEach(async () => {
    api = await createApi();
  });
  afterEach(() => api.close());

  it('sends the command for shares of any name', async () => {
    for (const name of ['photos', '照片 2024']) {
      const answer = await api.post(`/api/reconnect/${encodeURIComponent(name)}`);
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.json(), { ok: true, message: `Reconnecting share '${name}'` });
    }
    assert.deepEqual(
      api.sent.map(({ command, args }) => [command, ...args]),
      [
        ['reconnect', 'photos'],
        ['reconnect', '照片 2024'],
      ],
    );
  });

  it('answers a share that is not configured with 200 and says so, though the record has it', async () => {
    api.publish([{ name: 'gone' }]);
    for (const name of ['gone', 'Photos', 'a/b']) {
      const answer = await api.post(`/api/reconnect/${encodeURIComponent(name)}`);
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.json(), { ok: false, message: `Share '${name}' not found` });
    }
    assert.deepEqual(api.sent, []);
  });

  it('answers a failed send with 200 and the reason', async () => {
    api.refusal = 'the daemon is stopping';
    const answer = await api.post('/api/reconnect/photos');
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.json(), {
      ok: false,
      message: 'Failed to send reconnect: the daemon is stopping',
    });
  });

  it('does not care for a body', async () => {
    const answer = await api.call({
      method: 'POST',
      path: '/api/reconnect/photos',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: '{"a',
    });
    assert.equal(answer.status, 200);
  });
});

describe('POST /api/plugins/{name}/enable', () => {
  it('says when there is nothing to bring back', async () => {
    const api = await createApi();
    const answers = await Promise.all(
      ['auth', 'nobody'].map(async (name) => (await api.post(`/api/plugins/${name}/enable`)).json()),
    );
    await api.close();
    assert.deepEqual(answers, [
      { ok: false, message: "Plugin 'auth' did not break off, it is active" },
      { ok: false, message: "Plugin 'nobody' not found" },
    ]);
  });
});

describe('POST /api/plugins/{name}/log-level', () => {
  it('changes that key of the file alone, takes it out again, and refuses what is no level', async (t) => {
    const noted = `${SAMPLE}\n[plugins.logs] # mine\nenabled = true\n`;
    const api = await createApi({ toml: noted, commits: true });
    t.after(() => api.close());
    const set = async (name: string, level: unknown): Promise<readonly unknown[]> => {
      const answer = await api.post(`/api/plugins/${name}/log-level`, { level });
      const { ok, message } = answer.json() as { ok: boolean; message: string };
      return [answer.status, ok, message];
    };
    assert.deepEqual(await set('logs', 'debug'), [200, true, "The plugin 'logs' logs from 'debug' on"]);
    const written = await api.fileText();
    assert.deepEqual(written.replace('log_level = "debug"\n', ''), noted);
    const refused = await set('logs', 'loud');
    assert.deepEqual(refused.slice(0, 2), [400, false]);
    assert.match(String(refused[2]), /plugins\.logs\.log_level must be one of .*trace/);
    assert.equal((await set('logs', 7))[0], 400);
    assert.deepEqual(await set('nobody', 'debug'), [200, false, "Plugin 'nobody' not found"]);
    assert.equal(await api.fileText(), written);
    assert.deepEqual(
      (await set('logs', 'default'))[2],
      "The plugin 'logs' logs at the level of the whole daemon",
    );
    assert.equal(await api.fileText(), noted);
    await writeFile(api.configFile, `${noted}[unfinished`);
    assert.deepEqual((await set('logs', 'debug')).slice(0, 2), [412, false]);
    assert.equal(await api.fileText(), `${noted}[unfinished`);
  });
});

describe('GET /api/plugins and /api/notices', () => {
  it('list what there is', async () => {
    const api = await createApi({ notices: [{ level: 'warning', message: 'look here' }] });
    const plugins = (await api.get('/api/plugins')).json() as Record<string, unknown>[];
    const notices = (await api.get('/api/notices')).json();
    await api.close();
    assert.deepEqual(
      plugins.map((plugin) => plugin['name']),
      ['auth', 'control-api', 'logs', 'mount-keys', 'presets'],
    );
    assert.deepEqual(Object.keys(plugins[0] ?? {}), [
      'name',
      'version',
      'description',
      'state',
      'reason',
      'effects',
      'third_party',
      'isolation',
      'permissions',
    ]);
    assert.deepEqual(
      [plugins[0]?.['state'], plugins[0]?.['reason'], plugins[0]?.['third_party'], plugins[0]?.['isolation']],
      ['active', null, false, 'none'],
    );
    assert.deepEqual(notices, [{ level: 'warning', message: 'look here' }]);
  });
});
