/**
 * What comes over plain HTTP from another machine brings no password in. Where a request comes from is played: in
 * the header of a test, by a plugin that runs before the one that asks. A real second machine asks in
 * test/e2e/exporters/discovery.test.ts.
 */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { afterEach, describe, it } from 'node:test';
import type { Request } from '@hapi/hapi';
import { definePlugin, isInClear, trustedProxies } from '../../core/sdk/index.ts';
import type { ConfigChanges } from '../../core/contract/config-changes.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import { createClock } from '../../core/platform/clock.ts';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import { hashToken, makeToken } from '../../plugins/auth/token.ts';
import { until } from '../support/platform/wait.ts';
import { API_PLUGINS, createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const TOKEN = makeToken();
const AFAR = { 'x-played': 'afar' };
const RIGHT = { authorization: `Basic ${Buffer.from('admin:pw').toString('base64')}` };
const WRONG = { authorization: `Basic ${Buffer.from('admin:no').toString('base64')}` };
const BEARER = { authorization: `Bearer ${TOKEN}` };
const BROWSER = { accept: 'text/html,application/xhtml+xml' };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const fromAfar = definePlugin({
  name: 'from-afar',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Plays another machine.',
  register(ctx) {
    const register = (server: Parameters<Parameters<typeof ctx.hapi>[0]['register']>[0]): void => {
      const play = (request: Request, h: { readonly continue: symbol }): symbol => {
        if (request.headers['x-played'] === 'afar') Object.assign(request.client, { isInClear: true });
        return h.continue;
      };
      server.ext('onRequest', play, { before: 'auth/http-basic' });
    };
    ctx.hapi({ name: 'from-afar/play', register }, {});
  },
});

const withWeb = (lines: string): string =>
  `${SAMPLE}\n[web]\n${lines}\n[[web.tokens]]\nname = "script"\ntoken_hash = "${hashToken(TOKEN)}"\nrole = "viewer"\n`;

describe('what everybody on the way could read', () => {
  let api: ApiFixture;
  const open = async (toml: string, clock = createClock()): Promise<ApiFixture> =>
    (api = await createApi({ toml, clock, plugins: [...API_PLUGINS, fromAfar as Plugin] }));
  afterEach(() => api.close());

  it('is no way in: right and wrong passwords, tokens and nothing at all get one sentence', async () => {
    await open(withWeb('password = "pw"'));
    const answers = [];
    for (const headers of [RIGHT, WRONG, BEARER, {}, { cookie: `mountkeeper_sign_in=${'a'.repeat(43)}` }])
      answers.push(await api.get('/api/status', { ...headers, ...AFAR }));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [403]);
    assert.equal(new Set(answers.map(({ body }) => body)).size, 1);
    assert.match(answers[0]?.body ?? '', /\[web\.tls\].*web\.plain_http = true/);
    // Nobody is asked to send one.
    assert.equal(answers[3]?.headers['www-authenticate'], undefined);
    assert.equal((await api.get('/api/status', RIGHT)).status, 200);
    assert.equal((await api.get('/api/status', BEARER)).status, 200);
    assert.equal((await api.get('/healthz', AFAR)).status, 200);
    // None of them was compared with anything.
    assert.deepEqual(
      api.logLines.filter((line) => /wrong password/.test(String(line['msg']))),
      [],
    );
  });

  it('is told browsers on the page to sign in, which asks for nothing, in their language', async () => {
    await open(withWeb('password = "pw"'));
    for (const [language, words] of [
      ['en', /<html lang="en">.*Nobody can sign in here/],
      ['zh', /<html lang="zh">.*无法在此登录/],
    ] as const) {
      const headers = { ...BROWSER, ...AFAR, 'accept-language': language };
      for (const page of [await api.get('/sign-in', headers), await api.get('/', headers)]) {
        assert.equal(page.status, 403);
        assert.match(page.body, words);
        assert.doesNotMatch(page.body, /<form|<input/);
      }
    }
    const call = { method: 'POST', path: '/sign-in', body: 'username=admin&password=pw' } as const;
    const signed = await api.call({ ...call, headers: { ...FORM, ...AFAR } });
    assert.deepEqual([signed.status, signed.headers['set-cookie']], [403, undefined]);
    assert.equal((await api.call({ ...call, headers: FORM })).status, 303);
  });

  it('is nothing where nobody is asked, and all of it where that is allowed by name', async () => {
    await open(SAMPLE);
    assert.equal((await api.get('/api/status', AFAR)).status, 200);
    await api.apply(withWeb('password = "pw"\nplain_http = true'));
    assert.equal((await api.get('/api/status', { ...RIGHT, ...AFAR })).status, 200);
    assert.equal((await api.get('/api/status', { ...WRONG, ...AFAR })).status, 401);
  });

  for (const [what, lines] of [
    ['password', 'password = "pw"'],
    ['token', ''],
  ] as const)
    it(`is taken back when the page has shut itself out by the first ${what}`, async () => {
      const clock = createManualClock();
      await open(SAMPLE, clock);
      const changes = api.host.service('configChanges') as ConfigChanges;
      const { ok } = await changes.submit({ text: withWeb(lines), by: 'page', onTrial: true });
      assert.equal(ok, true);
      await api.host.apply(api.config.current);
      assert.equal((await api.get('/api/status', AFAR)).status, 403);
      await clock.advance(61_000);
      await until('the first text is back', () => api.config.current.text === SAMPLE, { timeoutMs: 5_000 });
      await api.host.apply(api.config.current);
      assert.equal((await api.get('/api/status', AFAR)).status, 200);
    });

  it('is said beforehand of a document that listens further, and cannot be allowed over HTTP', async () => {
    await open(withWeb('password = "pw"'));
    const warned = async (lines: string, origin: 'file' | 'http' = 'file') => {
      const check = await api.config.check(withWeb(lines), origin);
      return check.ok ? check.loaded.warnings.filter((one) => one.includes('plain_http')) : [check.message];
    };
    const far = 'password = "pw"\nlisten = "0.0.0.0"\n';
    for (const origin of ['file', 'http'] as const)
      assert.match(
        (await warned(far, origin)).join(),
        /no password, token or sign-in is taken: set \[web\.tls\]/,
      );
    for (const rest of ['plain_http = true', 'trusted_proxies = ["192.0.2.1"]', 'tls = { self_made = true }'])
      assert.deepEqual(await warned(far + rest), [], rest);
    assert.deepEqual(await warned('password = "pw"'), []);
    assert.match((await warned('password = "pw"\nplain_http = true', 'http')).join(), /web\.plain_http/);
  });

  it('cannot be allowed over HTTP by naming a proxy, nor by a wider range of one', async () => {
    const proxies = (list: string): string => withWeb(`password = "pw"\ntrusted_proxies = ${list}`);
    const toml = proxies('["192.0.2.1"]');
    await open(toml);
    for (const list of ['["0.0.0.0/0"]', '["192.0.2.0/24"]', '["192.0.2.1", "198.51.100.7"]']) {
      const { status, body } = await api.post('/api/config', { toml: proxies(list) }, RIGHT);
      assert.deepEqual(
        [status, /web\.trusted_proxies cannot be changed over HTTP/.test(body)],
        [400, true],
        body,
      );
    }
    assert.deepEqual([await api.fileText(), api.sent], [toml, []]);
    const emptied = await api.post('/api/config', { toml: proxies('[]') }, RIGHT);
    assert.equal(emptied.status, 200, emptied.body);
    assert.equal((await api.post('/api/config', { toml: proxies('["192.0.2.1"]') }, RIGHT)).status, 400);
  });
});

