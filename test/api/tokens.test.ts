/** Users and tokens of the configuration: what they see of the status, and that a change counts at once. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterEach, describe, it } from 'node:test';
import { definePlugin, eventStream, openTo } from '../../core/sdk/index.ts';
import type { ConfigChanges } from '../../core/contract/config-changes.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import dirRefresh from '../../plugins/dir-refresh/index.ts';
import files from '../../plugins/files/index.ts';
import metrics from '../../plugins/metrics/index.ts';
import sessions from '../../plugins/sessions/index.ts';
import uploads from '../../plugins/uploads/index.ts';
import warmup from '../../plugins/warmup/index.ts';
import { makeHash } from '../../plugins/auth/password-hash.ts';
import { hashToken, makeToken } from '../../plugins/auth/token.ts';
import { whileTimePasses, within } from '../support/platform/wait.ts';
import { API_PLUGINS, createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture, FixtureOptions } from './fixture.ts';

const TOKEN = makeToken();
const BEARER = { authorization: `Bearer ${TOKEN}` };
const ANNA = { authorization: `Basic ${Buffer.from('anna:her word').toString('base64')}` };
const HASH = makeHash('her word');

const withToken = (rest: string, web = '[web]\npassword = "pw"'): string =>
  `${SAMPLE}\n${web}\n[[web.tokens]]\nname = "script"\ntoken_hash = "${hashToken(TOKEN)}"\n${rest}\n`;
const withAnna = async (role: string, web = '[web]\npassword = "pw"'): Promise<string> =>
  `${SAMPLE}\n${web}\n[[web.users]]\nname = "anna"\npassword_hash = "${await HASH}"\nrole = "${role}"\n`;

const withTwo = async (one: string, other: string): Promise<string> => {
  const hash = await HASH;
  const users = [one, other].map(
    (name) => `[[web.users]]\nname = "${name}"\npassword_hash = "${hash}"\nrole = "viewer"\n`,
  );
  return `${SAMPLE}\n${users.join('')}`;
};

/** What the daemon has beside the API: nothing is mounted. */
const daemonServices = definePlugin({
  name: 'daemon-services',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Services of the core.',
  register(ctx) {
    ctx.provide('shares', () => ({ list: () => [], get: () => undefined }));
    ctx.provide('processes', () => ({ adopt: async () => undefined, recorded: async () => [] }) as never);
  },
});

/** Those with routes of shares. */
const SHARE_PLUGINS = [
  daemonServices,
  dirRefresh,
  metrics,
  sessions,
  uploads,
  warmup,
] as readonly unknown[] as readonly Plugin[];

/** A stream that never ends by itself. */
const streaming = definePlugin({
  name: 'streaming',
  version: '1.0.0',
  apiVersion: 1,
  description: 'A stream of events.',
  register(ctx) {
    ctx.route({
      method: 'GET',
      path: '/stream',
      options: openTo({ role: 'viewer' }),
      handler: (request, h) => eventStream(request, h, () => () => undefined),
    });
  },
});

