/**
 * A request whose head came while its sender was let in, and the last byte of its body when he is no more. The
 * listener is a real one; the body is begun when the web server says that it waits for it.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../core/testing/manual-clock.ts';
import { definePlugin, openTo, principalOf } from '../../core/sdk/index.ts';
import type { ConfigChanges } from '../../core/contract/config-changes.ts';
import type { ConfigApplication } from '../../core/contract/config.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import dashboard from '../../plugins/dashboard/index.ts';
import { digest } from '../../plugins/dashboard/settings/verdict.ts';
import { makeHash } from '../../plugins/auth/password-hash.ts';
import { hashToken, makeToken } from '../../plugins/auth/token.ts';
import { sharesOf } from '../support/shares/fake-shares.ts';
import { until, within } from '../support/platform/wait.ts';
import { API_PLUGINS, createApi, overriding, SAMPLE } from './fixture.ts';
import type { Answer, ApiFixture, FixtureOptions } from './fixture.ts';

const TOKEN = makeToken();
const JSON_BODY = { 'content-type': 'application/json' };

const basic = (name: string, password: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
});

/** Of POST /api/config, and of what the page applies. */
let handled = 0;

/** Carries something out, as every button does. */
const doer = definePlugin({
  name: 'doer',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Does what it is told.',
  register(ctx) {
    const options = openTo({ role: 'operator' });
    const handler = (request: Parameters<typeof principalOf>[0]): string =>
      `done for ${principalOf(request)?.name ?? 'anybody'}`;
    ctx.route({ method: 'POST', path: '/do', options, handler });
    const register = (server: Parameters<Parameters<typeof ctx.hapi>[0]['register']>[0]): void =>
      server.ext('onPreHandler', ({ path }, h) => {
        if (path === '/api/config' || path === '/dashboard/do/settings/apply') handled += 1;
        return h.continue;
      });
    ctx.hapi({ name: 'doer/count', register }, {});
  },
});

