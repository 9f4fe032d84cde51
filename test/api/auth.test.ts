import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { definePlugin } from '../../core/sdk/index.ts';
import { askOverSocket } from '../../core/cli/command-socket.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import { makeHash } from '../../plugins/auth/password-hash.ts';
import { timed } from '../support/platform/wait.ts';
import { API_PLUGINS, createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture, FixtureOptions } from './fixture.ts';

function basic(username: string, password: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}` };
}

function withWeb(lines: string): string {
  return `${SAMPLE}\n[web]\n${lines}\n`;
}

/** A plugin that tries to get around the door. */
const careless = definePlugin({
  name: 'careless',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Routes that ask for no authentication.',
  register(ctx) {
    ctx.route({ method: 'GET', path: '/careless', options: { auth: false }, handler: () => 'come in' });
  },
});

describe('authentication', () => {
  let api: ApiFixture;
  const open = async (toml: string, options: FixtureOptions = {}): Promise<ApiFixture> =>
    (api = await createApi({ toml, ...options }));
  afterEach(() => api.close());

  it('asks nobody while no password is set', async () => {
    await open(SAMPLE);
    assert.equal((await api.get('/api/status')).status, 200);
    assert.equal((await api.get('/api/status', basic('any', 'thing'))).status, 200);
  });

  it('asks on every route, known, unknown or unreadable, and never on /healthz', async () => {
    await open(withWeb('password = "pw"'), { plugins: [...API_PLUGINS, careless as Plugin] });
    const paths = [
      '/api/status',
      '/api/status/photos',
      '/api/config',
      '/api/logs',
      '/api/plugins',
      '/careless',
      '/nothing/here',
      '/',
      '/%E4%B8',
      '/healthz/',
      '/healthz?a',
    ];
    for (const path of paths) {
      const answer = await api.get(path);
      assert.equal(answer.status, 401, path);
      assert.equal(answer.headers['www-authenticate'], 'Basic realm="mountkeeper", charset="UTF-8"');
    }
    for (const path of [
      '/api/config',
      '/api/bwlimit',
      '/api/reconnect/photos',
      '/api/preset/office',
      '/healthz',
    ]) {
      assert.equal((await api.post(path)).status, 401, path);
    }
    assert.deepEqual(api.sent, []);
    const health = await api.get('/healthz');
    assert.deepEqual([health.status, health.body], [200, 'ok']);
    assert.equal((await api.get('/careless', basic('admin', 'pw'))).body, 'come in');
    assert.equal((await api.get('/nothing/here', basic('admin', 'pw'))).status, 404);
  });

  it('lets in the right name and password only', async () => {
    await open(withWeb('username = "用户"\npassword = "pä:ss 词"'));
    assert.equal((await api.get('/api/status', basic('用户', 'pä:ss 词'))).status, 200);
    assert.equal((await api.get('/api/status', basic('用户', 'pä:ss 词'.normalize('NFD')))).status, 200);
    const wrong: Record<string, string>[] = [
      { authorization: 'Bearer abc' },
      { authorization: 'Basic' },
      { authorization: 'Basic !!!' },
      { authorization: `Basic ${Buffer.from('用户').toString('base64')}` },
    ];
    for (const headers of wrong)
      assert.equal((await api.get('/api/status', headers)).status, 401, JSON.stringify(headers));
    assert.equal((await api.get('/api/status', basic('admin', 'pä:ss 词'))).status, 401);
  });

  it('follows a change of name and password without a restart', async () => {
    await open(withWeb('password = "old"'));
    assert.equal((await api.get('/api/status', basic('admin', 'old'))).status, 200);
    await api.apply(withWeb('password = "new"'));
    assert.equal((await api.get('/api/status', basic('admin', 'old'))).status, 401);
    await api.apply(withWeb('username = "root"\npassword = "old"'));
    assert.equal((await api.get('/api/status', basic('root', 'old'))).status, 200);
    await api.apply(SAMPLE);
    assert.equal((await api.get('/api/status')).status, 200);
  });

  it('takes a hash in place of the password', async () => {
    await open(withWeb(`password = "${await makeHash('grüße')}"`));
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api.get('/api/status', basic('admin', 'grüße'))),
    );
    assert.deepEqual(
      answers.map((answer) => answer.status),
      answers.map(() => 200),
    );
    assert.equal((await api.get('/api/status', basic('other', 'grüße'))).status, 401);
  });

  it('asks nobody who comes over the command socket, not even while the password cannot be looked up', async () => {
    await open(SAMPLE);
    await api.http.listenForCommands(api.folder);
    const overSocket = async (): Promise<unknown> => {
      const answer = await askOverSocket(
        api.folder,
        { method: 'GET', path: '/api/status' },
        AbortSignal.timeout(20_000),
      );
      return typeof answer === 'object' ? answer.status : answer;
    };
    const file = join(api.folder, 'password');
    await writeFile(file, 'pw\n');
    await api.apply(withWeb(`password = { file = ${JSON.stringify(file)} }`));
    assert.deepEqual(
      [await overSocket(), (await api.get('/api/status', { host: 'localhost' })).status],
      [200, 401],
    );
    await api.apply(SAMPLE);
    await api.get('/api/status');
    await api.apply(withWeb(`password = { file = ${JSON.stringify(file)} }`));
    await rm(file);
    assert.deepEqual(
      [await overSocket(), (await api.get('/api/status', { host: 'localhost' })).status],
      [200, 503],
    );
  });

  it('slows down a guesser but not a page that repeats one wrong password', async () => {
    await open(withWeb('password = "pw"'));
    const refused = async (password: string): Promise<void> =>
      assert.equal((await api.get('/api/status', basic('admin', password))).status, 401);
    const spans: number[] = [];
    for (let count = 0; count < 20; count += 1) spans.push(await timed(refused('stale')));
    // Were they slowed, each would take 250 ms at least. Some may, where this machine has much else to do.
    assert.ok(
      spans.filter((ms) => ms < 240).length >= 10,
      `repeating is not slowed: ${spans.map(Math.round).join(' ')}`,
    );
    const guessing = performance.now();
    for (const guess of ['one', 'two', 'three']) await refused(guess);
    assert.ok(performance.now() - guessing > 240, 'guessing is slowed');
  });

  it('lets nobody in while the password cannot be looked up, and says why in the log once', async () => {
    const env: NodeJS.ProcessEnv = { NOT_SET_ANYWHERE: 'pw' };
    await open(withWeb('password = { env = "NOT_SET_ANYWHERE" }'), { env });
    delete env['NOT_SET_ANYWHERE'];
    for (let count = 0; count < 3; count += 1) {
      assert.equal((await api.get('/api/status')).status, 503);
      assert.equal((await api.get('/api/status', basic('admin', ''))).status, 503);
    }
    assert.equal((await api.get('/healthz')).status, 200);
    const told = api.logLines.filter((line) => String(line['msg']).includes('nobody is let in'));
    assert.equal(told.length, 1);
    assert.match(JSON.stringify(told[0]), /NOT_SET_ANYWHERE/);
    assert.ok(!(await api.get('/api/status')).body.includes('NOT_SET_ANYWHERE'));
  });

  it('lets nobody in when the file of the password is empty or gone', async () => {
    await open(SAMPLE);
    const file = join(api.folder, 'password');
    await writeFile(file, 'pw\n');
    const toml = withWeb(`password = { file = ${JSON.stringify(file)} }`);
    await api.apply(toml);
    assert.equal((await api.get('/api/status', basic('admin', 'pw'))).status, 200);
    const changes: readonly (() => Promise<void>)[] = [() => writeFile(file, ''), () => rm(file)];
    for (const change of changes) {
      await writeFile(file, 'pw');
      await api.apply(SAMPLE);
      await api.get('/api/status');
      await api.apply(toml);
      await change();
      for (const password of ['', 'pw'])
        assert.equal((await api.get('/api/status', basic('admin', password))).status, 503);
    }
  });

  it('warns when others reach the server and no password is set', async () => {
    await open(withWeb('listen = "0.0.0.0"'));
    const [notice] = await api.host.hooks.collect('collectNotices');
    assert.equal(notice?.level, 'warning');
    assert.match(notice?.message ?? '', /web\.password/);
    assert.ok(
      api.logLines.some((line) => line['level'] === 40 && /without a password/.test(String(line['msg']))),
    );
    const isRoot = process.geteuid?.() === 0;
    for (const [text, notices] of [
      [SAMPLE, isRoot ? 1 : 0],
      [withWeb('listen = "::1"'), isRoot ? 1 : 0],
      [withWeb('listen = "0.0.0.0"\npassword = "pw"'), 0],
    ] as const) {
      await api.apply(text);
      assert.equal((await api.host.hooks.collect('collectNotices')).length, notices, text);
    }
  });

  it('never puts a password or a credential into the log', async () => {
    await open(withWeb('password = "very secret"'));
    await api.get('/api/status', basic('admin', 'guessed word'));
    await api.get('/api/status', basic('admin', 'very secret'));
    const text = JSON.stringify(api.logLines);
    assert.match(text, /wrong password/);
    for (const word of ['very secret', 'guessed word', Buffer.from('admin:very secret').toString('base64')])
      assert.ok(!text.includes(word));
  });
});

describe('a guard that is not active', () => {
  it('keeps every route shut but /healthz', async () => {
    const failing = definePlugin({
      name: 'auth',
      version: '1.0.0',
      apiVersion: 1,
      description: 'A guard that cannot start.',
      guard: true,
      register(ctx) {
        ctx.effect('never', () => {
          throw new Error('no way');
        });
      },
    });
    const rest = API_PLUGINS.filter((plugin) => plugin.name !== 'auth');
    const api = await createApi({ plugins: [failing as Plugin, ...rest] });
    const answers = await Promise.all(
      ['/api/status', '/api/config', '/nothing'].map((path) => api.get(path)),
    );
    const health = await api.get('/healthz');
    await api.close();
    for (const answer of answers) {
      assert.equal(answer.status, 503);
      assert.ok(answer.headers['retry-after']);
    }
    assert.equal(health.body, 'ok');
  });
});
