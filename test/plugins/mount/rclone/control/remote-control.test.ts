import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createRcClient } from '../../../../../plugins/mount/rclone/control/remote-control.ts';
import type { RcClient } from '../../../../../plugins/mount/rclone/control/remote-control.ts';
import { parseAnswer } from '../../../../../plugins/mount/rclone/control/remote-control-http.ts';

describe('the remote control', () => {
  const connections = new Set<number>();
  const server = createServer((request, response) => {
    connections.add(request.socket.remotePort ?? 0);
    request.setEncoding('utf8');
    let body = '';
    request.on('data', (piece: string) => (body += piece));
    request.on('end', () => {
      if (request.url === '/silent') return;
      if (request.url === '/break') return void request.socket.destroy();
      if (request.url === '/fail') return void response.writeHead(500).end('{"error":"no such thing"}');
      const answer = JSON.stringify({
        echo: JSON.parse(body) as unknown,
        authorization: request.headers.authorization,
      });
      if (request.url === '/chunks') {
        // Of several that are answered at once, the first pieces differ already.
        response.write(answer.slice(0, 20));
        setTimeout(() => response.end(answer.slice(20)), 20);
      } else {
        response.setHeader('content-length', Buffer.byteLength(answer));
        response.end(answer);
      }
    });
  });
  let rc: RcClient;
  const signal = new AbortController().signal;

  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    rc = createRcClient({ port: (server.address() as AddressInfo).port, user: 'u', password: 'p' });
  });
  after(async () => {
    rc.close();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  it('is asked over one kept connection, with credentials', async () => {
    for (let count = 0; count < 5; count += 1) {
      assert.deepEqual(await rc.call('plain', { path: '照片' }, signal), {
        echo: { path: '照片' },
        authorization: `Basic ${Buffer.from('u:p').toString('base64')}`,
      });
    }
    assert.equal(connections.size, 1);
  });

  it('may answer in chunks', async () => {
    assert.deepEqual((await rc.call<{ echo: unknown }>('chunks', { a: 'ä€😀'.repeat(50) }, signal)).echo, {
      a: 'ä€😀'.repeat(50),
    });
  });

  it("passes on rclone's own error", async () => {
    await assert.rejects(rc.call('fail', {}, signal), /^Error: no such thing$/);
  });

  it('ends with the signal, and the next question gets its own answer', async () => {
    const end = new AbortController();
    const silent = rc.call('silent', {}, end.signal);
    end.abort(new Error('too late'));
    await assert.rejects(silent, /too late/);
    assert.deepEqual((await rc.call<{ echo: unknown }>('plain', { n: 1 }, signal)).echo, { n: 1 });
  });

  it('says so when the connection breaks, and is asked anew afterwards', async () => {
    await assert.rejects(rc.call('break', {}, signal), /does not answer/);
    assert.deepEqual((await rc.call<{ echo: unknown }>('plain', { n: 2 }, signal)).echo, { n: 2 });
  });

  it('answers several at once, each its own', async () => {
    const echoes = await Promise.all(
      [1, 2, 3, 4].map((n) => rc.call<{ echo: { n: number } }>('chunks', { n }, signal)),
    );
    assert.deepEqual(
      echoes.map(({ echo }) => echo.n),
      [1, 2, 3, 4],
    );
  });

  it('is read whole, whatever the pieces it comes in', () => {
    const whole = Buffer.from(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n',
    );
    for (let length = 0; length < whole.length; length += 1)
      assert.equal(parseAnswer(whole.subarray(0, length)), undefined, String(length));
    assert.deepEqual(parseAnswer(whole), { status: 200, text: 'abc0123456789abcdef' });
    assert.throws(() => parseAnswer(Buffer.from('SSH-2.0-x\r\n\r\n')), /something else than HTTP/);
  });
});
