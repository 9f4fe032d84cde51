/** Signing in by a form and a cookie: who is let in by it, and what ends it. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../core/testing/manual-clock.ts';
import { definePlugin, openTo } from '../../core/sdk/index.ts';
import type { AnsweredRequest } from '../../core/contract/http.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import { makeHash } from '../../plugins/auth/password-hash.ts';
import { SKIPS } from '../runner/skips.ts';
import { hasBrowser, openBrowser } from '../support/dashboard/chromium.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';
import { API_PLUGINS, createApi, SAMPLE } from './fixture.ts';
import type { Answer, ApiFixture } from './fixture.ts';

const BROWSER = { accept: 'text/html,application/xhtml+xml', 'user-agent': 'Firefox' };

describe('a sign-in', () => {
  let api: ApiFixture;
  let clock: ManualClock;
  let hash: string;
  let streams = 0;
  let told: AnsweredRequest[];
  const endless = definePlugin({
    name: 'endless',
    version: '1.0.0',
    apiVersion: 1,
    description: 'Answers never.',
    register(ctx) {
      const handler = (): Promise<string> => {
        streams += 1;
        return new Promise(() => undefined);
      };
      ctx.route({ method: 'GET', path: '/stream', options: openTo({ role: 'viewer' }), handler });
    },
  });
  const withWeb = (lines: string): string => `${SAMPLE}\n[web]\n${lines}\n`;
  const usual = (role = 'viewer'): string =>
    withWeb(`password = "pw"\n[[web.users]]\nname = "ada"\npassword_hash = "${hash}"\nrole = "${role}"`);

  beforeEach(async () => {
    hash = await makeHash('adas');
    clock = createManualClock();
    streams = 0;
    told = [];
    const http = { answered: (one: AnsweredRequest) => void told.push(one) };
    api = await createApi({ toml: usual(), clock, http, plugins: [...API_PLUGINS, endless as Plugin] });
  });
  afterEach(() => api.close());

  const signIn = (
    username: string,
    password: string,
    headers: Record<string, string> = {},
  ): Promise<Answer> =>
    api.call({
      method: 'POST',
      path: '/sign-in',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...BROWSER, ...headers },
      body: new URLSearchParams({ username, password }).toString(),
    });
  const cookieOf = ({ headers }: Answer): { cookie: string } => ({
    cookie: (headers['set-cookie']?.[0] ?? '').split(';')[0] ?? '',
  });
  const status = async (headers: Record<string, string>, path = '/api/status'): Promise<number> =>
    (await api.get(path, headers)).status;

  it('begins with the right password alone, and has its role', async () => {
    const right = await signIn('ada', 'adas');
    assert.deepEqual([right.status, right.headers.location], [303, '/']);
    assert.match(
      right.headers['set-cookie']?.[0] ?? '',
      /^mountkeeper_sign_in=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    assert.deepEqual(
      [await status(cookieOf(right)), await status(cookieOf(right), '/api/config')],
      [200, 403],
    );
    const admin = await signIn('admin', 'pw');
    assert.equal(await status(cookieOf(admin), '/api/config'), 200);
    const wrong = await signIn('ada', 'pw');
    assert.deepEqual([wrong.status, wrong.headers['set-cookie']], [401, undefined]);
    assert.match(wrong.body, /User name or password is wrong/);
  });

  it('is marked for TLS where the browser says that it came by that', async () => {
    const { port } = api;
    const { headers } = await signIn('ada', 'adas', {
      origin: `https://127.0.0.1:${port}`,
      host: `127.0.0.1:${port}`,
    });
    assert.match(headers['set-cookie']?.[0] ?? '', /^__Host-mountkeeper_sign_in=[\w-]{43};.*; Secure$/);
  });

  it('is asked for on a page that has the cookie of no sign-in, and elsewhere Basic is asked for', async () => {
    const page = await api.get('/', BROWSER);
    assert.deepEqual([page.status, typeof page.headers['www-authenticate']], [401, 'string']);
    assert.match(page.body, /<form method="post" action="\/sign-in">/);
    assert.match(
      String(page.headers['content-security-policy']),
      /default-src 'none'.*frame-ancestors 'none'/,
    );
    const ended = { cookie: `mountkeeper_sign_in=${'a'.repeat(43)}` };
    const again = await api.get('/', { ...BROWSER, ...ended });
    assert.deepEqual([again.status, again.headers['www-authenticate']], [401, undefined]);
    assert.match(again.body, /<form/);
    const script = await api.get('/api/status', { accept: 'text/html' });
    assert.deepEqual([script.status, typeof script.headers['www-authenticate']], [401, 'string']);
    assert.match(script.body, /"statusCode":401/);
    const form = await api.get('/sign-in', { 'accept-language': 'zh-CN' });
    assert.deepEqual([form.status, /<html lang="zh">.*登录/.test(form.body)], [200, true]);
  });

  it('ends by signing out, and its cookie is taken away', async () => {
    const cookie = cookieOf(await signIn('ada', 'adas'));
    const other = cookieOf(await signIn('ada', 'adas'));
    const out = await api.call({ method: 'POST', path: '/sign-out', headers: cookie });
    assert.deepEqual([out.status, out.headers.location], [303, '/sign-in']);
    assert.match(out.headers['set-cookie']?.[0] ?? '', /^mountkeeper_sign_in=;.*Max-Age=0$/);
    assert.deepEqual([await status(cookie), await status(other)], [401, 200]);
  });

  it('takes what is being sent over it along when it ends', async () => {
    const cookie = cookieOf(await signIn('ada', 'adas'));
    const stream = assert.rejects(api.get('/stream', cookie), /hang up|ECONNRESET|aborted/);
    await until('it is asked for', () => streams === 1, { timeoutMs: 30_000 });
    assert.equal((await api.call({ method: 'POST', path: '/sign-out', headers: cookie })).status, 303);
    await stream;
  });

  it('is listed and ended by administrators alone', async () => {
    const ada = cookieOf(await signIn('ada', 'adas'));
    await clock.advance(1);
    const admin = cookieOf(await signIn('admin', 'pw'));
    const listed = (await api.get('/api/sign-ins', admin)).json() as Record<string, string>[];
    assert.deepEqual(
      listed.map(({ name, role, browser, address }) => [name, role, browser, address]),
      [
        ['admin', 'admin', 'Firefox', '127.0.0.1'],
        ['ada', 'viewer', 'Firefox', '127.0.0.1'],
      ],
    );
    const end = (headers: Record<string, string>, id = listed[1]?.['id'] ?? ''): Promise<Answer> =>
      api.post(`/api/sign-ins/${id}/end`, undefined, headers);
    assert.deepEqual([await status(ada, '/api/sign-ins'), (await end(ada)).status], [403, 403]);
    assert.equal(await status(ada), 200);
    assert.deepEqual((await end(admin)).json(), { ok: true, message: 'Sign-in ended' });
    assert.deepEqual([await status(ada), await status(admin)], [401, 200]);
    assert.deepEqual((await end(admin)).json(), { ok: false, message: 'There is no such sign-in' });
    assert.ok(!JSON.stringify(listed).includes(ada.cookie.split('=')[1] ?? 'none'));
  });

  it('is replaced when somebody signs in again', async () => {
    const first = cookieOf(await signIn('ada', 'adas'));
    const second = cookieOf(await signIn('admin', 'pw', first));
    assert.notEqual(first.cookie, second.cookie);
    assert.deepEqual([await status(first), await status(second)], [401, 200]);
  });

  it('ends with the role, the password and the user that it began with', async () => {
    const [ada, admin] = [cookieOf(await signIn('ada', 'adas')), cookieOf(await signIn('admin', 'pw'))];
    await api.apply(usual('operator'));
    assert.deepEqual([await status(ada), await status(admin)], [401, 200]);
    const again = cookieOf(await signIn('ada', 'adas'));
    await api.apply(withWeb('password = "other"'));
    assert.deepEqual([await status(again), await status(admin)], [401, 401]);
    await api.apply(usual());
    assert.deepEqual([await status(again), await status(admin)], [401, 401]);
  });

  it('is not begun or used by pages of other sites', async () => {
    const foreign = { origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' };
    assert.equal((await signIn('ada', 'adas', foreign)).status, 403);
    const cookie = cookieOf(await signIn('admin', 'pw'));
    const asked = await api.post('/api/bwlimit', { up: '1M' }, { ...cookie, ...foreign });
    assert.deepEqual([asked.status, api.sent], [403, []]);
    assert.equal((await api.post('/api/bwlimit', { up: '1M' }, cookie)).status, 200);
  });

  it('is begun by the form of a real browser', { skip: !hasBrowser && SKIPS.chromium.reason }, async () => {
    const scratch = await createScratch('sign-in');
    try {
      const page = await (await openBrowser(scratch)).newPage();
      await page.goto(`http://127.0.0.1:${api.port}/sign-in`);
      await page.fill('[name=username]', 'ada');
      await page.fill('[name=password]', 'adas');
      const sent = page.waitForResponse((response) => response.request().method() === 'POST');
      await page.click('button');
      assert.equal((await sent).status(), 303);
      const [cookie] = await page.context().cookies();
      assert.deepEqual([cookie?.name, cookie?.httpOnly], ['mountkeeper_sign_in', true]);
      assert.equal(await status({ cookie: `${cookie?.name}=${cookie?.value}` }), 200);
    } finally {
      await scratch.close();
    }
  });

  it('is told of to those who keep a record: a wrong password as one that was tried, and never itself', async () => {
    await signIn('ada', 'guess');
    await api.get('/', BROWSER);
    await signIn('ada', 'adas');
    assert.deepEqual(
      told.map(({ hasAuthorization, path, principal, status: code }) => [
        path,
        code,
        hasAuthorization,
        principal?.name,
      ]),
      [
        ['/sign-in', 401, true, undefined],
        ['/', 401, false, undefined],
        ['/sign-in', 303, true, 'ada'],
      ],
    );
    assert.doesNotMatch(JSON.stringify(told), /guess|adas/);
  });

  it('is guessed at no faster than Basic', async () => {
    let isOver = false;
    const wrong = Array.from({ length: 24 }, (_, index) => signIn('ada', `guess ${index}`));
    const answered = Promise.all(wrong).finally(() => (isOver = true));
    while (!isOver) {
      await clock.advance(2_000);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const seen = await answered;
    assert.deepEqual(new Set(seen.map((one) => one.status)), new Set([401, 429]));
  });
});