describe('a request whose body comes slowly', () => {
  let api: ApiFixture;
  let clock: ManualClock;
  let hash: string;
  before(async () => {
    hash = await makeHash('evil');
  });
  beforeEach(() => {
    clock = createManualClock();
  });
  afterEach(() => api.close());

  const open = async (toml: string, options: FixtureOptions = {}): Promise<ApiFixture> =>
    (api = await createApi({ toml, clock, plugins: [...API_PLUGINS, doer as Plugin], ...options }));
  const withWeb = (lines: string): string => `${SAMPLE}\n[web]\n${lines}\n`;
  const eve = (role: string): string =>
    `[[web.users]]\nname = "eve"\npassword_hash = "${hash}"\nrole = "${role}"\n`;
  const withEve = (role = 'admin'): string => withWeb(`password = "pw"\n${eve(role)}`);
  const withToken = (more: string): string =>
    withWeb(
      `password = "pw"\n[[web.tokens]]\nname = "script"\ntoken_hash = "${hashToken(TOKEN)}"\nrole = "admin"\n${more}`,
    );
  const ROOT_ALONE = withWeb('password = "pw"');

  /** Sends all but the last byte; the returned function sends that, and gives the answer. */
  const halfSent = async (
    path: string,
    headers: Record<string, string>,
    body: unknown = {},
  ): Promise<() => Promise<Pick<Answer, 'status' | 'body' | 'headers'>>> => {
    const bytes = Buffer.from(JSON.stringify(body));
    const request = httpRequest({
      host: '127.0.0.1',
      port: api.port,
      method: 'POST',
      path,
      agent: false,
      headers: { ...JSON_BODY, expect: '100-continue', 'content-length': bytes.length, ...headers },
    });
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    request.flushHeaders();
    await within('the web server waits for the body', 20_000, once(request, 'continue'));
    request.write(bytes.subarray(0, -1));
    return async () => {
      request.end(bytes.subarray(-1));
      const [response] = await within('an answer', 20_000, answered);
      const chunks = (await response.toArray()) as Buffer[];
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: Buffer.concat(chunks).toString(),
      };
    };
  };

  it('does not put its sender back who was removed meanwhile', async () => {
    await open(withEve());
    const finish = await halfSent('/api/config', basic('eve', 'evil'), { toml: withEve() });
    await api.apply(ROOT_ALONE);
    const sent = api.sent.length;
    const { status, headers } = await finish();
    assert.deepEqual([status, headers['www-authenticate']?.slice(0, 5)], [401, 'Basic']);
    assert.deepEqual([api.sent.length, api.config.current.config.web.users.length], [sent, 0]);
  });

  it('is refused as soon as the document that removes its sender is accepted, before any plugin is told', async () => {
    await open(withEve());
    assert.equal((await api.post('/do', {}, basic('eve', 'evil'))).status, 200);
    assert.equal((await api.post('/api/config', { toml: ROOT_ALONE }, basic('admin', 'pw'))).status, 200);
    assert.equal((await api.post('/do', {}, basic('eve', 'evil'))).status, 401);
  });

  /** Eve is being removed, and sends something that waits for its turn meanwhile. */
  const whileRemoved = async (send: (text: string) => Promise<Answer>): Promise<Answer> => {
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    await open(withEve(), {
      plugins: [...API_PLUGINS, doer as Plugin, dashboard as Plugin],
      shares: sharesOf(() => []),
      wrapConfig: (config) => {
        const apply = config.apply.bind(config);
        return overriding(config, {
          apply: async (application: ConfigApplication) => {
            await begun;
            return apply(application);
          },
        });
      },
    });
    handled = 0;
    const removal = api.post('/api/config', { toml: ROOT_ALONE }, basic('admin', 'pw'));
    await until('the removal is being carried out', () => handled === 1, { timeoutMs: 20_000 });
    const back = send(`${withEve()}# again\n`);
    await until('the next one waits for its turn', () => handled === 2, { timeoutMs: 20_000 });
    setImmediate(begin);
    assert.equal((await removal).status, 200);
    const answer = await back;
    assert.deepEqual([api.config.current.config.web.users, await api.fileText()], [[], ROOT_ALONE]);
    return answer;
  };

  it('does not put its sender back who waited for the turn while he was removed', async () => {
    const { status } = await whileRemoved((toml) => api.post('/api/config', { toml }, basic('eve', 'evil')));
    assert.equal(status, 401);
  });

  it('does not put its sender back from the page either, which need not say of which version its text is', async () => {
    const applied = (text: string, more = {}): Promise<Answer> =>
      api.call({
        method: 'POST',
        path: '/dashboard/do/settings/apply',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'hx-request': 'true',
          ...basic('eve', 'evil'),
        },
        body: new URLSearchParams({ text, seen: digest(text), ...more }).toString(),
      });
    const changes = (): ConfigChanges => api.host.service('configChanges') as ConfigChanges;
    const { body } = await whileRemoved((text) => applied(text));
    assert.match(body, /data-tone="bad".*not let in any more/s);
    await api.apply(withEve());
    const text = `${withEve()}# more\n`;
    assert.match((await applied(text)).body, /data-tone="bad"/);
    assert.equal(api.config.current.text, withEve(), 'nor does she who says of no version which it is');
    assert.match((await applied(text, { version: changes().version })).body, /data-tone="good"/);
  });

  it('is carried out for who still may', async () => {
    await open(withEve());
    const finish = await halfSent('/do', basic('eve', 'evil'));
    await api.apply(`${withEve()}[[web.users]]\nname = "bob"\npassword_hash = "${hash}"\nrole = "viewer"\n`);
    assert.deepEqual([(await finish()).body], ['done for eve']);
  });

  it('is refused to who is less by now, and to whom another password lets in', async () => {
    await open(withEve());
    const less = await halfSent('/do', basic('eve', 'evil'));
    await api.apply(withEve('viewer'));
    assert.equal((await less()).status, 401);
    const other = await halfSent('/do', basic('admin', 'pw'));
    await api.apply(withWeb('password = "another"'));
    assert.equal((await other()).status, 401);
  });

  it('is refused when a file has another password by now', async () => {
    await open(SAMPLE);
    const file = join(api.folder, 'password');
    await writeFile(file, 'pw');
    await api.apply(withWeb(`password = { file = ${JSON.stringify(file)} }`));
    const finish = await halfSent('/do', basic('admin', 'pw'));
    await writeFile(file, 'another');
    await clock.advance(5_000);
    assert.equal((await finish()).status, 401);
  });

  it('is refused to a token that was revoked or has expired', async () => {
    await open(withToken(''));
    const bearer = { authorization: `Bearer ${TOKEN}` };
    const revoked = await halfSent('/do', bearer);
    await api.apply(ROOT_ALONE);
    const { status, headers } = await revoked();
    assert.deepEqual([status, headers['www-authenticate']?.slice(0, 6)], [401, 'Bearer']);
    const expires = new Date(clock.now() + 5_000).toISOString();
    await api.apply(withToken(`expires = "${expires}"`));
    const expired = await halfSent('/do', bearer);
    await clock.advance(6_000);
    assert.equal((await expired()).status, 401);
  });

  it('is refused to a sign-in that was ended', async () => {
    await open(withEve());
    const { headers } = await api.call({
      method: 'POST',
      path: '/sign-in',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'username=eve&password=evil',
    });
    const cookie = { cookie: (headers['set-cookie']?.[0] ?? '').split(';')[0] ?? '' };
    const finish = await halfSent('/do', cookie);
    const [signIn] = (await api.get('/api/sign-ins', basic('admin', 'pw'))).json() as { id: string }[];
    await api.post(`/api/sign-ins/${signIn?.id}/end`, undefined, basic('admin', 'pw'));
    const answer = await finish();
    assert.deepEqual([answer.status, answer.headers['www-authenticate']], [401, undefined]);
  });

  it('is refused when nobody was asked as it began, and somebody is by now', async () => {
    await open(SAMPLE);
    const [refused, first] = [await halfSent('/do', {}), await halfSent('/do', {})];
    assert.equal((await first()).body, 'done for anybody');
    await api.apply(ROOT_ALONE);
    assert.equal((await refused()).status, 401);
  });

  it('is refused when the plugin that asks was switched on meanwhile', async () => {
    await open(`${ROOT_ALONE}\n[plugins.auth]\nenabled = false\n`);
    const finish = await halfSent('/do', {});
    await api.apply(ROOT_ALONE);
    const { status, body } = await finish();
    assert.deepEqual([status, /"auth\\" was switched on meanwhile/.test(body)], [503, true]);
  });
});
