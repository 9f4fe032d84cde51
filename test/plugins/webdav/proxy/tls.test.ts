/** The proxy with TLS: what it speaks and refuses, and that no new certificate costs a request. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { once } from 'node:events';
import { connect as connectPlainly } from 'node:net';
import { connect, createServer } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import type { AddressInfo } from 'node:net';
import type { IncomingMessage } from 'node:http';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { readPair } from '../../../../core/platform/certificates/pair.ts';
import { isAnswering, isShown } from '../../../../plugins/webdav/exporter/health-check.ts';
import { createAuthority } from '../../../support/http/certificates.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { basic, ProxyFixture } from '../../../support/webdav/fake-backend.ts';

const ALICE = { name: 'alice', password: 'wonder:land' };
const signal = (): AbortSignal => AbortSignal.timeout(30_000);

describe('the proxy of WebDAV with TLS', () => {
  let scratch: Scratch;
  let ca: Buffer;
  let one: ReturnType<typeof readPair>;
  let two: ReturnType<typeof readPair>;
  let fixture: ProxyFixture;

  before(async () => {
    scratch = await createScratch('webdav-tls');
    const authority = await createAuthority(scratch.path('authority'));
    ca = await readFile(authority.root);
    one = readPair(await authority.issue('one'));
    two = readPair(await authority.issue('two'));
  });
  after(() => scratch.close());
  beforeEach(async () => {
    fixture = await ProxyFixture.open({ isSecure: true });
    fixture.backend.files.set('/team/a', Buffer.from('hi'));
  });
  afterEach(() => fixture.close());

  /** The version, or the code of the error. */
  const shakeHands = (options: ConnectionOptions = {}): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ ca, port: fixture.port, host: '127.0.0.1', ...options });
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      socket.once('secureConnect', () => {
        resolve(`${socket.getProtocol()} ${socket.authorized}`);
        socket.destroy();
      });
    });

  /** On a connection of its own: the body, and the fingerprint that was shown. */
  const get = async (path: string): Promise<{ body: string; fingerprint: string }> => {
    const headers = { authorization: basic(ALICE.name, ALICE.password) };
    const call = request({ ca, port: fixture.port, host: '127.0.0.1', agent: false, path, headers }).end();
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    const { fingerprint256 } = (response.socket as ReturnType<typeof connect>).getPeerCertificate();
    let body = '';
    for await (const piece of response) body += String(piece);
    return { body, fingerprint: fingerprint256 };
  };

  it('lets nobody connect before there is a certificate, and speaks no plain HTTP', async () => {
    assert.equal(await shakeHands(), 'ECONNRESET');
    assert.equal(fixture.proxy.report.fingerprint, undefined);
    await fixture.tell({ certificate: one });
    assert.equal(fixture.proxy.report.fingerprint, one.fingerprint);
    const socket = connectPlainly({ port: fixture.port, host: '127.0.0.1' });
    let heard = '';
    socket.on('data', (piece: Buffer) => (heard += piece.toString('latin1'))).on('error', () => undefined);
    socket.write(
      `GET /team/a HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic('alice', 'wonder:land')}\r\n\r\n`,
    );
    await once(socket, 'close');
    assert.doesNotMatch(heard, /HTTP/);
    assert.equal(fixture.backend.count('GET'), 0);
  });

  it('shows its chain, and speaks versions 1.2 and 1.3 alone', async () => {
    await fixture.tell({ certificate: one });
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
      assert.equal(await shakeHands({ minVersion: version, maxVersion: version }), `${version} true`);
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    assert.match(await shakeHands(old), /ALERT|PROTOCOL|ECONNRESET/);
  });

  it('takes a new certificate without losing a request, and keeps it where a state has none', async () => {
    await fixture.tell({ certificate: one });
    let finish = (): void => undefined;
    fixture.backend.before = ({ url }, response) => {
      if (url !== '/team/slow') return false;
      finish = () => response.writeHead(200).end('done');
      return true;
    };
    const slow = get('/team/slow');
    const shown = new Set<string>();
    let isOver = false;
    const client = async (): Promise<void> => {
      while (!isOver) {
        const { body, fingerprint } = await get('/team/a');
        assert.equal(body, 'hi');
        shown.add(fingerprint);
      }
    };
    const clients = Promise.all([client(), client(), client(), client()]);
    for (let round = 0; round < 10; round += 1) {
      await get('/team/a');
      await fixture.tell({ certificate: round % 2 === 0 ? two : one });
    }
    isOver = true;
    await clients;
    assert.deepEqual(shown, new Set([one.fingerprint, two.fingerprint]));
    finish();
    assert.deepEqual(await slow, { body: 'done', fingerprint: one.fingerprint });
    const { certificate, ...without } = fixture.state;
    assert.ok(certificate);
    await fixture.proxy.take(without);
    assert.equal((await get('/team/a')).fingerprint, one.fingerprint);
  });

  it('is asked by the daemon, which sends its password to no other certificate', async () => {
    fixture.backend.files.set('/team/', Buffer.alloc(0));
    await fixture.tell({ certificate: one });
    const address = { host: '127.0.0.1', port: fixture.port };
    const isOurs = (fingerprint: string): boolean => fingerprint === one.fingerprint;
    assert.equal(await isShown({ ...address, isOurs }, '/team/', { user: ALICE }, signal()), true);
    assert.equal(await isAnswering({ ...address, isOurs }, signal()), true);
    let heard = 0;
    const foreign = createServer(two, (socket) =>
      socket.on('error', () => undefined).on('data', ({ length }: Buffer) => (heard += length)),
    ).listen(0, '127.0.0.1');
    await once(foreign, 'listening');
    const { port } = foreign.address() as AddressInfo;
    await assert.rejects(
      isShown({ ...address, port, isOurs }, '/team/', { user: ALICE }, signal()),
      /another certificate/,
    );
    const closed = once(foreign, 'close');
    foreign.close();
    await closed;
    assert.equal(heard, 0);
  });
});
