/** The API's own listener while somebody opens more connections than there may be, and behind a proxy. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, it } from 'node:test';
import { definePlugin, eventStream } from '../../core/sdk/index.ts';
import type { EventSink } from '../../core/sdk/index.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import { until } from '../support/platform/wait.ts';
import { API_PLUGINS, createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const SOON = { timeoutMs: 20_000, everyMs: 10 };
const LIMITS = { maxConnections: 30, maxPerAddress: 20 };
const PASSWORD = '\n[web]\npassword = "pw"\n';
const RIGHT = basic('pw');

function basic(password: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`admin:${password}`).toString('base64')}` };
}

describe('the API in a crowd', () => {
  let api: ApiFixture;
  let sockets: Socket[] = [];
  const sinks: EventSink[] = [];
  let download: Readable | undefined;

  const streams = definePlugin({
    name: 'streams',
    version: '1.0.0',
    apiVersion: 1,
    description: 'Answers that go on.',
    register(ctx) {
      ctx.route(
        {
          method: 'GET',
          path: '/events',
          handler: (request, h) => eventStream(request, h, (sink) => (sinks.push(sink), () => undefined)),
        },
        {
          method: 'GET',
          path: '/download',
          handler: () => {
            download = new Readable({ read: () => undefined });
            download.push('begun, ');
            return download;
          },
        },
        { method: 'GET', path: '/who', handler: (request) => request.client.address },
        {
          method: 'GET',
          path: '/endless',
          handler: () =>
            new Readable({
              read() {
                this.push(Buffer.alloc(65_536));
              },
            }),
        },
      );
    },
  });
  const open = async (toml: string, limits = {}): Promise<void> => {
    api = await createApi({
      toml,
      plugins: [...API_PLUGINS, streams as Plugin],
      http: { limits: { ...LIMITS, ...limits } },
    });
  };
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    sinks.length = 0;
    await api.close();
  });

  const silent = async (count: number, text = ''): Promise<readonly Socket[]> => {
    for (let opened = 0; opened < count; opened += 1) {
      const socket = connect({ port: api.port, host: '127.0.0.1', allowHalfOpen: true });
      sockets.push(socket.on('error', () => undefined));
      await once(socket, 'connect');
      socket.write(text);
    }
    return sockets.slice(-count);
  };
  /** A long answer, and all that has come of it. */
  const begin = async (path: string, headers: Record<string, string>): Promise<() => string> => {
    const request = httpRequest({ host: '127.0.0.1', port: api.port, path, headers, agent: false });
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage];
    sockets.push(response.socket);
    let text = '';
    response.on('error', () => undefined).on('data', (piece: Buffer) => (text += piece.toString()));
    return () => text;
  };

  it('goes on with event streams and downloads of who has logged in, and answers who comes', async () => {
    await open(`${SAMPLE}${PASSWORD}`);
    const events = await begin('/events', RIGHT);
    const file = await begin('/download', RIGHT);
    for (const text of [
      '',
      'GET /api/status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ',
      'POST /api/bwlimit HTTP/1.1\r\nHost: localhost\r\ncontent-length: 10\r\n\r\n{',
    ]) {
      await silent(60, text);
      assert.equal((await api.get('/api/status', RIGHT)).status, 200);
      assert.ok(api.http.stats().sockets <= 21, String(api.http.stats().sockets));
    }
    sinks[0]?.send({ event: 'news', data: 'here' });
    download?.push('all of it');
    download?.push(null);
    await until('both go on', () => events().includes('data: here') && file() === 'begun, all of it', SOON);
    assert.equal(api.logLines.filter(({ msg }) => String(msg).startsWith('too many connections')).length, 1);
  });

  it('cuts off nobody who has logged in: when all are being served, who comes is told so', async () => {
    await open(`${SAMPLE}${PASSWORD}`);
    const streams: (() => string)[] = [];
    for (let opened = 0; opened < LIMITS.maxPerAddress; opened += 1)
      streams.push(await begin('/events', RIGHT));
    const refused = await api.get('/api/status', RIGHT);
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '5']);
    for (const sink of sinks) sink.send({ event: 'news', data: 'here' });
    await until('all go on', () => streams.every((heard) => heard().includes('data: here')), SOON);
  });

  it('without a password lets the silent make way before an event stream', async () => {
    await open(SAMPLE);
    const events = await begin('/events', {});
    await silent(60);
    await silent(60, 'POST /api/bwlimit HTTP/1.1\r\nHost: localhost\r\ncontent-length: 10\r\n\r\n{');
    assert.equal((await api.get('/api/status')).status, 200);
    sinks[0]?.send({ event: 'news', data: 'here' });
    await until('it goes on', () => events().includes('data: here'), SOON);
  });

  it('frees the connections of those who say nothing, never end, or take nothing of their answer', async () => {
    await open(SAMPLE, {
      headersTimeoutMs: 300,
      requestTimeoutMs: 400,
      checkIntervalMs: 50,
      keepAliveTimeoutMs: 300,
      idleAnswerMs: 500,
    });
    const [greedy] = await silent(1, 'GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n');
    greedy?.pause();
    for (const text of [
      '',
      'GET / HTTP/1.1\r\nX-Slow: ',
      'POST /api/bwlimit HTTP/1.1\r\nHost: localhost\r\ncontent-length: 10\r\n\r\n{',
      'GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n',
    ])
      await silent(3, text);
    assert.ok(api.http.stats().sockets > 0);
    await until('all are free', () => api.http.stats().sockets === 0, SOON);
  });

  it('lets twelve of twelve in within a second while eight guess from the same address', async () => {
    await open(`${SAMPLE}${PASSWORD}`);
    let isOver = false;
    const guessers = Array.from({ length: 8 }, async (_, who) => {
      for (let count = 0; !isOver; count += 1)
        await api.get('/api/status', basic(`guess ${who} ${count}`)).catch(() => undefined);
    });
    await until(
      'they are slowed down',
      () => api.logLines.filter(({ msg }) => msg === 'wrong password').length >= 3,
      SOON,
    );
    for (let login = 0; login < 12; login += 1) {
      const started = performance.now();
      assert.equal((await api.get('/api/status', RIGHT)).status, 200, `login ${login}`);
      assert.ok(performance.now() - started < 1_000, `login ${login} took ${performance.now() - started} ms`);
    }
    const guesses = api.logLines.filter(({ msg }) => msg === 'wrong password').length;
    assert.ok(guesses < 60, `${guesses} guesses were looked at`);
    isOver = true;
    await api.http.close();
    await Promise.all(guessers);
  });

  it("takes a trusted proxy's word on who its client is, and nobody else's", async () => {
    const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });
    await open(`${SAMPLE}${PASSWORD}`);
    assert.equal((await api.get('/who', { ...RIGHT, ...from('192.0.2.7') })).body, '127.0.0.1');
    await api.apply(`${SAMPLE}${PASSWORD}trusted_proxies = ["127.0.0.0/8"]\n`);
    assert.equal((await api.get('/who', { ...RIGHT, ...from('192.0.2.7') })).body, '192.0.2.7');
    assert.equal(
      (await api.get('/who', { ...RIGHT, forwarded: 'for="[2001:db8::7]:1"' })).body,
      '2001:db8::7',
    );
    const guesses = Array.from({ length: 6 }, (_, index) =>
      api.get('/api/status', { ...basic(`guess ${index}`), ...from('192.0.2.66') }),
    );
    await until(
      'they wait',
      () => api.logLines.some(({ msg, address }) => msg === 'wrong password' && address === '192.0.2.66'),
      SOON,
    );
    assert.equal(
      (await api.get('/api/status', { ...RIGHT, ...from('192.0.2.8') })).status,
      200,
      'never seen there before',
    );
    assert.equal((await Promise.all(guesses)).filter(({ status }) => status === 200).length, 0);
    await silent(25);
    assert.ok(api.http.stats().sockets >= 25, 'a proxy is not limited by its address');
  });
});
