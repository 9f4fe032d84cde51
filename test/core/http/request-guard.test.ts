import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { hostOf, refusalOf } from '../../../core/http/request-guard.ts';
import { ask, createServer, dial, ledger, textRoute } from '../../support/http/test-server.ts';
import type { TestServer } from '../../support/http/test-server.ts';

function refusal(
  headers: Record<string, string>,
  method = 'GET',
  names: readonly string[] = [],
  url = '/api/status',
) {
  return refusalOf({ method, url, headers } as unknown as IncomingMessage, names)?.status;
}

describe('the Host header', () => {
  it('may be an address or localhost, with any port', () => {
    for (const host of [
      '127.0.0.1',
      '127.0.0.1:8090',
      '192.168.1.20:80',
      '[::1]',
      '[::1]:8090',
      '[fe80::1]:8090',
      'localhost',
      'localhost:8090',
      'LocalHost.',
      '0.0.0.0:1',
      '127.0.0.1:65535',
    ]) {
      assert.equal(refusal({ host }), undefined, host);
    }
  });

  it('may not be a name that someone else can point here', () => {
    for (const host of [
      'evil.example',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'evil.example:8090',
      '',
      '127.0.0.1@evil.example',
      'a b',
      '[::1].evil',
      '[evil.example]',
      '127.0.0.1:80:80',
      '127.0.0.1:65536',
      '::1',
      '0x7f.1',
      '2130706433',
      'localhost/..',
    ]) {
      assert.equal(refusal({ host }), 421, host);
    }
    assert.equal(refusal({}), 421);
  });

  it('may be a name of web.hostnames, whatever its case, and nothing around it', () => {
    const names = ['nas.lan', '照片.example'];
    for (const host of ['nas.lan', 'NAS.LAN:8090', 'nas.lan.'])
      assert.equal(refusal({ host }, 'GET', names), undefined, host);
    for (const host of ['x.nas.lan', 'nas.lan.example', 'nas'])
      assert.equal(refusal({ host }, 'GET', names), 421, host);
  });

  it('is reduced to the host alone', () => {
    assert.deepEqual(['A.b:1', '[::1]:2', 'x', 'x:', 'x:y', '[x]'].map(hostOf), [
      'a.b',
      '::1',
      'x',
      'x',
      undefined,
      undefined,
    ]);
  });
});

describe('requests of other sites', () => {
  const host = '192.168.1.20:8090';

  it('may not change anything', () => {
    const strange: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'nonsense' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: 'http://192.168.1.20' },
      { origin: 'http://192.168.1.20:8091' },
      { origin: 'garbage' },
      { origin: 'file://' },
      { origin: 'http://192.168.1.20:8090', 'sec-fetch-site': 'cross-site' },
      { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
    ];
    for (const headers of strange) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
        assert.equal(refusal({ host, ...headers }, method), 403, JSON.stringify(headers));
    }
  });

  it('are told from the own page, a typed address and a program', () => {
    const own: Record<string, string>[] = [
      {},
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
      { origin: 'http://192.168.1.20:8090' },
      { origin: 'https://192.168.1.20:8090', 'sec-fetch-site': 'same-origin' },
    ];
    for (const headers of own)
      assert.equal(refusal({ host, ...headers }, 'POST'), undefined, JSON.stringify(headers));
    assert.equal(refusal({ host: 'nas.lan', origin: 'https://nas.lan' }, 'POST', ['nas.lan']), undefined);
  });

  it('may read no more than anybody: reading is not refused, sharing is never granted', () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS'])
      assert.equal(
        refusal({ host, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }, method),
        undefined,
      );
  });
});

describe('the request target', () => {
  it('must be a path', () => {
    assert.equal(refusal({ host: 'localhost' }, 'GET', [], 'http://evil.example/api/status'), 400);
    assert.equal(refusal({ host: 'localhost' }, 'OPTIONS', [], '*'), undefined);
  });
});

describe('a guarded listener', () => {
  let server: TestServer;
  before(async () => {
    server = await createServer({ hostnames: () => ['nas.lan'] });
    await server.swap(
      ledger('page', {
        routes: [textRoute('/', 'page'), { method: 'POST', path: '/change', handler: () => 'changed' }],
      }),
    );
  });
  after(() => server.http.close());

  it('refuses rebound names in JSON that says what to set, and never reaches a route', async () => {
    const reply = await ask({ port: server.port, headers: { host: 'evil.example' } });
    assert.equal(reply.status, 421);
    assert.match((JSON.parse(reply.body) as { message: string }).message, /web\.hostnames/);
    assert.equal((await ask({ port: server.port, headers: { host: 'nas.lan' } })).body, 'page');
  });

  it('refuses a change by another site and grants no sharing to anyone', async () => {
    const change = { port: server.port, path: '/change', method: 'POST', body: '{"a": 1}' };
    const reply = await ask({ ...change, headers: { origin: 'https://evil.example' } });
    assert.equal(reply.status, 403);
    const preflight = await ask({
      port: server.port,
      path: '/change',
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
    });
    for (const { headers } of [reply, preflight])
      assert.deepEqual(
        Object.keys(headers).filter((name) => name.startsWith('access-control')),
        [],
      );
    assert.equal(
      (await ask({ ...change, headers: { origin: `http://127.0.0.1:${server.port}` } })).body,
      'changed',
    );
  });

  it('answers /healthz to any name, and tells nothing else of itself', async () => {
    const reply = await ask({ port: server.port, path: '/healthz', headers: { host: 'balancer.example' } });
    assert.deepEqual(
      [reply.status, reply.body, reply.headers['content-type']],
      [200, 'ok', 'text/plain; charset=utf-8'],
    );
    assert.equal(
      (await ask({ port: server.port, path: '/healthz', method: 'HEAD', headers: { host: 'x.example' } }))
        .status,
      200,
    );
  });

  it('puts the security headers onto every answer and names no software', async () => {
    const replies = await Promise.all([
      ask({ port: server.port }),
      ask({ port: server.port, path: '/none' }),
      ask({ port: server.port, path: '/healthz' }),
      ask({ port: server.port, headers: { host: 'evil.example' } }),
    ]);
    assert.deepEqual(
      replies.map((reply) => reply.status),
      [200, 404, 200, 421],
    );
    for (const { headers } of replies) {
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/);
      assert.equal(headers['referrer-policy'], 'same-origin');
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal(headers['server'], undefined);
      assert.equal(headers['x-powered-by'], undefined);
    }
  });

  it('closes the connection of a refused request with a body instead of reading it as the next request', async () => {
    const wire = await dial(server.port);
    wire.socket.write(
      'POST /change HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 60\r\n\r\n' +
        'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n',
    );
    await wire.ended;
    assert.equal(wire.text().split('HTTP/1.1 ').length - 1, 1);
    assert.match(wire.text(), /^HTTP\/1\.1 421 /);
  });
});
