/** The web server with TLS: what it speaks and refuses, and that no change of certificates costs a request. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import type { RequestOptions } from 'node:https';
import { connect } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { KeyPair } from '../../../core/contract/http.ts';
import { readPair } from '../../../core/platform/certificates/pair.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { createAuthority } from '../../support/http/certificates.ts';
import { ask, createServer, dial, ledger, textRoute } from '../../support/http/test-server.ts';
import type { TestServer } from '../../support/http/test-server.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until, within } from '../../support/platform/wait.ts';

describe('the listener with TLS', () => {
  let scratch: Scratch;
  let root: string;
  let ca: Buffer;
  let one: KeyPair;
  let two: KeyPair;
  let server: TestServer;
  let hsts: boolean;
  let finish: () => void;

  before(async () => {
    scratch = await createScratch('tls');
    const authority = await createAuthority(scratch.path('authority'));
    root = authority.root;
    ca = await readFile(root);
    one = readPair(await authority.issue('one'));
    two = readPair(await authority.issue('two'));
  });
  after(() => scratch.close());
  beforeEach(async () => {
    hsts = false;
    const slow = new Promise<string>((resolve) => (finish = () => resolve('slow')));
    server = await createServer({ hsts: () => hsts });
    await server.swap(
      ledger('page', {
        routes: [textRoute('/', 'page'), { method: 'GET', path: '/slow', handler: () => slow }],
      }),
    );
  });
  afterEach(async () => {
    finish();
    await server.http.close();
  });

  const secure = (certificate?: KeyPair): Promise<void> =>
    server.http.listen({ host: '127.0.0.1', port: server.port }, certificate);

  function askSecurely(options: RequestOptions = {}) {
    return new Promise<{ body: string; headers: Record<string, unknown>; socket: string }>(
      (resolve, reject) => {
        const call = request(
          { ca, port: server.port, host: '127.0.0.1', agent: false, ...options },
          (response) => {
            let body = '';
            response.setEncoding('utf8').on('data', (piece: string) => (body += piece));
            response.on('error', reject);
            const { fingerprint256 } = (response.socket as ReturnType<typeof connect>).getPeerCertificate();
            response.on('end', () => resolve({ body, headers: response.headers, socket: fingerprint256 }));
          },
        );
        call.on('error', reject);
        call.end();
      },
    );
  }

  /** The version, or the code of the error. */
  function shakeHands(options: ConnectionOptions): Promise<string> {
    return new Promise((resolve) => {
      const socket = connect({ ca, port: server.port, host: '127.0.0.1', ...options });
      socket.once('secureConnect', () => resolve(`${socket.getProtocol()} ${socket.authorized}`));
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      socket.once('secureConnect', () => socket.destroy());
    });
  }

  it('shows its chain, and speaks no version before 1.2', async () => {
    await secure(one);
    const answer = await askSecurely();
    assert.deepEqual([answer.body, answer.socket], ['page', one.fingerprint]);
    assert.equal(await shakeHands({}), 'TLSv1.3 true');
    assert.equal(await shakeHands({ maxVersion: 'TLSv1.2' }), 'TLSv1.2 true');
    for (const version of ['TLSv1.1', 'TLSv1'] as const)
      assert.equal(
        await shakeHands({ minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' }),
        'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
      );
    assert.equal(await shakeHands({ ALPNProtocols: ['h2'] }), 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL');
  });

  it('shows openssl its whole chain, compresses nothing, and takes strong ciphers alone', async () => {
    await secure(one);
    const asClient = [
      's_client',
      '-connect',
      `127.0.0.1:${server.port}`,
      '-CAfile',
      root,
      '-verify_return_error',
    ];
    const shake = (cipher: string) =>
      runClient('openssl', [...asClient, '-tls1_2', '-cipher', `${cipher}@SECLEVEL=0`]);
    const { code, output } = await shake('ECDHE+AESGCM');
    assert.equal(code, 0, output);
    assert.match(output, /Verify return code: 0 \(ok\)/);
    assert.match(output, /Compression: NONE/);
    assert.match(output, /Server Temp Key: /);
    // Not every openssl can offer each of them.
    const offered: string[] = [];
    for (const weak of [
      'eNULL',
      'aNULL',
      'EXPORT',
      'RC4',
      '3DES',
      'MD5',
      'PSK',
      'SRP',
      'CAMELLIA',
      'IDEA',
      'SEED',
    ]) {
      if ((await runClient('openssl', ['ciphers', '-tls1_2', '-s', `${weak}@SECLEVEL=0`])).code !== 0)
        continue;
      offered.push(weak);
      assert.notEqual((await shake(weak)).code, 0, weak);
    }
    assert.ok(offered.includes('eNULL') && offered.includes('aNULL'), offered.join(' '));
  });

  it('ends plain HTTP and noise, and goes on', async () => {
    await secure(one);
    await assert.rejects(ask({ port: server.port }), /socket hang up|ECONNRESET/);
    for (const noise of [
      'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n',
      '\x16\x03\x01\xff\xff',
      '\0'.repeat(9_000),
    ]) {
      const wire = await dial(server.port);
      wire.socket.end(noise);
      await within('the end', 20_000, wire.ended);
      assert.doesNotMatch(wire.text(), /page/);
    }
    assert.equal((await askSecurely()).body, 'page');
    await until('nothing is left', () => server.http.stats().sockets === 0, { timeoutMs: 20_000 });
  });

  it('ends a connection that does not come to the end of its handshake', async () => {
    await server.http.close();
    server = await createServer({ limits: { headersTimeoutMs: 200 } });
    await server.swap(ledger('page', { routes: [textRoute('/', 'page')] }));
    await secure(one);
    const wire = await dial(server.port);
    await within('the end', 20_000, wire.ended);
    assert.equal((await askSecurely()).body, 'page');
  });

  it('loses no request while the certificate changes again and again', async () => {
    await secure(one);
    const kept = new Agent({ keepAlive: true });
    const seen = new Set<string>();
    let isOver = false;
    let count = 0;
    const clients = [kept, undefined, undefined].map(async (agent) => {
      while (!isOver) {
        const answer = await askSecurely({ agent: agent ?? false });
        assert.equal(answer.body, 'page');
        seen.add(answer.socket);
        count += 1;
      }
    });
    for (let round = 0; round < 20; round += 1) {
      await secure(round % 2 === 0 ? two : one);
      const former = count;
      await until('requests', () => count > former + 3, { timeoutMs: 20_000, everyMs: 2 });
    }
    isOver = true;
    await Promise.all(clients);
    kept.destroy();
    assert.deepEqual(seen, new Set([one.fingerprint, two.fingerprint]));
  });

  it('is switched on and off on the same port, and finishes what it has begun', async () => {
    const { port } = server;
    const plain = ask({ port, path: '/slow' });
    await until('it runs', () => server.http.stats().inFlight === 1, { timeoutMs: 20_000, everyMs: 5 });
    await secure(one);
    assert.equal(server.port, port);
    assert.equal((await askSecurely()).body, 'page');
    await assert.rejects(ask({ port }));
    finish();
    assert.equal((await plain).body, 'slow');
    await secure();
    assert.equal((await ask({ port })).body, 'page');
    await assert.rejects(askSecurely());
  });

  it('never goes back to plain HTTP when TLS is wanted and fails; TLS stays', async () => {
    const { port } = server;
    const broken = { ...one, key: 'no key' };
    await assert.rejects(secure(broken));
    assert.equal(server.http.address, undefined);
    await assert.rejects(ask({ port }), /ECONNREFUSED/);
    await server.http.listen({ host: '127.0.0.1', port }, one);
    await server.http.closePlain();
    assert.equal((await askSecurely()).body, 'page');
    await server.http.listen({ host: '127.0.0.1', port });
    await server.http.closePlain();
    await assert.rejects(ask({ port }), /ECONNREFUSED/);
  });

  it('tells browsers to come by TLS alone when that is asked for, and over TLS', async () => {
    const name = 'strict-transport-security';
    await secure(one);
    assert.equal((await askSecurely()).headers[name], undefined);
    hsts = true;
    assert.equal((await askSecurely()).headers[name], 'max-age=31536000');
    await secure();
    assert.equal((await ask({ port: server.port })).headers[name], undefined);
  });
});