describe('whether others could read a request', () => {
  const proxies = trustedProxies(['192.0.2.0/28']);
  const from = (remoteAddress: string | undefined, socket: object = {}): IncomingMessage =>
    ({ socket: Object.assign(socket, { remoteAddress }) }) as unknown as IncomingMessage;

  it('is told by its way: loopback, a trusted proxy and TLS keep it', () => {
    for (const address of [
      '127.0.0.1',
      '127.8.9.1',
      '::1',
      '::ffff:127.0.0.1',
      '192.0.2.7',
      '::ffff:192.0.2.7',
    ])
      assert.equal(isInClear(from(address), proxies), false, address);
    for (const address of ['192.0.2.16', '::ffff:10.0.0.1', '2001:db8::1', 'fe80::1', undefined])
      assert.equal(isInClear(from(address), proxies), true, address);
    // This machine asks itself by its address in the network; a Unix socket has none.
    const own = { localAddress: '::ffff:192.0.2.20' };
    assert.equal(isInClear(from('::ffff:192.0.2.20', own), proxies), false);
    assert.equal(isInClear(from('::ffff:192.0.2.21', own), proxies), true);
    assert.equal(isInClear(from(undefined, { localAddress: undefined }), proxies), true);
    const secured = Object.create(TLSSocket.prototype) as Socket;
    Object.defineProperty(secured, 'remoteAddress', { writable: true, value: '' });
    assert.equal(isInClear(from('192.0.2.16', secured), proxies), false);
  });
});
