import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { freePort } from '../../support/platform/free-port.ts';
import { until, within } from '../../support/platform/wait.ts';
import { ask, createServer, dial, ledger, textRoute } from '../../support/http/test-server.ts';
import type { TestServer } from '../../support/http/test-server.ts';
import { SKIPS } from '../../runner/skips.ts';

const LIMITS = { maxHeaderBytes: 2_048, maxConnections: 20, letGoMs: 10_000 };
/** For the slow alone: elsewhere a pause of the machine would be one of the client. */
const SHORT = { headersTimeoutMs: 300, requestTimeoutMs: 600, checkIntervalMs: 50 };

describe('the listener', () => {
  let server: TestServer;
  let releases: (() => unknown)[];

  beforeEach(async () => {
    releases = [];
    server = await createServer({ limits: LIMITS });
    await server.swap(
      ledger('page', {
        routes: [
          textRoute('/', 'page'),
          {
            method: 'GET',
            path: '/slow',
            handler: async () => {
              await slow;
              return 'slow';
            },
          },
        ],
      }),
    );
  });
  let answerSlow: () => void;
  let slow: Promise<void>;
  beforeEach(() => {
    slow = new Promise((resolve) => (answerSlow = resolve));
  });
  afterEach(async () => {
    answerSlow();
    for (const release of releases.reverse()) await release();
    await server.http.close();
  });

  async function hurried(): Promise<TestServer> {
    const other = await createServer({ limits: SHORT });
    releases.push(() => other.http.close());
    await other.swap(
      ledger('page', {
        routes: [textRoute('/', 'page'), { method: 'POST', path: '/upload', handler: () => 'uploaded' }],
      }),
    );
    return other;
  }

  async function occupied(): Promise<number> {
    const other = createTcpServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    releases.push(() => new Promise((resolve) => other.close(resolve)));
    return (other.address() as AddressInfo).port;
  }

  it('answers on the new address, then no longer on the old one', async () => {
    const old = server.port;
    const port = await freePort();
    await server.http.listen({ host: '127.0.0.1', port });
    assert.deepEqual(server.http.address, { host: '127.0.0.1', port });
    assert.equal((await ask({ port })).body, 'page');
    await assert.rejects(ask({ port: old }), /ECONNREFUSED/);
  });

  it('finishes what it began on the old address, and nothing more there', async () => {
    const old = server.port;
    const agent = new Agent({ keepAlive: true });
    releases.push(() => agent.destroy());
    const reply = ask({ port: old, path: '/slow', agent });
    await until('the request runs', () => server.http.stats().inFlight === 1, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    await server.http.listen({ host: '127.0.0.1', port: await freePort() });
    answerSlow();
    assert.equal((await reply).body, 'slow');
    await assert.rejects(ask({ port: old, agent }), /ECONNREFUSED/);
  });

  it('keeps the old address when the new one is taken, and says so plainly', async () => {
    const old = server.port;
    const port = await occupied();
    await assert.rejects(
      server.http.listen({ host: '127.0.0.1', port }),
      new RegExp(`port ${port} on 127\\.0\\.0\\.1 is taken.*web\\.port`),
    );
    assert.equal(server.http.address?.port, old);
    assert.equal((await ask({ port: old })).body, 'page');
  });

  it('says plainly what is wrong with an address or a name', async () => {
    const old = server.port;
    await assert.rejects(
      server.http.listen({ host: '192.0.2.1', port: 8090 }),
      /no address 192\.0\.2\.1.*web\.listen/,
    );
    await assert.rejects(
      server.http.listen({ host: 'no-such-host.invalid', port: 8090 }),
      /no-such-host\.invalid.*web\.listen/,
    );
    assert.equal(server.http.address?.port, old);
  });

  it('does nothing when the address is the same', async () => {
    const wire = await dial(server.port);
    await server.http.listen({ host: '127.0.0.1', port: server.port });
    wire.socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    await wire.ended;
    assert.match(wire.text(), /page$/);
  });

  it('goes from loopback to all addresses of one port and back', async () => {
    const { port } = server;
    await server.http.listen({ host: '0.0.0.0', port });
    assert.equal((await ask({ port })).body, 'page');
    const [outside] = Object.values(networkInterfaces())
      .flat()
      .filter((one) => one?.family === 'IPv4' && !one.internal);
    if (outside) assert.equal((await ask({ port, host: outside.address })).body, 'page');
    await server.http.listen({ host: '127.0.0.1', port });
    assert.equal((await ask({ port })).body, 'page');
    if (outside) await assert.rejects(ask({ port, host: outside.address }), /ECONNREFUSED/);
  });

  it('comes back to the old address when all addresses of its port cannot be had', async () => {
    const { port } = server;
    const other = createTcpServer().listen({ port, host: '127.0.0.2' });
    await once(other, 'listening');
    releases.push(() => new Promise((resolve) => other.close(resolve)));
    await assert.rejects(server.http.listen({ host: '0.0.0.0', port }), /is taken/);
    assert.equal((await ask({ port })).body, 'page');
  });

  it('listens on IPv6 addresses, with or without brackets', async (context) => {
    const port = await freePort();
    try {
      await server.http.listen({ host: '[::1]', port });
    } catch (error) {
      if (/no address/.test((error as Error).message)) return context.skip(SKIPS.ipv6.reason);
      throw error;
    }
    assert.equal((await ask({ port, host: '::1', headers: { host: `[::1]:${port}` } })).body, 'page');
    await server.http.listen({ host: '::1', port });
    assert.equal(server.http.address?.host, '::1');
  });

  it('ends a connection whose headers come too slowly, with 408', async () => {
    const wire = await dial((await hurried()).port);
    const drip = setInterval(() => wire.socket.write('a'), 40);
    wire.socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ');
    await within('the end of the connection', 20_000, wire.ended).finally(() => clearInterval(drip));
    assert.match(wire.text(), /^HTTP\/1\.1 408 /);
  });

  it('ends a connection whose body comes too slowly', async () => {
    const wire = await dial((await hurried()).port);
    wire.socket.write(
      'POST /upload HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n',
    );
    const drip = setInterval(() => wire.socket.write(' '), 40);
    await within('the end of the connection', 20_000, wire.ended).finally(() => clearInterval(drip));
    assert.ok(!wire.text().includes('uploaded'));
  });

  it('answers headers that are too large with 431 and garbage with 400', async () => {
    for (const [text, status] of [
      [`GET / HTTP/1.1\r\nx: ${'a'.repeat(4_000)}\r\n\r\n`, 431],
      ['nonsense\r\n\r\n', 400],
      ['GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\ncontent-length: x\r\n\r\n', 400],
    ] as const) {
      const wire = await dial(server.port);
      wire.socket.write(text);
      await wire.ended;
      assert.match(wire.text(), new RegExp(`^HTTP/1\\.1 ${status} `));
    }
    assert.equal((await ask({ port: server.port })).body, 'page');
  });

  it('takes no more connections than its limit: the oldest silent one makes way', async () => {
    const wires = await Promise.all(Array.from({ length: 20 }, () => dial(server.port)));
    // Else the end of the server would wait for them.
    releases.push(() => wires.forEach(({ socket }) => socket.destroy()));
    await until('all are there', () => server.http.stats().sockets === 20, { timeoutMs: 20_000, everyMs: 5 });
    for (let count = 0; count < 5; count += 1) assert.equal((await ask({ port: server.port })).body, 'page');
    assert.ok(wires.some(({ socket }) => socket.destroyed));
    assert.ok(wires.filter(({ socket }) => !socket.destroyed).length >= 15);
    assert.ok(server.http.stats().sockets <= 20);
  });

  it('answers 503 before there is anything to serve', async () => {
    const empty = await createServer();
    const reply = await ask({ port: empty.port });
    const health = await ask({ port: empty.port, path: '/healthz' });
    await empty.http.close();
    assert.deepEqual([reply.status, reply.headers['retry-after'], health.status], [503, '1', 200]);
  });

  it('leaves no socket behind when it is closed', async () => {
    const other = await createServer({ limits: { letGoMs: 200 } });
    await other.swap(
      ledger('page', {
        routes: [{ method: 'GET', path: '/hang', handler: () => new Promise<never>(() => undefined) }],
      }),
    );
    const agent = new Agent({ keepAlive: true });
    const hanging = ask({ port: other.port, path: '/hang', agent });
    hanging.catch(() => undefined);
    await until('the request runs', () => other.http.stats().inFlight === 1, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    await other.http.close();
    await assert.rejects(hanging);
    agent.destroy();
    assert.deepEqual(other.http.stats(), { generations: 0, inFlight: 0, sockets: 0 });
  });
});