describe('users and tokens', () => {
  let api: ApiFixture;
  const open = async (toml: string, options: FixtureOptions = {}): Promise<ApiFixture> =>
    (api = await createApi({ toml, plugins: [...API_PLUGINS, streaming as Plugin], ...options }));
  afterEach(() => api.close());

  /** Resolves with how it ended: never, while it is open. */
  async function stream(headers: Record<string, string>): Promise<{ readonly ended: Promise<string> }> {
    const request = httpRequest({
      host: '127.0.0.1',
      port: api.port,
      path: '/stream',
      headers,
      agent: false,
    });
    request.end();
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    assert.equal(answer.statusCode, 200);
    answer.on('error', () => undefined).resume();
    return { ended: new Promise((resolve) => answer.once('close', () => resolve('ended'))) };
  }

  const isOpen = async (one: { readonly ended: Promise<string> }): Promise<boolean> => {
    // An answer to another request comes after whatever was under way.
    await api.get('/healthz');
    return (await Promise.race([one.ended, Promise.resolve('open')])) === 'open';
  };

  it('bound to a share see nothing of another, in the status too', async () => {
    await open(withToken('role = "operator"\nshares = ["photos"]'));
    const rule = (share: string) => ({ share, path: share, newerThan: null, state: 'pending' });
    api.publish([{ name: 'photos' }, { name: 'secret place' }], {
      warmup: [rule('photos'), rule('secret place')] as never,
    });
    const mine = await api.get('/api/status', BEARER);
    const { shares, warmup } = mine.json() as { shares: { name: string }[]; warmup: { share: string }[] };
    assert.deepEqual(
      [shares.map(({ name }) => name), warmup.map(({ share }) => share)],
      [['photos'], ['photos']],
    );
    const whole = await api.get('/api/status', { authorization: `Basic ${btoa('admin:pw')}` });
    assert.match(whole.body, /secret place/);
    assert.notEqual(mine.headers.etag, whole.headers.etag);
    const others = ['/api/status/secret%20place', '/api/extensions/secret%20place', '/api/status/none'];
    for (const path of others) {
      const { status, body } = await api.get(path, BEARER);
      assert.deepEqual([path, status, body], [path, 404, '']);
    }
    for (const path of ['/api/notices', '/api/extensions', '/api/logs', '/api/bwlimit', '/stream'])
      assert.equal((await api.get(path, BEARER)).status, 403, path);
    assert.equal((await api.post('/api/reconnect/secret%20place', undefined, BEARER)).status, 404);
    assert.deepEqual(api.sent, []);
    assert.equal((await api.post('/api/reconnect/photos', undefined, BEARER)).status, 200);
    assert.deepEqual(api.sent, [{ command: 'reconnect', args: ['photos'] }]);
  });

  it('bound to a share are told of no other by any route that the API describes, whatever they ask it', async () => {
    const toml = withToken('role = "admin"\nshares = ["photos"]').replaceAll('照片 2024', 'secret place');
    await open(toml, { plugins: [...API_PLUGINS, streaming as Plugin, ...SHARE_PLUGINS] });
    const rule = (share: string) => ({ share, path: share, newerThan: null, state: 'pending' });
    api.publish([{ name: 'photos' }, { name: 'secret place', healthMessage: 'secret place is away' }], {
      warmup: [rule('photos'), rule('secret place')] as never,
    });
    const { paths } = (await api.get('/api/openapi.json', BEARER)).json() as {
      paths: Record<string, Record<string, unknown>>;
    };
    const asked = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
    );
    assert.ok(asked.length > 30, `${asked.length} routes`);
    const told: string[] = [];
    let answered = 0;
    for (const { method, path } of asked)
      // Its own share, the other one, and the other one on a way around by names of paths.
      for (const share of ['photos', 'secret%20place', 'photos%2F..%2Fsecret%20place', 'SECRET%20PLACE']) {
        const filled = path.replace(/\{(share|name)\}/, share).replaceAll(/\{\w+\}/g, 'x');
        const body = method === 'POST' ? JSON.stringify({ path: '../secret place' }) : undefined;
        const headers = { ...BEARER, ...(body !== undefined && { 'content-type': 'application/json' }) };
        const query = method === 'GET' ? '?share=secret%20place&path=..%2Fsecret%20place&lines=999' : '';
        const answer = await api.call({
          method,
          path: filled + query,
          headers,
          ...(body !== undefined && { body }),
        });
        answered += Number(answer.status < 300);
        const said = `${JSON.stringify(answer.headers)}${answer.body}`.replaceAll('../secret place', '');
        if (/secret.place/i.test(said))
          told.push(`${method} ${filled}: ${answer.status} ${said.slice(0, 200)}`);
        if (share !== 'photos' && path.includes('{share}')) assert.equal(answer.status, 404, filled);
      }
    assert.deepEqual(told, []);
    assert.ok(answered >= 5, `${answered} were answered`);
    assert.doesNotMatch(JSON.stringify(api.sent), /secret place/);
  });

  it('that are taken away are refused at once, and what they read ends', async () => {
    await open(withToken('role = "viewer"'), { clock: createManualClock() });
    const [taken, unchanged] = [
      await stream(BEARER),
      await stream({ authorization: `Basic ${btoa('admin:pw')}` }),
    ];
    assert.equal(await isOpen(taken), true);
    await api.apply(withToken('role = "viewer"', '[web]\npassword = "pw"\nhostnames = ["nas.lan"]'));
    assert.equal(await isOpen(taken), true, 'another change of the section ends nothing');
    await api.apply(`${SAMPLE}\n[web]\npassword = "pw"\n`);
    assert.equal(await within('the end of the stream', 20_000, taken.ended), 'ended');
    assert.equal((await api.get('/api/status', BEARER)).status, 401);
    assert.equal(await isOpen(unchanged), true);
  });

  it('end what is being read with the former password or name of the administrator, and nothing else', async () => {
    const web = (rest: string): string => `[web]\n${rest}\n`;
    const own = (name: string, password: string) => ({
      authorization: `Basic ${btoa(`${name}:${password}`)}`,
    });
    await open(withToken('role = "viewer"'), { clock: createManualClock() });
    const [reading, script] = [await stream(own('admin', 'pw')), await stream(BEARER)];
    await api.apply(withToken('role = "viewer"', web('password = "other"')));
    assert.equal(await within('the end of the stream', 20_000, reading.ended), 'ended');
    const again = await stream(own('admin', 'other'));
    await api.apply(withToken('role = "viewer"', web('password = "other"\nhostnames = ["nas.lan"]')));
    assert.equal(await isOpen(again), true, 'another change of the section ends nothing');
    await api.apply(withToken('role = "viewer"', web('password = "other"\nusername = "root"')));
    assert.equal(await within('the end of the stream', 20_000, again.ended), 'ended');
    assert.equal(await isOpen(script), true);
  });

  it('end what is being read by those who were not asked, once they are the first; so does a password', async () => {
    for (const next of [
      withToken('role = "viewer"', ''),
      await withAnna('viewer', ''),
      `${SAMPLE}\n[web]\npassword = "pw"\n`,
    ]) {
      await open(SAMPLE, { clock: createManualClock() });
      const unasked = await stream({});
      await api.apply(`${SAMPLE}\n[web]\nhostnames = ["nas.lan"]\n`);
      assert.equal(await isOpen(unasked), true);
      await api.apply(next);
      assert.equal(await within('the end of the stream', 20_000, unasked.ended), 'ended');
      if (!next.includes('password = "pw"')) await api.close();
    }
  });

  it('that get another role have it at once, also where they are reading', async () => {
    await open(await withAnna('operator'), { clock: createManualClock() });
    const reading = await stream(ANNA);
    assert.equal((await api.post('/api/bwlimit', { up: '1M' }, ANNA)).status, 200);
    await api.apply(await withAnna('viewer'));
    assert.equal(await within('the end of the stream', 20_000, reading.ended), 'ended');
    const { status, body } = await api.post('/api/bwlimit', { up: '1M' }, ANNA);
    assert.deepEqual(
      [status, (JSON.parse(body) as { message: string }).message],
      [403, 'This needs the role "operator"; "anna" is "viewer".'],
    );
    assert.equal((await api.get('/api/status', ANNA)).status, 200);
  });

  it('that expire are refused from then on, and what they read ends', async () => {
    const clock = createManualClock();
    const at = new Date(clock.now() + 60_000).toISOString();
    await open(withToken(`role = "viewer"\nexpires = "${at}"`), { clock });
    const reading = await stream(BEARER);
    await clock.advance(59_000);
    assert.equal(await isOpen(reading), true);
    await clock.advance(3_000);
    assert.equal(await within('the end of the stream', 20_000, reading.ended), 'ended');
    const { status, body, headers } = await api.get('/api/status', BEARER);
    assert.deepEqual(
      [status, headers['www-authenticate']],
      [401, 'Bearer realm="mountkeeper", error="invalid_token"'],
    );
    assert.match(body, /not known, or it has expired/);
  });

  it('shut the door also where no password is set', async () => {
    for (const toml of [withToken('role = "viewer"', ''), await withAnna('viewer', '')]) {
      await open(toml);
      const nobody = { authorization: `Basic ${btoa('admin:')}` };
      const answers = [await api.get('/api/status'), await api.get('/api/status', nobody)];
      assert.deepEqual(
        answers.map(({ status }) => status),
        [401, 401],
      );
      assert.deepEqual(await api.host.hooks.collect('collectNotices'), []);
      if (toml.includes('web.users')) break;
      await api.close();
    }
    assert.equal((await api.get('/api/status', ANNA)).status, 200);
  });

  it('cannot be taken away to the last where that opens the door', async () => {
    const sentence = /takes the last user or token away, .* set web\.password first/;
    const closed = await withAnna('admin', '');
    await open(closed);
    const tried = await api.config.check(SAMPLE, 'file');
    assert.match(tried.ok ? 'taken' : tried.message, sentence);
    await writeFile(api.configFile, SAMPLE);
    const edited = await api.config.loadFile();
    assert.match(edited.ok ? 'taken' : edited.message, sentence);
    await writeFile(api.configFile, closed);
    const sent = await api.post('/api/config', { toml: SAMPLE }, ANNA);
    assert.deepEqual([sent.status, sentence.test(sent.body)], [400, true], sent.body);
    assert.deepEqual([api.sent, await api.fileText()], [[], closed]);
    for (const [now, next] of [
      [closed, withToken('role = "viewer"', '')],
      [await withAnna('admin'), SAMPLE],
      [`${SAMPLE}\n[web]\npassword = "pw"\n`, SAMPLE],
    ] as const) {
      await api.close();
      await open(now);
      assert.equal((await api.config.check(next, 'file')).ok, true, next);
    }
  });

  it('are sent files of shares, and nobody is while the plugin that asks is off', async () => {
    const toml = await withAnna('admin');
    const plugins = [...API_PLUGINS, daemonServices as Plugin, files as Plugin];
    const path = '/api/files/photos/download?path=a.txt';
    await open(toml, { plugins });
    const [known, unknown] = [await api.get(path, ANNA), await api.get(path)];
    assert.deepEqual([known.status, unknown.status], [404, 401], 'it is not mounted here');
    await api.apply(`${toml}\n[plugins.auth]\nenabled = false\n`);
    const shut = await api.get(path, ANNA);
    assert.deepEqual([shut.status, /set web\.password first/.test(shut.body)], [403, true], shut.body);
  });

  it('are asked as long as there are any: over HTTP nobody switches that off', async () => {
    const off = '\n[plugins.auth]\nenabled = false\n';
    const configure = withToken('verbs = ["config"]');
    for (const [toml, headers] of [
      [await withAnna('admin', ''), ANNA],
      [configure, BEARER],
    ] as const) {
      await open(toml);
      const sent = await api.post('/api/config', { toml: toml + off }, headers);
      assert.deepEqual([sent.status, api.sent.length], [400, 0], sent.body);
      assert.match(sent.body, /plugins\.auth\.enabled cannot be switched off over HTTP; it may stand in/);
      const fromFile = await api.config.check(toml + off, 'file');
      assert.ok(fromFile.ok);
      assert.match(fromFile.loaded.warnings.join(), /enabled is false, so that nobody is asked/);
      // The file has it so: what is sent back is as open as before.
      await api.apply(toml + off);
      const same = await api.post('/api/config', { toml: `${toml}${off}# the same\n` });
      assert.equal(same.status, 200, same.body);
      await api.close();
    }
    await open(SAMPLE);
    const nobody = await api.post('/api/config', { toml: SAMPLE + off });
    assert.equal(nobody.status, 200, nobody.body);
  });

  it('name no administrator by a token where administrators may install plugins', async () => {
    const allowed = '\n[plugins]\ninstall_from_page = true\n';
    const now = withToken('role = "admin"') + allowed;
    await open(now);
    const anna = `\n[[web.users]]\nname = "anna"\npassword_hash = "${await HASH}"\nrole = "admin"\n`;
    const next = now + anna;
    for (const toml of [next, now.replace('password = "pw"', 'password = "mine"')]) {
      const { status, body } = await api.post('/api/config', { toml }, BEARER);
      assert.deepEqual([status, api.sent.length], [400, 0], body);
      assert.match(body, /a token may not add an administrator or change the password of one/);
    }
    assert.equal((await api.post('/api/config', { toml: `${now}# a note\n` }, BEARER)).status, 200);
    const person = { authorization: `Basic ${btoa('admin:pw')}` };
    const { status, body } = await api.post('/api/config', { toml: next }, person);
    assert.equal(status, 200, body);
  });

  it('keep an administrator among them, over HTTP', async () => {
    const clock = createManualClock();
    const later = new Date(clock.now() + 60_000).toISOString();
    const sentence = /this leaves no administrator, .* or write it into the configuration file/;
    const warning = /nobody of \[web\] is an administrator/;
    const lowered = await withAnna('operator', '');
    const token = withToken(`role = "admin"\nexpires = "${later}"`, '');
    for (const [now, next, headers] of [
      [await withAnna('admin', ''), lowered, ANNA],
      [withToken('verbs = ["config"]', ''), withToken('verbs = ["status"]', ''), BEARER],
      [await withAnna('admin'), lowered, ANNA],
      [token, withToken('role = "admin"\nexpires = "2020-01-01"', ''), BEARER],
    ] as const) {
      await open(now, { clock });
      const sent = await api.post('/api/config', { toml: next }, headers);
      assert.deepEqual([sent.status, sentence.test(sent.body), api.sent], [400, true, []], sent.body);
      const kept = await api.config.check(`${now}\n# the same\n`, 'file');
      const fromFile = await api.config.check(next, 'file');
      assert.ok(kept.ok && fromFile.ok);
      assert.deepEqual(
        [warning.test(kept.loaded.warnings.join()), warning.test(fromFile.loaded.warnings.join())],
        [false, true],
      );
      await api.close();
    }
    await open(token, { clock });
    const other = await api.post('/api/config', { toml: await withAnna('admin', '') }, BEARER);
    assert.equal(other.status, 200, other.body);
    await api.close();
    // Where nobody was asked before, nobody is taken away.
    await open(SAMPLE, { clock });
    assert.equal((await api.post('/api/config', { toml: lowered })).status, 200);
    await api.close();
    // There is none: whoever comes over the command socket changes what he likes.
    await open(lowered, { clock });
    assert.equal(
      (await api.config.check(`${lowered}\n# the same\n[supervisor]\npoll_interval = "7s"\n`, 'http')).ok,
      true,
    );
  });

  it('are on trial, too, when they are the first, and are taken back to nobody', async () => {
    await open(SAMPLE);
    const changes = api.host.service('configChanges') as ConfigChanges;
    const { version } = await changes.submit({
      text: await withAnna('admin', ''),
      by: 'page',
      onTrial: true,
    });
    const { status, message } = await changes.revert(version);
    assert.deepEqual([status, await api.fileText()], [200, SAMPLE], message);
  });

  it('know their own password alone', async () => {
    const clock = createManualClock();
    await open(await withAnna('viewer'), { clock });
    for (const [name, word] of [
      ['anna', 'pw'],
      ['admin', 'her word'],
      ['nobody', 'her word'],
      ['', 'pw'],
      ['', ''],
    ] as const) {
      const headers = { authorization: `Basic ${btoa(`${name}:${word}`)}` };
      // Who guesses is answered after some seconds.
      const answer = await whileTimePasses(clock, api.get('/api/status', headers));
      assert.equal(answer.status, 401, `${name}:${word}`);
    }
  });

  it('are shown without their hashes, and kept by a document that is sent back', async () => {
    await open(await withAnna('viewer'));
    const admin = { authorization: `Basic ${btoa('admin:pw')}` };
    const { web } = (await api.get('/api/config', admin)).json() as { web: { users: object[] } };
    assert.deepEqual(web.users, [{ name: 'anna', password_hash: '********', role: 'viewer' }]);
    const shown = api.config.shown();
    assert.doesNotMatch(shown, /scrypt/);
    const toml = shown.replace('role = "viewer"', 'role = "operator"');
    const sent = await api.post('/api/config', { toml, keep_secrets: true }, admin);
    assert.equal(sent.status, 200, sent.body);
    const [user] = api.config.current.config.web.users;
    assert.deepEqual([user?.role, user?.password_hash], ['operator', await HASH]);
  });

  it('that make no sense are refused with a sentence', async () => {
    await open(SAMPLE);
    const wrong: readonly (readonly [string, RegExp])[] = [
      [withToken(''), /role|verbs/],
      [withToken('role = "viewer"\nverbs = ["status"]'), /role|verbs/],
      [withToken('role = "viewer"\nshares = []'), /shares.* is empty; leave the key out/],
      [withToken('verbs = ["status", "everything"]'), /verbs\[1\]/],
      [withToken('role = "viewer"\nexpires = "soon"'), /moment such as/],
      [
        (await withAnna('viewer')).replace(await HASH, 'her word'),
        /no hash that "mountkeeper hash-password"/,
      ],
      [(await withAnna('viewer')).replace('"anna"', '"admin"'), /is the user of web\.password already/],
      [await withAnna('guest'), /role/],
      [`${SAMPLE}\n[web]\nusers = [1, {}, { name = 2 }]\n`, /users\[0\]/],
      [await withTwo('anna', 'anna'), /users\[1\].*duplicate/],
      [await withTwo('J\u00fcrgen', 'Ju\u0308rgen'), /users\[1\].*duplicate/],
    ];
    for (const [toml, sentence] of wrong) {
      const answer = await api.config.check(toml, 'file');
      assert.match(answer.ok ? 'taken' : answer.message, sentence);
    }
  });
});
