/** Bodies that are received as a whole before a backend hears of them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { firstOf } from '../../../../../plugins/webdav/proxy/writes/first-bytes.ts';
import { SmallBodies } from '../../../../../plugins/webdav/proxy/writes/small-bodies.ts';
import { sleep } from '../../../../support/platform/wait.ts';

const LARGEST = 131_072;
/** So many of the largest ones fit in. */
const MANY = 128;
const CHUNKED = { 'transfer-encoding': 'chunked' };

describe('the small bodies of uploads over WebDAV', () => {
  let server: Server;
  before(async () => {
    server = createServer((request) => request.on('error', () => undefined));
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  /** A request that has come, and its client. */
  const begin = async (
    headers: OutgoingHttpHeaders,
  ): Promise<{ readonly client: ClientRequest; readonly message: IncomingMessage }> => {
    const { port } = server.address() as AddressInfo;
    const client = httpRequest({ host: '127.0.0.1', port, method: 'PUT', agent: false, headers });
    client.on('error', () => undefined).flushHeaders();
    const [message] = (await once(server, 'request')) as [IncomingMessage];
    return { client, message };
  };
  /** The next ones of many clients, of whom all that is sent has come. */
  const come = (body: Buffer): IncomingMessage =>
    Object.assign(new PassThrough().end(body), { complete: true }) as unknown as IncomingMessage;
  const rest = async (message: IncomingMessage): Promise<Buffer> => {
    const pieces: Buffer[] = [];
    message.on('data', (piece: Buffer) => pieces.push(piece));
    await once(message, 'end');
    return Buffer.concat(pieces);
  };

  for (const size of [0, 1, 5_000, LARGEST])
    for (const [what, headers] of [
      ['told before', { 'content-length': size }],
      ['not told', CHUNKED],
    ] as const)
      it(`are whole at their end: ${size} bytes, ${what}`, async () => {
        const body = randomBytes(size);
        const { client, message } = await begin(headers);
        const collected = new SmallBodies().collect(message);
        client.end(body);
        assert.ok((await collected)?.bytes.equals(body));
      });

  it('are whole when they had come before anybody read them', async () => {
    const { client, message } = await begin({ 'content-length': 3 });
    client.end('abc');
    while (!message.complete) await sleep(5);
    assert.equal((await new SmallBodies().collect(message))?.bytes.toString(), 'abc');
  });

  it('may come in tiny pieces', async () => {
    const { client, message } = await begin(CHUNKED);
    const collected = new SmallBodies().collect(message);
    for (const byte of 'in tiny pieces') {
      client.write(byte);
      await sleep(2);
    }
    client.end();
    assert.equal((await collected)?.bytes.toString(), 'in tiny pieces');
  });

  for (const size of [LARGEST + 1, 1_000_000])
    for (const headers of [CHUNKED, { 'content-length': size }])
      it(`leave ${size} bytes (${Object.keys(headers).join()}) to be read from their beginning`, async () => {
        const body = randomBytes(size);
        const { client, message } = await begin(headers);
        const collected = new SmallBodies().collect(message);
        client.end(body);
        assert.equal(await collected, undefined);
        assert.ok((await firstOf(message))?.equals(body.subarray(0, 4_096)));
        // As when a backend is slow to begin.
        await sleep(50);
        assert.ok((await rest(message)).equals(body));
      });

  for (const headers of [CHUNKED, { 'content-length': 10 }])
    it(`are none when their client leaves (${Object.keys(headers).join()})`, async () => {
      const { client, message } = await begin(headers);
      const collected = new SmallBodies().collect(message);
      client.write('half');
      while (!message.socket.bytesRead) await sleep(5);
      await sleep(20);
      client.destroy();
      assert.equal(await collected, undefined);
      assert.equal(await firstOf(message), undefined);
    });

  it('fill no more than their memory: what does not fit in is read from its beginning', async () => {
    const bodies = new SmallBodies();
    const held = await Promise.all(
      Array.from({ length: MANY }, () => bodies.collect(come(Buffer.alloc(LARGEST)))),
    );
    assert.ok(held.every((body) => body?.bytes.length === LARGEST));
    const message = come(Buffer.from('more'));
    assert.equal(await bodies.collect(message), undefined);
    assert.equal((await firstOf(message))?.toString(), 'more');
    assert.equal((await rest(message)).toString(), 'more');
    assert.equal((await bodies.collect(come(Buffer.alloc(0))))?.bytes.length, 0);
    held[0]?.release();
    assert.equal((await bodies.collect(come(Buffer.from('more'))))?.bytes.toString(), 'more');
  });

  it('take as much of it as has come, and leave it when they break off or are too large', async () => {
    const bodies = new SmallBodies();
    const slow = Array.from({ length: 2_500 }, () => new PassThrough());
    const collected = slow.map((client) => bodies.collect(client as unknown as IncomingMessage));
    for (const client of slow) client.write('1');
    await sleep(50);
    assert.ok(await bodies.collect(come(Buffer.alloc(LARGEST))), 'there is room beside them');
    for (const client of slow) client.destroy();
    assert.ok((await Promise.all(collected)).every((body) => body === undefined));
    for (let count = 0; count < 2 * MANY; count += 1)
      assert.equal(await bodies.collect(come(Buffer.alloc(LARGEST + 1))), undefined);
    // One is held from before.
    for (let count = 1; count < MANY; count += 1)
      assert.ok(await bodies.collect(come(Buffer.alloc(LARGEST))), String(count));
  });
});
