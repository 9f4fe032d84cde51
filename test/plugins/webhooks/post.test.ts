import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { safeLookup } from '../../../plugins/webhooks/address.ts';
import { post } from '../../../plugins/webhooks/post.ts';

async function serve(t: TestContext, handle: (asked: IncomingMessage, answer: ServerResponse) => void): Promise<URL> {
  const server = createServer(handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=k`);
}

const send = (url: URL, signal = new AbortController().signal) => post({ url, headers: { 'content-type': 'text/plain' }, body: 'héllo' }, signal);

describe('a post', () => {
  it('brings the body whole and tells the answer', async (t) => {
    const url = await serve(t, (asked, answer) => void (async () => {
      let text = '';
      for await (const piece of asked as AsyncIterable<Buffer>) text += piece.toString();
      answer.writeHead(202, { 'retry-after': '9' }).end(`${asked.method} ${asked.url} ${text} ${asked.headers['content-length']}`);
    })());
    assert.deepEqual(await send(url), { status: 202, retryAfter: '9', location: undefined, body: 'POST /hook?key=k héllo 6' });
  });

  it('follows redirects on the same host alone, and not for ever', async (t) => {
    const url = await serve(t, (asked, answer) => {
      if (asked.url === '/there') answer.writeHead(200).end(asked.method);
      else answer.writeHead(asked.url === '/gone' ? 302 : 308, { location: asked.url === '/round' ? '/round' : asked.url === '/gone' ? 'http://localhost:9/' : '/there' }).end();
    });
    assert.equal((await send(url)).body, 'POST');
    await assert.rejects(send(new URL('/gone', url.href)), /another host/);
    await assert.rejects(send(new URL('/round', url.href)), /too often/);
  });

  it('reads no more than the beginning of an endless answer', async (t) => {
    const url = await serve(t, (_asked, answer) => {
      const pour = (): void => void (answer.destroyed || answer.write(Buffer.alloc(16_384), () => setImmediate(pour)));
      pour();
    });
    assert.ok((await send(url)).body.length < 200_000);
  });

  it('ends with its signal, whenever that comes', async (t) => {
    const end = new AbortController();
    const url = await serve(t, () => end.abort(new Error('late')));
    await assert.rejects(send(url, end.signal), /late/);
    await assert.rejects(send(url, end.signal), /late/);
  });

  it('never names the address in what went wrong', async (t) => {
    const url = await serve(t, (asked) => asked.socket.destroy());
    for (const bad of [url, new URL('http://127.0.0.1:1/secret-token'), new URL('http://does-not-exist.invalid/secret-token')]) {
      await assert.rejects(send(bad), (error: Error) => /^the (receiver|host name)/.test(error.message) && !/secret|invalid|127/.test(error.message), bad.href);
    }
    await assert.rejects(send(new URL('http://169.254.169.254/')), /link-local/);
  });
});

describe('the lookup', () => {
  it('gives what the name leads to, one or all', async () => {
    const look = (all: boolean) => new Promise((resolve, reject) => {
      safeLookup('localhost', { all, family: 4 }, (error, address) => (error ? reject(error) : resolve(address)));
    });
    assert.equal(await look(false), '127.0.0.1');
    // Where the name has an IPv6 line beside it, the system gives the address twice.
    const all = (await look(true)) as readonly unknown[];
    assert.ok(all.length > 0);
    assert.deepEqual(all, all.map(() => ({ address: '127.0.0.1', family: 4 })));
  });
});
