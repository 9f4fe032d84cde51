import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { until } from '../../../support/platform/wait.ts';
import { basic, FIRST_BYTES, ProxyFixture } from '../../../support/webdav/fake-backend.ts';

describe('what the proxy of WebDAV does not let clients do', () => {
  let fixture: ProxyFixture;
  beforeEach(async () => (fixture = await ProxyFixture.open()));
  afterEach(() => fixture.close());

  /** All that the proxy answers to bytes sent as they are. */
  const say = async (text: string): Promise<string> => {
    const socket = connect(fixture.port, '127.0.0.1');
    socket.write(text);
    let answer = '';
    for await (const piece of socket) answer += String(piece);
    return answer;
  };

  it('heeds the length that Finder foretells, and stops a body of no known length when the disk is full', async () => {
    assert.equal(
      (
        await fixture.ask('PUT', '/team/a', {
          body: 'x',
          headers: { 'transfer-encoding': 'chunked', 'x-expected-entity-length': String(2 ** 52) },
        })
      ).status,
      507,
    );
    assert.equal(fixture.backend.count('PUT'), 0);
    fixture.backend.before = ({ method }, response) => {
      if (method !== 'PUT') return false;
      fixture.backend.files.set('/team/endless', Buffer.alloc(0));
      response.writeContinue();
      let bytes = 0;
      response.req.on('data', (piece: Buffer) => (bytes += piece.length));
      response.req.once('end', () => {
        fixture.backend.files.set('/team/endless', Buffer.alloc(bytes));
        response.writeHead(201).end();
      });
      return true;
    };
    const request = httpRequest({
      host: '127.0.0.1',
      port: fixture.port,
      method: 'PUT',
      path: '/team/endless',
      agent: false,
      headers: { authorization: basic('alice', 'wonder:land'), 'transfer-encoding': 'chunked' },
    });
    request.on('error', () => undefined).write(Buffer.alloc(FIRST_BYTES));
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    await until('it has come to the backend', () => fixture.backend.files.has('/team/endless'), {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    await fixture.tell({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    const piece = Buffer.alloc(4 * 1_048_576);
    for (let sent = 0; sent < 17; sent += 1)
      await new Promise<void>((resolve) => request.write(piece, () => resolve()));
    const [response] = await answered;
    response.resume();
    request.destroy();
    assert.deepEqual([response.statusCode, fixture.backend.files.has('/team/endless')], [507, false]);
  });

  it('slows down the client that a trusted proxy names, and no other behind the proxy', async () => {
    const from = (address: string, password: string) =>
      fixture.ask('GET', '/', {
        headers: { authorization: basic('alice', password), 'x-forwarded-for': address },
      });
    await fixture.tell({ trustedProxies: ['127.0.0.1'] });
    let isOver = false;
    const guessing = Promise.all(
      Array.from({ length: 12 }, (_, index) => from('192.0.2.66', `guess ${index}`)),
    ).finally(() => (isOver = true));
    assert.equal((await from('192.0.2.7', 'wonder:land')).status, 200);
    assert.equal(isOver, false, 'the guesser waits meanwhile');
    assert.ok((await guessing).every(({ status }) => status !== 200));
  });

  it('lets no lock outlive its client by more than an hour', async () => {
    fixture.backend.before = ({ method }, response) =>
      method === 'LOCK' && Boolean(response.writeHead(200).end());
    for (const timeout of ['Infinite, Second-4100000000', 'Second-600', ''])
      await fixture.ask('LOCK', '/team/a', { headers: timeout === '' ? {} : { timeout } });
    assert.deepEqual(
      fixture.backend.seen.filter(({ method }) => method === 'LOCK').map(({ headers }) => headers['timeout']),
      ['Second-3600', 'Second-600', 'Second-3600'],
    );
  });

  it('takes no request that two servers could read in two ways', async () => {
    const head = `PUT /team/a HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic('alice', 'wonder:land')}\r\n`;
    for (const lengths of [
      'Content-Length: 5\r\nTransfer-Encoding: chunked',
      'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
      'Content-Length: 5\r\nContent-Length: 6',
      'Transfer-Encoding: xchunked',
      'Content-Length: +5',
    ]) {
      assert.match(
        await say(`${head}${lengths}\r\n\r\n0\r\n\r\nGET /team/b HTTP/1.1\r\nHost: x\r\n\r\n`),
        /^HTTP\/1\.1 400 /,
        lengths,
      );
    }
    assert.deepEqual(
      fixture.backend.seen.filter(({ method }) => method !== 'PROPFIND'),
      [],
    );
  });

  it('passes on no path that could be read in two ways, and all others in one spelling', async () => {
    for (const path of [
      '/team/a%00b',
      '/team/%ff',
      '/team/%zz',
      '/team/%2e%2E/x',
      '/team/a/./b',
      '/team/a%2Fb',
      `/team/${'a'.repeat(9_000)}`,
    ]) {
      assert.equal((await fixture.ask('GET', path)).status, 400, path);
    }
    assert.equal(fixture.backend.seen.length, 0);
    for (const [path, passed] of [
      ['/team//a+b', '/team/a+b'],
      ['/te%61m/%61?x=../..', '/team/a'],
      ['//team/a%23b%3Fc', '/team/a%23b%3Fc'],
      ['/team/%25%32%66', '/team/%252f'],
      ['http://elsewhere/team/a', '/team/a'],
    ] as const) {
      await fixture.ask('GET', path);
      assert.equal(fixture.backend.seen.at(-1)?.path, passed, path);
    }
  });
});
