import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { definePlugin, documented, secret, Joi } from 'mountkeeper';
import type { LoadedConfig, RefusedSignIns, Requester } from 'mountkeeper';
import { createManualClock, createTestHost } from 'mountkeeper/testing';
import type { TestHost } from 'mountkeeper/testing';
import audit from '../../../plugins/audit/index.ts';
import { runCommand } from '../../api/cli.ts';
import { until } from '../../support/platform/wait.ts';

const PATIENCE = { timeoutMs: 20_000, everyMs: 10 };

interface Line {
  readonly time: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

/** What a request began, and went on with after its answer. */
const afterwards: { begin: () => void; done: Promise<Requester | undefined> | undefined } = {
  begin: () => undefined,
  done: undefined,
};

/** As an exporter does. */
let tellRefused: (told: object) => void = () => undefined;

/** Lets in whoever names herself, and has a route of each kind. */
const rooms = definePlugin<{ password: string }>({
  name: 'rooms',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Rooms.',
  config: {
    schema: Joi.object({ password: secret().default('').description('A password.').meta({ tier: 'live' }) }),
  },
  register(ctx) {
    tellRefused = (told) => ctx.find('refusedSignIns')?.add('gate', told as RefusedSignIns);
    ctx.hapi(
      {
        name: 'door',
        register: (server) => {
          server.ext('onRequest', (request, h) => {
            const name = request.headers['x-name'];
            if (name === 'stranger') return h.response({ message: 'no' }).code(401).takeover();
            if (typeof name === 'string')
              Object.assign(request.auth, { credentials: { name, kind: 'user', role: 'operator' } });
            return h.continue;
          });
        },
      },
      {},
    );
    const post = (path: string, handler: () => object, isQuestion = false): void =>
      ctx.route({
        method: 'POST',
        path,
        options: documented({ summary: 'A room.', isQuestion, answers: {} }),
        handler,
      });
    post('/rooms/{room}/clean', () => ({ ok: true }));
    post('/rooms/{room}/fail', () => ({ ok: false, message: 'no' }));
    post('/rooms/{room}/look', () => ({ ok: true }), true);
    post('/rooms/{room}/later', () => {
      const answered = new Promise<void>((resolve) => (afterwards.begin = resolve));
      const { text } = ctx.use('config').current;
      const check = async (): Promise<Requester | undefined> => {
        const checked = await ctx.use('config').check(text, 'file');
        return checked.ok ? checked.loaded.requestedBy : undefined;
      };
      afterwards.done = (async () => {
        assert.notEqual(await check(), undefined, 'while it is not answered');
        await answered;
        return check();
      })();
      return { ok: true };
    });
    ctx.route({ method: 'GET', path: '/rooms', handler: () => ({ rooms: 3 }) });
    ctx.route({
      method: 'POST',
      path: '/rooms/password',
      handler: async (request) => {
        request.app.about = { floor: '2' };
        const applied = await ctx.use('config').apply({
          text: 'connections = []\n[plugins.rooms]\npassword = "geheim-2"\n',
          origin: 'file',
        });
        return { ok: applied.ok };
      },
    });
  },
});

describe('the record of changes', () => {
  let host: TestHost;
  const clock = createManualClock();
  const file = (): string => join(host.stateDir, 'audit/audit.log');
  const lines = async (event: string): Promise<Line[]> =>
    (await readFile(file(), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
      .filter((line) => line.event === event);
  const post = (url: string, headers: Record<string, string> = {}, payload: object = {}) =>
    host.inject({ method: 'POST', url, headers, payload });
  /** The lines of one kind, once there are so many. */
  const told = async (event: string, count: number): Promise<Line[]> => {
    await until(`${count} lines of ${event}`, async () => (await lines(event)).length >= count, PATIENCE);
    const found = await lines(event);
    assert.equal(found.length, count, JSON.stringify(found));
    return found;
  };

  beforeEach(async () => {
    host = await createTestHost({ plugins: [audit, rooms], clock });
    await until('it has begun', async () => (await lines('start').catch(() => [])).length === 1, PATIENCE);
  });
  afterEach(() => host.close());

  it('says who did what, from where, and whether it was done; nothing of what was sent along', async () => {
    await post('/rooms/blue/clean?key=geheim-1', { 'x-name': 'ada' }, { password: 'geheim-1' });
    await post('/rooms/blue/fail');
    await host.inject('/rooms');
    await post('/rooms/blue/look', { 'x-name': 'ada' });
    const [clean, fail] = await told('request', 2);
    assert.deepEqual(
      { ...clean, time: '', request: '' },
      {
        time: '',
        event: 'request',
        request: '',
        who: { name: 'ada', kind: 'user', role: 'operator' },
        from: { address: '127.0.0.1' },
        method: 'POST',
        route: '/rooms/{room}/clean',
        params: { room: 'blue' },
        status: 200,
        done: true,
      },
    );
    assert.deepEqual([fail?.['done'], fail?.['status'], fail?.['who']], [false, 200, undefined]);
    assert.doesNotMatch(await readFile(file(), 'utf8'), /geheim/);
  });

  it('has every refused attempt: by a plugin before any route, and by the daemon before any plugin', async () => {
    await post('/rooms/blue/look', { 'x-name': 'stranger', authorization: 'Basic Z2VoZWltOmdlaGVpbQ==' });
    await host.inject({ url: '/rooms', headers: { 'x-name': 'stranger', authorization: 'Bearer geheim' } });
    await host.inject({ url: '/rooms', headers: { 'x-name': 'stranger' } });
    await post('/rooms/blue/clean', { origin: 'http://evil.example' });
    await host.inject({ url: '/rooms?x', headers: { host: 'evil.example' } });
    const found = await told('refused', 4);
    assert.deepEqual(
      found.map(({ method, route, path, status, credentials }) => [
        method,
        route ?? path,
        status,
        credentials,
      ]),
      [
        ['POST', '/rooms/{room}/look', 401, true],
        ['GET', '/rooms', 401, true],
        ['POST', '/rooms/blue/clean', 403, false],
        ['GET', '/rooms', 421, false],
      ],
    );
    assert.deepEqual(found[2]?.['from'], { address: '127.0.0.1' });
    await host.advance(600_000);
    const [counted] = await told('more-attempts', 1);
    assert.deepEqual([counted?.['by'], counted?.['count']], ['anonymous', 1], 'no credentials, no line');
    assert.doesNotMatch(await readFile(file(), 'utf8'), /Z2Vo|geheim/);
  });

  it('has the sign-ins that an exporter tells of as refused, and nothing that is none', async () => {
    const one = { address: '192.0.2.7', user: 'alice', isNobody: false, count: 1, since: 0 };
    for (const refused of ['x', [{ ...one, count: 'x' }], [{ ...one, user: 'x'.repeat(65) }], [one]])
      tellRefused({ refused, others: 0 });
    const [line] = await told('refused', 1);
    assert.deepEqual([line?.['protocol'], line?.['user'], line?.['count']], ['gate', 'alice', 1]);
  });

  it('cannot be made to hold a line that nobody wrote', async () => {
    await post(`/rooms/${encodeURIComponent('a\n{"event":"config"}\r\u2028\u202e\u0085\u061cb')}/clean`);
    const [line] = await told('request', 1);
    assert.deepEqual(line?.['params'], { room: 'a\n{"event":"config"}\r\u2028\u202e\u0085\u061cb' });
    const text = await readFile(file(), 'utf8');
    assert.equal(text.split('\n').length, 3, 'start, and this one');
    assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u0085\u2028\u202e\u061c]/);
    await post(`/rooms/${'x'.repeat(5_000)}/clean`);
    assert.ok((JSON.stringify((await told('request', 2))[1]) ?? '').length < 600);
    const config = async () => ({ ...host.config.current.config, supervisor: { state_dir: host.stateDir } });
    const shown = await runCommand(audit, ['audit'], { request: never, config: config as never });
    assert.equal(shown.printed.length, 3);
    assert.doesNotMatch(shown.printed.join(''), /[\u0000-\u001f\u0085\u2028\u202e]/);
  });

  it('loses no change in a flood of attempts', async () => {
    const noise = { 'x-name': 'stranger', authorization: 'Bearer wrong' };
    for (let index = 0; index < 80; index += 1) await post('/rooms/blue/look', noise);
    await post('/rooms/blue/clean');
    await told('request', 1);
    assert.equal((await lines('refused')).length, 60);
    await host.advance(600_000);
    const [more] = await told('more-attempts', 1);
    assert.deepEqual([more?.['count'], more?.['addresses']], [20, { '127.0.0.1': 20 }]);
  });

  it('has the difference of each configuration without its secrets, and whose request brought it', async () => {
    const before = host.config.current;
    await post('/rooms/password', { 'x-name': 'ada' });
    const loaded = host.sent.find(({ command }) => command === 'reload')?.args[0] as LoadedConfig;
    await host.hooks.observe('afterReload', loaded, host.config.compare(before.config, loaded.config));
    const [request] = await told('request', 1);
    const [config] = await told('config', 1);
    assert.deepEqual(
      [config?.['origin'], config?.['who'], config?.['changes'], request?.['about']],
      [
        'http',
        { name: 'ada', kind: 'user', role: 'operator' },
        ['plugins.rooms.password: set'],
        { floor: '2' },
      ],
    );
    assert.equal(config?.['request'], request?.['request']);
    assert.doesNotMatch(await readFile(file(), 'utf8'), /geheim/);
    const other = await host.config.check('connections = []\n', 'file');
    assert.ok(other.ok);
    await host.hooks.observe('afterReload', other.loaded, other.diff);
    assert.deepEqual(
      (await told('config', 2)).map(({ origin, who }) => [origin, who !== undefined]),
      [
        ['http', true],
        ['file', false],
      ],
    );
  });

  it('has nobody for what a request left behind, such as settings that are taken back later', async () => {
    await post('/rooms/blue/later', { 'x-name': 'ada' });
    await told('request', 1);
    afterwards.begin();
    assert.equal(await afterwards.done, undefined);
  });

  it('ends with what switched it off, which the file alone can do', async () => {
    const off = 'connections = []\n[plugins.audit]\nenabled = false\n';
    const refused = await host.config.check(off, 'http');
    assert.ok(!refused.ok);
    assert.match(
      refused.message,
      /plugins\.audit\.enabled cannot be switched off over HTTP; it may stand in/,
    );
    const short = await host.config.check('connections = []\n[plugins.audit]\nkeep = 1\n', 'http');
    assert.ok(!short.ok);
    assert.match(short.message, /plugins\.audit\.keep cannot be changed over HTTP/);
    await host.configure(off);
    assert.equal(host.info('audit').state, 'disabled');
    assert.deepEqual((await told('config', 1))[0]?.['changes'], ['plugins.audit.enabled: true → false']);
    assert.equal((await told('stop', 1))[0]?.['reason'], 'disable');
    const on = await host.config.check('connections = []\n', 'http');
    assert.ok(on.ok, 'and on again by everybody');
  });

  it('is shown from a time on, also where no daemon runs', async () => {
    await post('/rooms/old/clean');
    await told('request', 1);
    await host.advance(7_200_000);
    await post('/rooms/new/clean', { 'x-name': 'ada' });
    await told('request', 2);
    const { stateDir } = host;
    const config = async () => ({ ...host.config.current.config, supervisor: { state_dir: stateDir } });
    const options = { request: never, config: config as never, clock };
    const recent = await runCommand(audit, ['audit', '--since', '1h'], options);
    assert.deepEqual(
      recent.printed.map((line) => line.replace(/^\S+ /, '').replace(/request="\w+"/, '…')),
      ['request ada (operator) 127.0.0.1 POST /rooms/{room}/clean 200 … params={"room":"new"} done=true'],
    );
    const all = await runCommand(audit, ['audit', '--since', '1970-01-01'], { ...options, json: true });
    assert.deepEqual(
      all.printed.map((line) => (JSON.parse(line) as Line).event),
      ['start', 'request', 'request'],
    );
    const wrong = await runCommand(audit, ['audit', '--since', 'yesterday'], options);
    assert.deepEqual([wrong.code, wrong.printed], [64, []]);
    const nowhere = async () => ({ supervisor: { state_dir: join(stateDir, 'none') } });
    const none = await runCommand(audit, ['audit'], { ...options, config: nowhere as never });
    assert.deepEqual([none.code, none.printed], [1, []]);
    assert.match(none.errors[0] ?? '', /^There is no record of changes in /);
  });
});

const never = (): Promise<never> => Promise.reject(new Error('no daemon is asked'));
