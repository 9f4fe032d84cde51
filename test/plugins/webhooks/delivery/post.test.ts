import assert from 'node:assert/strict';
import { lookup as systemLookup } from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { safeLookup } from '../../../../plugins/webhooks/delivery/address.ts';
import { post } from '../../../../plugins/webhooks/delivery/post.ts';
import { SKIPS } from '../../../runner/skips.ts';

async function serve(
  t: TestContext,
  handle: (asked: IncomingMessage, answer: ServerResponse) => void,
  host = '127.0.0.1',
): Promise<URL> {
  const server = createServer(handle);
  server.listen(0, host);
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=k`);
}

const outgoing = (url: URL) => ({ url, headers: { 'content-type': 'text/plain' }, body: 'héllo' });
const send = (url: URL, signal = new AbortController().signal) =>
  post(outgoing(url), { signal, allowPrivate: true });
const sendSafely = (url: URL, resolve = systemLookup) =>
  post(outgoing(url), { signal: AbortSignal.timeout(20_000), allowPrivate: false, resolve });

describe('a post', () => {
  it('brings the body whole and tells the answer', async (t) => {
    const url = await serve(
      t,
      (asked, answer) =>
        void (async () => {
          let text = '';
          for await (const piece of asked as AsyncIterable<Buffer>) text += piece.toString();
          answer
            .writeHead(202, { 'retry-after': '9' })
            .end(`${asked.method} ${asked.url} ${text} ${asked.headers['content-length']}`);
        })(),
    );
    assert.deepEqual(await send(url), {
      status: 202,
      retryAfter: '9',
      location: undefined,
      body: 'POST /hook?key=k héllo 6',
    });
  });

  it('follows redirects on the same host alone, and not for ever', async (t) => {
    const url = await serve(t, (asked, answer) => {
      if (asked.url === '/there') answer.writeHead(200).end(asked.method);
      else
        answer
          .writeHead(asked.url === '/gone' ? 302 : 308, {
            location:
              asked.url === '/round' ? '/round' : asked.url === '/gone' ? 'http://localhost:9/' : '/there',
          })
          .end();
    });
    assert.equal((await send(url)).body, 'POST');
    await assert.rejects(send(new URL('/gone', url.href)), /another host/);
    await assert.rejects(send(new URL('/round', url.href)), /too often/);
  });

  it('reads no more than the beginning of an endless answer', async (t) => {
    const url = await serve(t, (_asked, answer) => {
      const pour = (): void =>
        void (answer.destroyed || answer.write(Buffer.alloc(16_384), () => setImmediate(pour)));
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
    for (const bad of [
      url,
      new URL('http://127.0.0.1:1/secret-token'),
      new URL('http://does-not-exist.invalid/secret-token'),
    ]) {
      await assert.rejects(
        send(bad),
        (error: Error) =>
          /^the (receiver|host name)/.test(error.message) && !/secret|invalid|127/.test(error.message),
        bad.href,
      );
    }
  });

  it('goes to no address that only this machine reaches, by number or by name, unless it is allowed', async (t) => {
    let asked = 0;
    const url = await serve(t, (_asked, answer) => {
      asked += 1;
      answer.end();
    });
    for (const host of [
      '127.0.0.1',
      '127.1',
      '0x7f000001',
      '2130706433',
      '0177.0.0.1',
      '0',
      'localhost',
      'LOCALHOST.',
      'a.localhost',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::]',
    ]) {
      await assert.rejects(
        sendSafely(new URL(`http://${host}:${url.port}/`)),
        /^Error: the address names (a loopback|the unspecified) address.*notifications\.allow_private/,
        host,
      );
    }
    await assert.rejects(sendSafely(new URL('http://169.254.169.254/')), /link-local/);
    assert.equal(asked, 0);
    assert.equal((await send(url)).status, 200);
  });

  it('judges what a name leads to at the very connection', async (t) => {
    let asked = 0;
    const url = await serve(t, (_asked, answer) => {
      asked += 1;
      answer.end();
    });
    for (const addresses of [
      ['127.0.0.1'],
      ['203.0.113.1', '127.0.0.1'],
      ['::ffff:127.0.0.1'],
      ['64:ff9b::7f00:1'],
      ['fe80::1%eth0'],
      ['169.254.169.254'],
    ]) {
      await assert.rejects(
        sendSafely(new URL(`http://hook.example.org:${url.port}/`), resolver([addresses]).lookup),
        /^Error: the name leads to a (loopback|link-local) address/,
        addresses.join(),
      );
    }
    assert.equal(asked, 0);
  });

  it('asks for a name once for each connection, and takes no answer that changed for a redirect', async (t) => {
    const outside = Object.values(networkInterfaces())
      .flat()
      .find((one) => one?.family === 'IPv4' && !one.internal);
    if (!outside) return t.skip(SKIPS.network.reason);
    const url = await serve(
      t,
      (_asked, answer) => void answer.writeHead(307, { location: '/second' }).end(),
      '0.0.0.0',
    );
    const names = resolver([[outside.address], ['127.0.0.1']]);
    await assert.rejects(
      sendSafely(new URL(`http://hook.example.org:${url.port}/first`), names.lookup),
      /^Error: the name leads to a loopback address/,
    );
    assert.equal(names.asked(), 2);
    await assert.rejects(
      sendSafely(new URL(`http://${outside.address}:${url.port}/`)),
      /too often/,
      'an address of the LAN needs no permission',
    );
  });
});

/** A resolver whose answer is another one each time; the last one stays. */
function resolver(answers: readonly (readonly string[])[]) {
  let asked = 0;
  const lookup = (
    _name: string,
    _options: object,
    callback: (error: null, found: { address: string; family: number }[]) => void,
  ): void => {
    const found = answers[Math.min(asked, answers.length - 1)] ?? [];
    asked += 1;
    callback(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return { lookup: lookup as unknown as typeof systemLookup, asked: () => asked };
}

describe('the lookup', () => {
  const look = (all: boolean, resolve: typeof systemLookup) =>
    new Promise((done, reject) => {
      safeLookup(resolve)('hook.example.org', { all, family: 4 }, (error, address) =>
        error ? reject(error) : done(address),
      );
    });

  it('gives what the name leads to, one or all', async () => {
    const { lookup } = resolver([['192.168.1.5', '203.0.113.1']]);
    assert.equal(await look(false, lookup), '192.168.1.5');
    assert.deepEqual(await look(true, lookup), [
      { address: '192.168.1.5', family: 4 },
      { address: '203.0.113.1', family: 4 },
    ]);
  });

  it("is the system's own, and fails as that does", async () => {
    await assert.rejects(
      new Promise((done, reject) => {
        safeLookup()('localhost', { all: true }, (error, address) => (error ? reject(error) : done(address)));
      }),
      /leads to a loopback address/,
    );
    await assert.rejects(look(true, resolver([[]]).lookup), /leads nowhere/);
  });
});
