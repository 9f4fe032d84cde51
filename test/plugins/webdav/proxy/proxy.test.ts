import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WebdavProxy } from '../../../../plugins/webdav/proxy/proxy.ts';
import { until } from '../../../support/until.ts';
import { basic, FrontHouse } from '../fake-engine.ts';

const LARGE = 400_000;

describe('the front of WebDAV', () => {
  let house: FrontHouse;
  beforeEach(async () => (house = await FrontHouse.open()));
  afterEach(() => house.close());

  const hasCome = (method: string, path: string): boolean =>
    house.engine.seen.some((one) => one.method === method && one.path === path);
  /**
   * Sends the head and a part of the body, then goes away once the engine was asked for it by this method.
   */
  const sendTorn = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
  ): Promise<void> => {
    const piece = randomBytes(LARGE);
    const request = httpRequest({
      host: '127.0.0.1',
      port: house.port,
      method: 'PUT',
      path,
      agent: false,
      headers: {
        authorization: basic('alice', 'wonder:land'),
        'content-length': String(piece.length * 2),
        ...headers,
      },
    });
    request.on('error', () => undefined);
    await new Promise<void>((resolve) => request.write(piece, () => resolve()));
    await until(`the engine has heard of ${path}`, () => hasCome(method, path), {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    request.destroy();
  };
  const left = async (): Promise<readonly string[]> => [
    ...(await readdir(join(house.folder, 'front/journal'))),
    ...(await readdir(house.state.spool).catch(() => [])),
  ];

  it('lets in who has the password, and nobody else', async () => {
    house.engine.files.set('/team/a', Buffer.from('hi'));
    const good = await house.ask('GET', '/team/a');
    assert.deepEqual(
      [good.status, good.text, good.headers.server, good.headers['content-security-policy']],
      [200, 'hi', undefined, 'sandbox'],
    );
    const none = await house.ask('GET', '/team/a', { headers: { authorization: '' } });
    assert.equal(none.status, 401);
    assert.match(none.headers['www-authenticate'] ?? '', /^Basic /);
    for (const wrong of [
      basic('alice', 'wonder'),
      basic('alic', 'ewonder:land'),
      basic('alicewonder', 'land'),
      'Basic !!!',
      'Bearer x',
    ])
      assert.equal((await house.ask('GET', '/team/a', { headers: { authorization: wrong } })).status, 401);
    assert.equal(
      house.engine.seen.every(({ headers }) => headers.authorization === undefined),
      true,
    );
  });

  it('makes guessing slow, but not for who has come in from there before', async () => {
    assert.equal((await house.ask('GET', '/')).status, 200);
    assert.equal(
      (await house.ask('GET', '/', { headers: { authorization: basic('alice', 'a') } })).status,
      401,
    );
    const started = performance.now();
    let [isFirst, statuses] = [false, [] as readonly number[]];
    // A process that stands still for as long as a guesser waits, answers both at once.
    for (let round = 0; round < 5 && !isFirst; round += 1) {
      let isOver = false;
      const guessing = Promise.all(
        Array.from({ length: 7 }, (_, index) =>
          house.ask('GET', '/', { headers: { authorization: basic('alice', `b${round} ${index}`) } }),
        ),
      ).finally(() => (isOver = true));
      assert.equal((await house.ask('GET', '/')).status, 200);
      isFirst = !isOver;
      statuses = (await guessing).map(({ status }) => status);
    }
    assert.ok(performance.now() - started > 200);
    assert.ok(isFirst, 'the owner comes in while a guesser waits');
    assert.deepEqual(
      [...new Set(statuses)].filter((status) => status !== 429),
      [401],
    );
  });

  it('answers without a password only to names of this machine', async () => {
    await house.tell({ isOpen: true, users: [], hostnames: ['nas.example'] });
    for (const host of ['127.0.0.1:80', 'localhost', '[::1]:8091', 'NAS.example:8091'])
      assert.equal((await house.ask('GET', '/', { headers: { authorization: '', host } })).status, 200, host);
    assert.equal(
      (await house.ask('GET', '/', { headers: { authorization: '', host: 'evil.example' } })).status,
      421,
    );
  });

  it('lets nobody in when there are users and none of their passwords is known', async () => {
    await house.tell({ users: [] });
    assert.equal((await house.ask('GET', '/')).status, 401);
    assert.equal((await house.ask('GET', '/', { headers: { authorization: basic('', '') } })).status, 401);
  });

  it('shows the shares, and nothing can be written beside them', async () => {
    await house.tell({ shares: [house.share('team'), house.share('照片 & Co')] });
    const list = await house.ask('PROPFIND', '/', { headers: { depth: '1' } });
    assert.equal(list.status, 207);
    assert.match(
      list.text,
      /<D:href>\/team\/<.*<D:href>\/%E7%85%A7%E7%89%87%20%26%20Co\/<\/D:href>.*<D:displayname>照片 &amp; Co</s,
    );
    assert.equal((await house.ask('PUT', '/file', { body: 'x' })).status, 404);
    assert.equal((await house.ask('MKCOL', '/new/')).status, 404);
    assert.equal((await house.ask('DELETE', '/')).status, 403);
    assert.equal((await house.ask('GET', '/nothing/x')).status, 404);
    assert.equal(house.engine.seen.length, 0);
  });

  it('refuses before an engine hears of it', async () => {
    await house.tell({
      shares: [
        house.share('team'),
        house.share('archive', { readOnly: true }),
        house.share('leaving', { isSealed: true }),
      ],
    });
    const write = { body: 'x' };
    for (const [method, path, status, options] of [
      ['POST', '/team/a', 405, write],
      ['TRACE', '/team/a', 405, {}],
      ['PATCH', '/team/a', 405, write],
      ['GET', '/team/../x', 400, {}],
      ['GET', '/team/%2e%2e/%2e%2e/etc/passwd', 400, {}],
      ['GET', '/team/a%2f..%2fb', 400, {}],
      ['PUT', '/archive/a', 403, write],
      ['DELETE', '/archive/a', 403, {}],
      ['MKCOL', '/archive/a', 403, {}],
      ['LOCK', '/archive/a', 403, {}],
      ['PROPPATCH', '/archive/a', 403, {}],
      ['PUT', '/leaving/a', 503, write],
      ['DELETE', '/team/', 403, {}],
      ['MOVE', '/team', 403, { headers: { destination: '/team/x' } }],
      ['PUT', '/team/', 405, write],
      ['COPY', '/team/a', 502, { headers: { destination: '/archive/a' } }],
      ['MOVE', '/team/a', 502, { headers: { destination: 'http://elsewhere/team/a' } }],
      ['MOVE', '/team/a', 400, {}],
      ['MOVE', '/team/a', 403, { headers: { destination: '/team/' } }],
      ['MOVE', '/team/a', 400, { headers: { destination: '/team/%2e%2e/x' } }],
      ['PROPFIND', '/team/', 403, { headers: { depth: 'infinity' } }],
      ['PROPFIND', '/team/', 403, {}],
      ['PUT', '/team/a', 400, { ...write, headers: { 'content-range': 'bytes 0-0/5' } }],
    ] as const)
      assert.equal((await house.ask(method, path, options)).status, status, `${method} ${path}`);
    assert.equal(house.engine.seen.length, 0);
  });

  it('refuses to be a tunnel, and says so to a client that speaks no HTTP', async () => {
    const say = async (text: string): Promise<string> => {
      const socket = connect(house.port, '127.0.0.1');
      socket.write(text);
      let answer = '';
      for await (const piece of socket) answer += String(piece);
      return answer;
    };
    assert.match(await say('CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n'), /^HTTP\/1\.1 405 /);
    assert.match(await say('hello\r\n\r\n'), /^HTTP\/1\.1 400 /);
    assert.match(await say(`GET / HTTP/1.1\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`), /^HTTP\/1\.1 4\d\d /);
  });

  it('says what can be done, also while the engine does not answer', async () => {
    house.engine.before = () => true;
    const options = await house.ask('OPTIONS', '/team/x');
    assert.deepEqual(
      [options.status, options.headers['dav'], options.headers['ms-author-via']],
      [200, '1, 2', 'DAV'],
    );
    assert.match(options.headers.allow ?? '', /LOCK/);
  });

  it('keeps a file with content as it was when the client goes away', async () => {
    house.engine.files.set('/team/a', Buffer.from('good'));
    await sendTorn('PROPFIND', '/team/a');
    await until('nothing is left of it', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    assert.equal(house.engine.files.get('/team/a')?.toString(), 'good');
    assert.equal(house.engine.count('PUT'), 0);
  });

  it('takes a new file away when the client goes away, and empties one that was empty', async () => {
    house.engine.files.set('/team/empty', Buffer.alloc(0));
    for (const path of ['/team/new', '/team/empty']) await sendTorn('PUT', path, { if: '(<urn:token>)' });
    await until('both are mended', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    assert.equal(house.engine.files.has('/team/new'), false);
    assert.equal(house.engine.files.get('/team/empty')?.length, 0);
    assert.equal(house.engine.seen.find(({ method }) => method === 'DELETE')?.headers.if, '(<urn:token>)');
  });

  it('takes back what it can no longer pass on whole when the share has to go', async () => {
    const request = httpRequest({
      host: '127.0.0.1',
      port: house.port,
      method: 'PUT',
      path: '/team/slow',
      agent: false,
      headers: { authorization: basic('alice', 'wonder:land'), 'content-length': '1000000' },
    });
    request.on('error', () => undefined).write(randomBytes(LARGE));
    await until('it has come to the engine', () => house.engine.files.get('/team/slow')?.length === LARGE, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    await house.tell({ shares: [] });
    assert.equal(house.engine.files.has('/team/slow'), false);
    await until('no note is left', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    request.destroy();
  });

  it('makes nothing of a whole body whose client went away before it was read', async () => {
    let answerStat: () => void = () => undefined;
    house.engine.before = ({ method }, response) => {
      if (method !== 'PROPFIND') return false;
      answerStat = () => void response.writeHead(404).end();
      return true;
    };
    const request = httpRequest({
      host: '127.0.0.1',
      port: house.port,
      method: 'PUT',
      path: '/team/short',
      agent: false,
      headers: { authorization: basic('alice', 'wonder:land'), 'content-length': '3' },
    });
    request.on('error', () => undefined).end('abc');
    await until('the engine is asked', () => house.engine.count('PROPFIND') === 1, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    request.destroy();
    await until('the front has noticed', async () => (await house.clients()) === 0, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    answerStat();
    await house.tell({ shares: [] });
    assert.equal(house.engine.files.has('/team/short'), false);
    await until('no note is left', async () => (await left()).length === 0, { timeoutMs: 20_000 });
  });

  it("overwrites with small and large bodies, with the client's headers", async () => {
    for (const size of [0, 10, LARGE]) {
      house.engine.files.set('/team/a', Buffer.from('old'));
      const body = randomBytes(size);
      const { status } = await house.ask('PUT', '/team/a', {
        body,
        headers: { 'oc-mtime': '1600000000', if: '(<urn:x>)' },
      });
      assert.equal(status, 204);
      assert.ok(house.engine.files.get('/team/a')?.equals(body));
      const { headers } = house.engine.seen.findLast(({ method }) => method === 'PUT') ?? assert.fail();
      assert.deepEqual(
        [headers['x-oc-mtime'], headers.if, headers['content-length']],
        ['1600000000', '(<urn:x>)', String(size)],
      );
    }
    assert.deepEqual(await left(), []);
    const fresh = await house.ask('PUT', '/team/b', { body: randomBytes(LARGE) });
    assert.deepEqual([fresh.status, house.engine.files.get('/team/b')?.length], [201, LARGE]);
  });

  it("hears the engine's refusal of a locked file, and leaves the file", async () => {
    house.engine.files.set('/team/a', Buffer.from('old'));
    house.engine.before = ({ method }, response) =>
      method === 'PUT' && Boolean(response.writeHead(423).end());
    for (const path of ['/team/a', '/team/new'])
      assert.equal((await house.ask('PUT', path, { body: randomBytes(LARGE) })).status, 423);
    assert.equal(house.engine.files.get('/team/a')?.toString(), 'old');
    assert.deepEqual([await left(), house.engine.count('DELETE')], [[], 0]);
  });

  it('lets a body come only after it was let in', async () => {
    const ask = async (authorization: string): Promise<{ continued: boolean; status: number }> => {
      const request = httpRequest({
        host: '127.0.0.1',
        port: house.port,
        method: 'PUT',
        path: '/team/e',
        agent: false,
        headers: { authorization, expect: '100-continue', 'content-length': '3' },
      });
      let continued = false;
      request.once('continue', () => {
        continued = true;
        request.end('abc');
      });
      request.flushHeaders();
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      response.resume();
      request.destroy();
      return { continued, status: response.statusCode ?? 0 };
    };
    assert.deepEqual(await ask(basic('alice', 'no')), { continued: false, status: 401 });
    assert.deepEqual(await ask(basic('alice', 'wonder:land')), { continued: true, status: 201 });
  });

  it('refuses what the disk has no room for', async () => {
    await house.tell({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    assert.equal((await house.ask('PUT', '/team/a', { body: randomBytes(10) })).status, 507);
    assert.equal(house.engine.count('PUT'), 0);
  });

  it('goes on with a share that comes back elsewhere', async () => {
    house.engine.files.set('/team/a', Buffer.from('good'));
    await house.tell({ shares: [], returning: ['team'] });
    const asked = house.ask('GET', '/team/a');
    const written = house.ask('PUT', '/team/a', { body: randomBytes(LARGE) });
    await house.tell({
      shares: [
        house.share('team', {
          backend: { instance: 'second', port: house.engine.port, takesProperties: true },
        }),
      ],
      returning: [],
    });
    assert.deepEqual([(await asked).status, (await written).status], [200, 204]);
    await house.tell({ shares: [], returning: [] });
    assert.equal((await house.ask('GET', '/team/a')).status, 404);
  });

  it('writes a file again from the start when the engine dies in the middle of it', async () => {
    house.engine.files.set('/team/a', Buffer.from('old'));
    let deaths = 0;
    house.engine.before = (request, response) => {
      if (request.method !== 'PUT' || deaths > 0) return false;
      deaths += 1;
      house.engine.files.set('/team/a', Buffer.from('torn'));
      response.writeContinue();
      request.once('data', () => request.destroy());
      return true;
    };
    const body = randomBytes(LARGE);
    assert.equal((await house.ask('PUT', '/team/a', { body })).status, 204);
    assert.ok(house.engine.files.get('/team/a')?.equals(body));
    assert.equal(deaths, 1);
  });

  it('lets go of one share without touching the transfers of another', async () => {
    house.engine.files.set('/team/a', Buffer.alloc(4_000_000));
    await house.tell({ shares: [house.share('team'), house.share('other')] });
    const request = httpRequest({
      host: '127.0.0.1',
      port: house.port,
      path: '/team/a',
      agent: false,
      headers: { authorization: basic('alice', 'wonder:land') },
    });
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await house.tell({ shares: [house.share('team')] });
    let size = 0;
    for await (const piece of response) size += (piece as Buffer).length;
    assert.equal(size, 4_000_000);
  });

  it('brings to its end what a killed front had begun', async () => {
    const torn = { share: 'team', headers: { host: 'nas' } };
    const body = join(house.folder, 'kept.part');
    await writeFile(body, 'whole content');
    await house.front.journal.begin({ ...torn, kind: 'whole', parts: ['over'], body });
    await house.front.journal.begin({ ...torn, kind: 'new', parts: ['fresh'] });
    await house.front.journal.begin({ ...torn, kind: 'new', parts: ['gone'] });
    house.engine.files.set('/team/over', Buffer.from('who'));
    house.engine.files.set('/team/fresh', Buffer.from('fre'));
    const next = new WebdavProxy(join(house.folder, 'front'), () => undefined);
    await next.open();
    await next.take(house.state);
    await until('all is settled', async () => (await left()).length === 0, { timeoutMs: 20_000 });
    assert.equal(house.engine.files.get('/team/over')?.toString(), 'whole content');
    assert.equal(house.engine.files.has('/team/fresh'), false);
    await next.take({ ...house.state, shares: [] });
  });
});
