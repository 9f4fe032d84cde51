/**
 * The pages over HTTP, without a browser: policy, escaping, tabs of strangers, actions, and what a plugin
 * that fails leaves.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { definePlugin, html, pathOf, safeBack } from '../../../../core/sdk/index.ts';
import type { Tab, View } from '../../../../core/contract/dashboard.ts';
import { createTestHost } from '../../../../core/testing/test-host.ts';
import type { TestHost } from '../../../../core/testing/test-host.ts';
import { createClock } from '../../../../core/platform/clock.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import dashboard from '../../../../plugins/dashboard/index.ts';
import { takesGzip } from '../../../../plugins/dashboard/pages/answer.ts';
import { signOutAt, signOutRoute } from '../../../../plugins/dashboard/pages/sign-out.ts';
import { addressOf, reachedAs } from '../../../../plugins/dashboard/overview/share-data.ts';

const HOSTILE = '<script>alert(1)</script> "quoted" \u202E\u5BFF\u53F8 \u2019';
const ESCAPED = '&lt;script>alert(1)&lt;/script>';

const fellings: unknown[] = [];

const tabs: readonly Tab[] = [
  {
    id: 'garden',
    title: { en: 'Garden', zh: '花园' },
    order: 1,
    texts: { en: { hello: 'Hello {name}' }, zh: { hello: '你好 {name}' } },
    render: (view: View) => html`<p class="hello" title=${HOSTILE}>${view.t('hello', { name: HOSTILE })}</p>`,
    controls: (view) => view.button({ action: 'fell', label: 'Fell', confirm: 'Fell the old tree?' }),
    parts: {
      piece: (view) => html`<b>${view.query['what']}</b>`,
      dry: () => {
        throw new Error('the well is empty');
      },
    },
    actions: {
      greet: (view) => ({ ok: true, message: `hello ${view.form['who'] ?? ''}` }),
      fail: () => {
        throw new Error('the pond is dry');
      },
      fell: ({ form }) => {
        fellings.push(form);
        return { ok: true, message: 'felled' };
      },
      refuse: () => ({ ok: false, message: 'there is no space left' }),
    },
  },
  {
    id: 'broken',
    title: 'Broken',
    order: 2,
    render: () => {
      throw new Error('no');
    },
  },
  { id: 'greenhouse', title: 'Greenhouse', place: 'card', render: () => 'plain <b>text</b>' },
];

const garden = definePlugin({
  name: 'garden',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows a garden.',
  register(ctx) {
    for (const tab of tabs) ctx.tab(tab);
  },
});

describe('the pages', () => {
  let host: TestHost;
  const get = (url: string, headers: Readonly<Record<string, string>> = {}) => host.inject({ url, headers });
  const post = (url: string, payload: string, headers: Readonly<Record<string, string>> = {}) =>
    host.inject({
      method: 'POST',
      url,
      payload,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    });

  before(async () => {
    host = await createTestHost({ plugins: [dashboard, garden], clock: createClock() });
  });
  after(() => host.close());

  it("allow nothing but the dashboard's own files", async () => {
    const { headers, statusCode, payload } = await get('/');
    assert.equal(statusCode, 200);
    const policy = String(headers['content-security-policy']);
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.doesNotMatch(policy, /unsafe|data:|https?:|\*/);
    assert.doesNotMatch(
      payload,
      /<script(?![^>]*src="\/dashboard\/assets\/)|<style|\sstyle=|\son[a-z]+=|https?:\/\/(?!127\.0\.0\.1|www\.w3\.org)/,
    );
    const files = [...payload.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+)"/g)].map(
      ([, path = '']) => path,
    );
    assert.equal(files.length, 8);
    for (const file of files) {
      const answer = await get(file);
      assert.deepEqual(
        [answer.statusCode, /immutable/.test(String(answer.headers['cache-control']))],
        [200, true],
        file,
      );
    }
  });

  it("show a stranger's tab and card, in the reader's language, every value as text", async () => {
    const english = (await get('/tabs/garden')).payload;
    assert.match(english, /Hello &lt;script>/);
    assert.ok(english.includes(ESCAPED) && !english.includes('<script>alert'));
    assert.match(english, /title="&lt;script>alert\(1\)&lt;\/script> &quot;quoted&quot;/);
    const chinese = (await get('/tabs/garden', { 'accept-language': 'zh-CN' })).payload;
    assert.match(chinese, /<html lang="zh"/);
    assert.match(chinese, /你好 &lt;script>/);
    const overview = (await get('/', { 'accept-language': 'zh-CN' })).payload;
    assert.match(overview, /plain &lt;b>text&lt;\/b>/);
    assert.match(overview, />花园</);
  });

  it('show the fingerprint of each certificate, and until when it is valid', async (t) => {
    const shown = { label: 'webdav.tls', fingerprint: 'AB:CD:EF', endsAt: Date.UTC(2027, 1, 3) };
    const other = await createTestHost({
      plugins: [dashboard],
      services: { certificates: { list: () => [shown], keep: () => assert.fail('none is kept here') } },
      clock: createClock(),
    });
    t.after(() => other.close());
    const { payload } = await other.inject('/');
    assert.match(payload, /<code>webdav\.tls<\/code>, valid until 2027-02-03/);
    assert.match(payload, /<code class="fingerprint">AB:CD:EF</);
    assert.doesNotMatch((await get('/')).payload, /fingerprint/);
  });

  it("say where a stranger's plugin runs", async (t) => {
    const other = await createTestHost({
      plugins: [dashboard, garden],
      strangers: ['garden'],
      config: { plugins: { garden: { enabled: true } } },
      clock: createClock(),
    });
    t.after(() => other.close());
    const { payload } = await other.inject('/tabs/plugins');
    assert.match(payload, /\(from a third party; runs inside the daemon\)/);
    assert.doesNotMatch((await get('/tabs/plugins')).payload, /runs (inside|in a process)/);
  });

  it('answer for a tab that fails, and go on', async () => {
    const { statusCode, payload } = await get('/tabs/broken');
    assert.equal(statusCode, 200);
    assert.match(payload, /garden could not show this/);
    assert.equal((await get('/')).statusCode, 200);
  });

  it('answer for a part that fails with a sentence, and the log names its plugin once', async (t) => {
    const { log, entries } = collectLog();
    const other = await createTestHost({ plugins: [dashboard, garden], clock: createClock(), log });
    t.after(() => other.close());
    for (let time = 0; time < 2; time += 1) {
      const { statusCode, payload } = await other.inject('/dashboard/parts/garden/dry');
      assert.equal(statusCode, 500);
      assert.match(payload, /class="outcome" data-tone="bad".*The plugin garden could not show this/);
    }
    assert.deepEqual(
      entries
        .filter(({ msg }) => msg === 'a part of a tab was not drawn')
        .map(({ shownBy, tab }) => [shownBy, tab]),
      [['garden', 'garden']],
    );
  });

  it('answer parts and actions of tabs, and no others', async () => {
    assert.equal(
      (await get(`/dashboard/parts/garden/piece?what=${encodeURIComponent('<i>')}`)).payload,
      '<b>&lt;i></b>',
    );
    const greeted = await post(
      '/dashboard/do/garden/greet',
      `who=${encodeURIComponent('<img src=x onerror=alert(1)>')}`,
    );
    assert.match(greeted.payload, /data-tone="good".*hello &lt;img/);
    const failed = await post('/dashboard/do/garden/fail', '');
    assert.match(failed.payload, /data-tone="bad".*the pond is dry/);
    const full = await post('/dashboard/do/garden/refuse', '', { 'accept-language': 'zh-CN' });
    assert.match(full.payload, /data-tone="bad".*没有剩余空间/, 'the reason in the language of who asked');
    for (const path of [
      '/dashboard/parts/garden/none',
      '/dashboard/parts/none/piece',
      '/dashboard/parts/garden/constructor',
      '/tabs/none',
      '/tabs/greenhouse',
      '/shares/none',
      '/dashboard/assets/x/none',
    ]) {
      assert.equal((await get(path)).statusCode, 404, path);
    }
    assert.equal((await post('/dashboard/do/garden/constructor', '')).statusCode, 404);
    assert.equal((await get('/dashboard/do/garden/greet')).statusCode, 404, 'nothing is done by a GET');
  });

  it('tell an open page that a part is gone, in no error of its console', async () => {
    for (const path of ['/dashboard/parts/garden/none', '/dashboard/parts/none/piece']) {
      const { statusCode, payload } = await get(path, { 'hx-request': 'true' });
      assert.equal(statusCode, 286, path);
      assert.match(payload, /class="outcome" data-tone="bad".*not there any more/);
    }
    assert.equal((await post('/dashboard/do/none/x', '', { 'hx-request': 'true' })).statusCode, 404);
  });

  it('ask what a button asks also where no script does, and do it once somebody has answered', async () => {
    const button = (await get('/tabs/garden')).payload;
    assert.match(button, /name=":question" value="Fell the old tree\?"/);
    const form = 'who=%3Cb%3E&:question=Fell+the+old+tree%3F';
    const asked = await post('/dashboard/do/garden/fell', form, {
      referer: 'http://127.0.0.1/tabs/garden?a=1',
    });
    assert.equal(fellings.length, 0);
    assert.match(
      asked.payload,
      /<!doctype html><html lang="en"[^]*style\.css[^]*<p>Fell the old tree\?<\/p>/,
    );
    assert.match(asked.payload, /name="who" value="&lt;b>"/);
    assert.match(asked.payload, /href="\/tabs\/garden\?a=1"/);
    const done = await post(
      '/dashboard/do/garden/fell',
      'who=%3Cb%3E&:answer=yes&:back=%2Ftabs%2Fgarden%3Fa%3D1',
    );
    assert.match(done.payload, /<!doctype html>[^]*felled[^]*href="\/tabs\/garden\?a=1">Go back/);
    const led = await post('/dashboard/do/garden/greet', ':back=%2F%2Fevil.example');
    assert.doesNotMatch(led.payload, /evil/);
    await post('/dashboard/do/garden/fell', form, { 'hx-request': 'true' });
    assert.deepEqual(fellings, [{ who: '<b>' }, { who: '<b>' }]);
  });

  it('let no other site act, nor anybody with another kind of body', async () => {
    for (const path of ['/dashboard/do/garden/greet', '/dashboard/preferences', '/dashboard/sign-out']) {
      const refused = await post(path, '', { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' });
      assert.equal(refused.statusCode, 403, path);
    }
    assert.equal(
      (await post('/dashboard/do/garden/greet', '{}', { 'content-type': 'application/json' })).statusCode,
      415,
    );
  });

  it('remember a language and a theme, and lead back to nowhere else', async () => {
    const chosen = await post(
      '/dashboard/preferences',
      'language=zh&theme=dark&back=%2Ftabs%2Fgarden%3Fa%3D1',
    );
    assert.deepEqual([chosen.statusCode, chosen.headers.location], [303, '/tabs/garden?a=1']);
    const cookies = chosen.headers['set-cookie'] ?? [];
    assert.equal(cookies.length, 2);
    const page = (await get('/', { cookie: cookies.map((cookie) => cookie.split(';')[0]).join('; ') }))
      .payload;
    assert.match(page, /<html lang="zh" data-theme="dark"/);
    const nonsense = await post(
      '/dashboard/preferences',
      'language=%0d%0aset-cookie:x&theme=none&back=//evil.example',
    );
    assert.deepEqual([nonsense.headers.location, nonsense.headers['set-cookie']], ['/', undefined]);
    for (const back of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '/a b',
      '/a\r\nset-cookie: x=1',
      '/a\u0000',
      '/照片',
      `/${'a'.repeat(2_048)}`,
      '',
      undefined,
      ['/a'],
    ])
      assert.equal(safeBack(back), '/');
    assert.equal(safeBack('/tabs/logs?level=warn&q=%0d%0a'), '/tabs/logs?level=warn&q=%0d%0a');
    assert.equal(pathOf('https://evil.example/shares/%E7%85%A7?span=day#x'), '/shares/%E7%85%A7?span=day');
    for (const address of ['https://evil.example//other.example', 'tabs', '', undefined])
      assert.equal(pathOf(address), '/');
  });

  it('sign out by refusing what was right, once', async () => {
    const { location = '' } = (await post('/dashboard/sign-out', '')).headers;
    const refused = await get(location);
    assert.deepEqual(
      [refused.statusCode, refused.headers['www-authenticate']],
      [401, 'Basic realm="mountkeeper", charset="UTF-8"'],
    );
    assert.deepEqual(
      [(await get(location)).statusCode, (await get('/dashboard/sign-out')).statusCode],
      [303, 303],
    );
  });

  it('have one for the wall, when it is switched on: live, and without anything to press', async () => {
    assert.equal((await get('/status')).statusCode, 404);
    assert.equal((await get('/dashboard/events?:page=status')).statusCode, 404);
    await host.configure({ plugins: { dashboard: { status_page: true } } });
    const { statusCode, payload } = await get('/status');
    assert.equal(statusCode, 200);
    assert.match(payload, /class="sentence"/);
    assert.match(payload, /sse-connect="\/dashboard\/events\?[^"]*status/);
    assert.doesNotMatch(payload, /<form|<button|<nav/);
    await host.configure({});
    assert.equal((await get('/status')).statusCode, 404);
  });

  it('are gone with the plugin', async () => {
    await host.configure({ plugins: { dashboard: { enabled: false } } });
    assert.equal((await get('/')).statusCode, 404);
    assert.deepEqual(host.effects(), []);
    await host.configure({});
    assert.equal((await get('/')).statusCode, 200);
  });

  it('lead out of a session where that is ended, and others where the browser forgets the password', () => {
    const by = (credentials: object | null): string => signOutAt({ auth: { credentials } } as never);
    assert.deepEqual(
      [by({ signIn: 'x' }), by({}), by(null)],
      ['/sign-out', '/dashboard/sign-out', '/dashboard/sign-out'],
    );
  });

  it('lead whoever asks at the wrong one of them to the other with the same POST', async () => {
    const asked = async (credentials: object): Promise<unknown> => {
      const said: Record<string, unknown> = {};
      const h = {
        response: () => h,
        code: (code: number) => put({ code }),
        header: (_: string, to: string) => put({ to }),
      };
      const put = (what: object) => (Object.assign(said, what), h);
      const { handler } = signOutRoute({}) as unknown as {
        handler: (request: unknown, h: unknown) => unknown;
      };
      await handler({ method: 'post', query: {}, auth: { credentials } }, h);
      return [said['code'], String(said['to']).replace(/=.+/, '=')];
    };
    // Browsers send a POST again after 307, and a GET after 303.
    assert.deepEqual(await asked({ signIn: 'x' }), [307, '/sign-out']);
    assert.deepEqual(await asked({}), [303, '/dashboard/sign-out?once=']);
  });

  it('compress where they may', () => {
    const asking = (header: string) =>
      takesGzip({ raw: { req: { headers: { 'accept-encoding': header } } } } as never);
    assert.deepEqual(['gzip', 'br, gzip;q=0.5', 'gzip;q=0', 'identity', ''].map(asking), [
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('addresses', () => {
  it('lead where the server listens', () => {
    const offer = (addresses: readonly string[]) => ({ service: '_smb._tcp', port: 445, addresses });
    assert.equal(reachedAs(offer(['0.0.0.0']), '192.168.1.5'), '192.168.1.5');
    assert.equal(reachedAs(offer(['10.0.0.2', '192.168.1.5']), '192.168.1.5'), '192.168.1.5');
    assert.equal(reachedAs(offer(['127.0.0.1']), '192.168.1.5'), '127.0.0.1');
  });

  it('are as Finder and Explorer want them', () => {
    const smb = addressOf('SMB', '照片 a', { host: 'keeper', port: 445 });
    assert.deepEqual(
      [smb.address, smb.shown, smb.windows],
      ['smb://keeper/%E7%85%A7%E7%89%87%20a', 'smb://keeper/照片 a', '\\\\keeper\\照片 a'],
    );
    assert.deepEqual(addressOf('SMB', 'a', { host: '::1', port: 1445 }), {
      protocol: 'SMB',
      address: 'smb://[::1]:1445/a',
      shown: 'smb://[::1]:1445/a',
      windows: undefined,
    });
    assert.equal(addressOf('WebDAV', 'a', { host: 'h', port: 8080 }).address, 'http://h:8080/a/');
    const secure = { host: 'h', port: 8080, isSecure: true };
    assert.equal(addressOf('WebDAV', 'a', secure).address, 'https://h:8080/a/');
    assert.equal(addressOf('NFS', 'a', { host: 'h', port: 2049 }).address, 'nfs://h/a');
  });
});
