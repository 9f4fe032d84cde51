/** Who is let in, and what is refused or passed on, by the proxy in one process with a fake backend. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { unkeptNames } from '../../../../plugins/mount/rclone/kept-names.ts';
import { basic, ProxyFixture } from '../../../support/webdav/fake-backend.ts';
import { sleep } from '../../../support/platform/wait.ts';

const LARGE = 400_000;

describe('the proxy of WebDAV', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => (fixture = await ProxyFixture.open()));
  afterEach(() => fixture.close());

  it('lets in who has the password, and nobody else', async () => {
    fixture.backend.files.set('/team/a', Buffer.from('hi'));
    const good = await fixture.ask('GET', '/team/a');
    assert.deepEqual(
      [good.status, good.text, good.headers.server, good.headers['content-security-policy']],
      [200, 'hi', undefined, 'sandbox'],
    );
    const none = await fixture.ask('GET', '/team/a', { headers: { authorization: '' } });
    assert.equal(none.status, 401);
    assert.match(none.headers['www-authenticate'] ?? '', /^Basic /);
    for (const wrong of [
      basic('alice', 'wonder'),
      basic('alic', 'ewonder:land'),
      basic('alicewonder', 'land'),
      'Basic !!!',
      'Bearer x',
    ])
      assert.equal((await fixture.ask('GET', '/team/a', { headers: { authorization: wrong } })).status, 401);
    assert.equal(
      fixture.backend.seen.every(({ headers }) => headers.authorization === undefined),
      true,
    );
  });

  it('makes guessing slow, but not for who has come in from there before', async () => {
    assert.equal((await fixture.ask('GET', '/')).status, 200);
    assert.equal(
      (await fixture.ask('GET', '/', { headers: { authorization: basic('alice', 'a') } })).status,
      401,
    );
    const started = performance.now();
    let [isFirst, statuses] = [false, [] as readonly number[]];
    // A process that stands still for as long as a guesser waits, answers both at once.
    for (let round = 0; round < 5 && !isFirst; round += 1) {
      let isOver = false;
      const guessing = Promise.all(
        Array.from({ length: 7 }, (_, index) =>
          fixture.ask('GET', '/', { headers: { authorization: basic('alice', `b${round} ${index}`) } }),
        ),
      ).finally(() => (isOver = true));
      assert.equal((await fixture.ask('GET', '/')).status, 200);
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

  it('refuses what would get a name that the NAS does not keep, and lets it be taken away', async () => {
    const refusedNames = unkeptNames('smb');
    await fixture.tell({ shares: [fixture.share('team', { refusedNames })] });
    for (const path of ['/team/ok', '/team/CON.txt']) fixture.backend.files.set(path, Buffer.from('hi'));
    const status = async (method: string, path: string, to?: string): Promise<number> => {
      const headers = to === undefined ? {} : { destination: to, host: 'x' };
      return (await fixture.ask(method, path, { headers, ...(method === 'PUT' && { body: 'x' }) })).status;
    };
    const told = await fixture.ask('PUT', '/team/a%E2%80%9B', { body: 'x' });
    assert.deepEqual(
      [told.status, /The NAS does not keep this name: it has the/.test(told.text)],
      [403, true],
    );
    for (const [method, path, to] of [
      ['PUT', '/team/aux'],
      ['PUT', '/team/nul.tar/x'],
      ['MKCOL', '/team/COM1'],
      ['LOCK', '/team/a%7F'],
      ['MOVE', '/team/ok', 'http://x/team/con'],
      ['COPY', '/team/ok', 'http://x/team/a%E2%80%9Bb'],
    ] as const)
      assert.equal(await status(method, path, to), 403, `${method} ${path} ${to ?? ''}`);
    assert.equal(await status('PUT', '/team/console'), 201);
    assert.equal(await status('MOVE', '/team/CON.txt', 'http://x/team/fine.txt'), 201);
    await fixture.tell({ shares: [fixture.share('team')] });
    assert.equal(await status('PUT', '/team/aux'), 201);
  });

  it('answers without a password only to names of this machine', async () => {
    await fixture.tell({ isOpen: true, users: [], hostnames: ['nas.example'] });
    for (const host of ['127.0.0.1:80', 'localhost', '[::1]:8091', 'NAS.example:8091'])
      assert.equal(
        (await fixture.ask('GET', '/', { headers: { authorization: '', host } })).status,
        200,
        host,
      );
    assert.equal(
      (await fixture.ask('GET', '/', { headers: { authorization: '', host: 'evil.example' } })).status,
      421,
    );
  });

  it('lets nobody in when there are users and none of their passwords is known', async () => {
    await fixture.tell({ users: [] });
    assert.equal((await fixture.ask('GET', '/')).status, 401);
    assert.equal((await fixture.ask('GET', '/', { headers: { authorization: basic('', '') } })).status, 401);
  });

  it('shows the shares, and nothing can be written beside them', async () => {
    await fixture.tell({ shares: [fixture.share('team'), fixture.share('照片 & Co')] });
    const list = await fixture.ask('PROPFIND', '/', { headers: { depth: '1' } });
    assert.equal(list.status, 207);
    assert.match(
      list.text,
      /<D:href>\/team\/<.*<D:href>\/%E7%85%A7%E7%89%87%20%26%20Co\/<\/D:href>.*<D:displayname>照片 &amp; Co</s,
    );
    assert.equal((await fixture.ask('PUT', '/file', { body: 'x' })).status, 404);
    assert.equal((await fixture.ask('MKCOL', '/new/')).status, 404);
    assert.equal((await fixture.ask('DELETE', '/')).status, 403);
    assert.equal((await fixture.ask('GET', '/nothing/x')).status, 404);
    assert.equal(fixture.backend.seen.length, 0);
  });

  it('refuses before a backend hears of it', async () => {
    await fixture.tell({
      shares: [fixture.share('team'), fixture.share('archive', { readOnly: true })],
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
      ['DELETE', '/team/', 403, {}],
      ['MOVE', '/team', 403, { headers: { destination: '/team/x' } }],
      ['PUT', '/team/', 405, write],
      ['COPY', '/team/a', 502, { headers: { destination: '/archive/a' } }],
      ['MOVE', '/team/a', 502, { headers: { destination: 'http://elsewhere/team/a' } }],
      ['MOVE', '/team/a', 400, {}],
      ['MOVE', '/team/a', 403, { headers: { destination: '/team/' } }],
      ['MOVE', '/team/a', 400, { headers: { destination: '/team/%2e%2e/x' } }],
      // What it overwrites goes first, and all in it.
      ['MOVE', '/team/a/a', 403, { headers: { destination: '/team/a' } }],
      ['COPY', '/team/a/b/c', 403, { headers: { destination: '/team/A/' } }],
      ['MOVE', '/team/a', 403, { headers: { destination: '/team/a/b' } }],
      ['COPY', '/team/a/', 403, { headers: { destination: '/team/a/b/c' } }],
      ['PROPFIND', '/team/', 403, { headers: { depth: 'infinity' } }],
      ['PROPFIND', '/team/', 403, {}],
      ['PUT', '/team/a', 400, { ...write, headers: { 'content-range': 'bytes 0-0/5' } }],
    ] as const)
      assert.equal((await fixture.ask(method, path, options)).status, status, `${method} ${path}`);
    assert.equal(fixture.backend.seen.length, 0);
  });

  it('refuses to be a tunnel, and says so to a client that speaks no HTTP', async () => {
    const say = async (text: string): Promise<string> => {
      const socket = connect(fixture.port, '127.0.0.1');
      socket.write(text);
      let answer = '';
      for await (const piece of socket) answer += String(piece);
      return answer;
    };
    assert.match(await say('CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n'), /^HTTP\/1\.1 405 /);
    assert.match(await say('hello\r\n\r\n'), /^HTTP\/1\.1 400 /);
    assert.match(await say(`GET / HTTP/1.1\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`), /^HTTP\/1\.1 4\d\d /);
  });

  it('says what can be done, also while the backend does not answer', async () => {
    fixture.backend.before = () => true;
    const options = await fixture.ask('OPTIONS', '/team/x');
    assert.deepEqual(
      [options.status, options.headers['dav'], options.headers['ms-author-via']],
      [200, '1, 2', 'DAV'],
    );
    assert.match(options.headers.allow ?? '', /LOCK/);
  });

  it('lets a body come only after it was let in', async () => {
    const ask = async (authorization: string): Promise<{ continued: boolean; status: number }> => {
      const request = httpRequest({
        host: '127.0.0.1',
        port: fixture.port,
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

  it('goes on with a share that comes back elsewhere', async () => {
    fixture.backend.files.set('/team/a', Buffer.from('good'));
    await fixture.tell({ shares: [], returning: ['team'] });
    const asked = fixture.ask('GET', '/team/a');
    const written = fixture.ask('PUT', '/team/a', { body: randomBytes(LARGE) });
    await fixture.tell({
      shares: [
        fixture.share('team', {
          backend: { instance: 'second', port: fixture.backend.port, takesProperties: true },
        }),
      ],
      returning: [],
    });
    assert.deepEqual([(await asked).status, (await written).status], [200, 204]);
    await fixture.tell({ shares: [], returning: [] });
    assert.equal((await fixture.ask('GET', '/team/a')).status, 404);
  });

  it('reads from a share that is about to be mounted anew, and has who writes wait for that', async () => {
    fixture.backend.files.set('/team/a', Buffer.from('good'));
    fixture.backend.files.set('/other/a', Buffer.from('good'));
    const frozen = { readOnly: true, isFrozen: true };
    await fixture.tell({ shares: [fixture.share('team', frozen), fixture.share('other', frozen)] });
    const inVain = fixture.ask('DELETE', '/other/a');
    const [read, listed, able] = await Promise.all([
      fixture.ask('GET', '/team/a'),
      fixture.ask('PROPFIND', '/team/a', { headers: { depth: '0' } }),
      fixture.ask('OPTIONS', '/team/a'),
    ]);
    assert.deepEqual([read.text, listed.status, able.headers['dav']], ['good', 207, '1, 2']);
    const written = fixture.ask('PUT', '/team/new', { body: 'new' });
    const moved = fixture.ask('MOVE', '/team/a', { headers: { destination: '/team/b', host: 'localhost' } });
    assert.equal(await Promise.race([written, moved, sleep(300)]), undefined);
    assert.equal(fixture.backend.files.has('/team/new'), false);
    await fixture.tell({ shares: [fixture.share('team'), fixture.share('other', frozen)] });
    assert.deepEqual([(await written).status, (await moved).status], [201, 201]);
    const refused = await inVain;
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '15']);
    assert.match(refused.text, /can only be read until what waits in it has gone to the NAS/);
    assert.equal(fixture.backend.files.has('/other/a'), true);
  });

  it('does not say of the files of a share that is not mounted that they do not exist', async () => {
    const access = { boss: { write: ['bob'], read: [] } };
    await fixture.tell({ shares: [fixture.share('team')], absent: ['photos', 'boss'], access });
    for (const [method, path] of [
      ['GET', '/photos/a'],
      ['PROPFIND', '/photos/'],
      ['PUT', '/photos/a'],
      ['DELETE', '/photos/a'],
    ] as const)
      assert.equal((await fixture.ask(method, path)).status, 503, method);
    assert.equal((await fixture.ask('GET', '/photos/a')).headers['retry-after'], '15');
    assert.equal((await fixture.ask('GET', '/boss/a')).status, 404);
    const list = await fixture.ask('PROPFIND', '/', { headers: { depth: '1' } });
    assert.ok(!list.text.includes('photos'));
    await fixture.tell({ shares: [], absent: ['team'] });
    assert.equal((await fixture.ask('GET', '/team/a')).status, 503);
    await fixture.tell({ shares: [fixture.share('team'), fixture.share('photos')], absent: [] });
    assert.equal((await fixture.ask('PUT', '/photos/a', { body: 'x' })).status, 201);
  });

  it('lets go of one share without touching the transfers of another', async () => {
    fixture.backend.files.set('/team/a', Buffer.alloc(4_000_000));
    await fixture.tell({ shares: [fixture.share('team'), fixture.share('other')] });
    const request = httpRequest({
      host: '127.0.0.1',
      port: fixture.port,
      path: '/team/a',
      agent: false,
      headers: { authorization: basic('alice', 'wonder:land') },
    });
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await fixture.tell({ shares: [fixture.share('team')] });
    let size = 0;
    for await (const piece of response) size += (piece as Buffer).length;
    assert.equal(size, 4_000_000);
  });
});
