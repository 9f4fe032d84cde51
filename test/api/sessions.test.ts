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
      const options = openTo({ role: 'viewer', isPage: true });
      ctx.route({ method: ['GET', 'POST'], path: '/page/{name}', options, handler: () => 'come in' });
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

  const send = (fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Answer> =>
    api.call({
      method: 'POST',
      path: '/sign-in',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...BROWSER, ...headers },
      body: new URLSearchParams(fields).toString(),
    });
  const signIn = (username: string, password: string, headers?: Record<string, string>): Promise<Answer> =>
    send({ username, password }, headers);
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

  it('is what a browser is led to that opens a page, and back from there to the page alone', async () => {
    const page = '/page/a%20b?span=day&q=%22%3E';
    const led = await api.get(page, { ...BROWSER, 'sec-fetch-mode': 'navigate' });
    const { location = '' } = led.headers;
    assert.deepEqual([led.status, led.headers['www-authenticate']], [303, undefined]);
    assert.equal(location, `/sign-in?back=${encodeURIComponent(page)}`);
    const form = await api.get(location, BROWSER);
    const [, back = ''] = /name="back" value="([^"]*)"/.exec(form.body) ?? [];
    assert.equal(back, page.replaceAll('&', '&#38;'));
    const wrong = await send({ username: 'ada', password: 'no', back: page });
    assert.deepEqual([wrong.status, wrong.body.includes(`value="${back}"`)], [401, true]);
    assert.equal((await send({ username: 'ada', password: 'adas', back: page })).headers.location, page);
    const elsewhere = ['//evil.example', '/\\evil.example', 'https://evil.example/', '/a\r\nset-cookie: x=1'];
    for (const bad of elsewhere) {
      const { body } = await api.get(`/sign-in?back=${encodeURIComponent(bad)}`, BROWSER);
      assert.match(body, /name="back" value="\/"/, bad);
      const answer = await send({ username: 'ada', password: 'adas', back: bad });
      assert.deepEqual(
        [answer.status, answer.headers.location, answer.headers['set-cookie']?.length],
        [303, '/', 1],
      );
    }
    const several = await api.get('/sign-in?back=/a&back=//evil.example', BROWSER);
    assert.deepEqual([several.status, /value="\/"/.test(several.body)], [200, true]);
    const script = await api.get('/sign-in?back=/%22%3E%3Cscript%3E', BROWSER);
    assert.ok(!script.body.includes('"><script>'));
  });

  it('is nothing that programs are led to, whatever they ask for', async () => {
    const programs: readonly (readonly [string, Record<string, string>])[] = [
      ['/page/a', {}],
      ['/page/a', { accept: '*/*' }],
      ['/page/a', { ...BROWSER, 'sec-fetch-mode': 'cors' }],
      ['/page/a', { ...BROWSER, authorization: `Basic ${btoa('ada:wrong')}` }],
      ['/stream', BROWSER],
      ['/api/status', BROWSER],
      ['/nothing/here', BROWSER],
    ];
    for (const [path, headers] of programs) {
      const { status: code, headers: said } = await api.get(path, headers);
      assert.deepEqual(
        [code, typeof said['www-authenticate'], said.location],
        [401, 'string', undefined],
        path,
      );
    }
  });

  it('is named to what a page loads, without the question of the browser', async () => {
    const at = 'http://127.0.0.1:8090/page/a?span=day';
    const part = await api.get('/page/part', { 'hx-request': 'true', 'hx-current-url': at });
    assert.deepEqual(
      [part.status, part.headers['www-authenticate'], part.headers['hx-redirect']],
      [204, undefined, '/sign-in?back=%2Fpage%2Fa%3Fspan%3Dday'],
    );
    assert.equal(part.body, '');
    const foreign = { 'hx-request': 'true', 'hx-current-url': 'https://evil.example//evil.example' };
    assert.equal((await api.get('/page/part', foreign)).headers['hx-redirect'], '/sign-in?back=%2F');
    const stream = await api.get('/page/stream', { accept: 'text/event-stream' });
    assert.deepEqual([stream.status, stream.headers['www-authenticate']], [401, undefined]);
    const form = await api.call({ method: 'POST', path: '/page/a', headers: { ...BROWSER, referer: at } });
    assert.deepEqual([form.status, form.headers['www-authenticate']], [401, undefined]);
    assert.match(form.body, /name="back" value="\/page\/a\?span=day"/);
    const cookie = cookieOf(await signIn('ada', 'adas'));
    assert.equal((await api.get('/page/part', { ...cookie, 'hx-request': 'true' })).body, 'come in');
  });

  it('keeps the name after a wrong password, as text, and then asks for the password', async () => {
    const { status: refused, body } = await signIn('ada"><b>', 'wrong');
    assert.equal(refused, 401);
    assert.match(body, /name="username"[^>]* value="ada&#34;&#62;&#60;b&#62;">/);
    assert.match(body, /name="password"[^>]* autofocus>/);
    assert.doesNotMatch(body, /wrong"/);
    assert.match((await signIn('a'.repeat(300), 'wrong')).body, /value="" autofocus>/);
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
    for (const headers of [foreign, { origin: 'null' }, { 'sec-fetch-site': 'same-site' }]) {
      const refused = await signIn('ada', 'adas', headers);
      assert.deepEqual([refused.status, refused.headers['set-cookie']], [403, undefined]);
    }
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
