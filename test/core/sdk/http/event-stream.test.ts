import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { eventStream } from '../../../../core/sdk/index.ts';
import type { EventSink, EventStreamOptions } from '../../../../core/sdk/index.ts';
import { until, within } from '../../../support/platform/wait.ts';
import { ask, createServer, dial, ledger } from '../../../support/http/test-server.ts';
import type { TestServer } from '../../../support/http/test-server.ts';

interface Listening {
  readonly response: IncomingMessage;
  readonly ended: Promise<void>;
  text(): string;
}

function listen(port: number): Promise<Listening> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { port, host: '127.0.0.1', path: '/events', agent: false, headers: { 'accept-encoding': 'gzip' } },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        const ended = new Promise<void>((done, fail) => {
          response.once('end', () => done());
          response.once('error', fail);
        });
        ended.catch(() => undefined);
        resolve({ response, ended, text: () => text });
      },
    );
    request.on('error', reject);
    request.end();
  });
}

describe('an event stream', () => {
  let server: TestServer;
  let sinks: EventSink[];
  let released: number;
  let endAnswer: () => void;

  async function serve(options: EventStreamOptions = {}): Promise<void> {
    await server.swap(
      ledger('page', {
        routes: [
          {
            method: 'GET',
            path: '/events',
            handler: (request, h) =>
              eventStream(
                request,
                h,
                (sink) => {
                  sinks.push(sink);
                  endAnswer = () => request.app.endAnswer?.();
                  return () => {
                    released += 1;
                  };
                },
                options,
              ),
          },
        ],
      }),
    );
  }

  beforeEach(async () => {
    sinks = [];
    released = 0;
    server = await createServer();
    await serve();
  });
  afterEach(() => server.http.close());

  const eventually = (what: string, condition: () => boolean) =>
    until(what, condition, { timeoutMs: 20_000, everyMs: 2 });

  /** Takes nothing of its stream until it is told to. */
  const slowReader = async () => {
    const wire = await dial(server.port);
    wire.socket.pause();
    wire.socket.write('GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await eventually('the stream is open', () => sinks.length === 1);
    return wire;
  };

  it('tells the browser when to come back and delivers each event at once', async () => {
    const listening = await listen(server.port);
    assert.match(String(listening.response.headers['content-type']), /^text\/event-stream/);
    assert.equal(listening.response.headers['cache-control'], 'no-store');
    assert.equal(listening.response.headers['content-encoding'], undefined);
    await eventually('the retry line', () => listening.text() === 'retry: 2000\n\n');
    sinks[0]?.send({ event: 'status', data: 'one\ntwo', id: '7' });
    await eventually('the event', () =>
      listening.text().endsWith('id: 7\nevent: status\ndata: one\ndata: two\n\n'),
    );
    sinks[0]?.send({ event: 'other\nname', data: '' });
    await eventually('the next', () => listening.text().endsWith('event: other name\ndata: \n\n'));
    listening.response.destroy();
  });

  it('delivers what is sent in one go as one piece, the newest of what replaces each other', async () => {
    const listening = await listen(server.port);
    await eventually('the retry line', () => listening.text() === 'retry: 2000\n\n');
    const pieces: string[] = [];
    listening.response.on('data', (piece: string) => pieces.push(piece));
    const text = (name: string, data: string): string => `event: ${name}\ndata: ${data}\n\n`;
    for (let count = 0; count < 100; count += 1) sinks[0]?.send({ event: `e${count}`, data: 'x' });
    sinks[0]?.send({ event: 'values', replaces: 'values a', data: 'a1' });
    sinks[0]?.send({ event: 'values', replaces: 'values b', data: 'b1' });
    sinks[0]?.send({ event: 'values', replaces: 'values a', data: 'a2' });
    await eventually('the last one', () => listening.text().includes('a2'));
    assert.deepEqual(pieces, [
      Array.from({ length: 100 }, (_, count) => text(`e${count}`, 'x')).join('') +
        text('values', 'b1') +
        text('values', 'a2'),
    ]);
    listening.response.destroy();
  });

  it('makes one event of those that join, the newest of what replaces each other, in order', async () => {
    const listening = await listen(server.port);
    await eventually('the retry line', () => listening.text() === 'retry: 2000\n\n');
    const send = (name: string, data: string, id?: string): void =>
      sinks[0]?.send({ event: 'values', replaces: name, joins: true, data, ...(id !== undefined && { id }) });
    send('a', 'a1');
    send('b', 'b1');
    send('c', 'c1\nc2', '1');
    send('a', 'a2', '2');
    sinks[0]?.send({ event: 'other', data: 'x' });
    send('d', 'd1');
    await eventually('the last one', () => listening.text().includes('d1'));
    assert.equal(
      listening.text(),
      'retry: 2000\n\nevent: values\ndata: b1\ndata: c1\ndata: c2\nid: 1\ndata: a2\nid: 2\n\n' +
        'event: other\ndata: x\n\nevent: values\ndata: d1\n\n',
    );
    listening.response.destroy();
  });

  it('delivers a list as one piece, as its events one by one, to each of its readers', async () => {
    const [one, other] = [await listen(server.port), await listen(server.port)];
    await eventually('both are there', () => one.text() + other.text() === 'retry: 2000\n\n'.repeat(2));
    const arrived: string[] = [];
    one.response.on('data', (piece: string) => arrived.push(piece));
    const list = [
      { event: 'part', data: '照片\nb' },
      { event: 'values', replaces: 'values a', joins: true, data: 'a1' },
      { event: 'values', replaces: 'values b', joins: true, data: 'b1', id: '5' },
    ];
    for (const sink of sinks) sink.sendAll(list);
    const text = 'event: part\ndata: 照片\ndata: b\n\nevent: values\ndata: a1\ndata: b1\nid: 5\n\n';
    await eventually('the list', () => [one, other].every((reader) => reader.text().endsWith(text)));
    assert.deepEqual(arrived, [text]);
    // What waits from before goes first.
    sinks[0]?.send({ event: 'beat', data: '1' });
    sinks[0]?.sendAll([{ event: 'part', data: 'c' }]);
    await eventually('all', () =>
      one.text().endsWith(`${text}event: beat\ndata: 1\n\nevent: part\ndata: c\n\n`),
    );
    sinks[0]?.sendAll([]);
    for (const { response } of [one, other]) response.destroy();
  });

  it('encodes a list once, however many read it', async () => {
    const readers = await Promise.all(Array.from({ length: 5 }, () => listen(server.port)));
    await eventually('all are there', () => readers.every((reader) => reader.text() !== ''));
    let looks = 0;
    const event = Object.defineProperty({ event: 'part', data: '' }, 'data', {
      get: () => `seen ${(looks += 1)}`,
    });
    const list = [event];
    for (const sink of sinks) sink.sendAll(list);
    await eventually('the list', () => readers.every((reader) => reader.text().endsWith('data: seen 1\n\n')));
    assert.equal(looks, 1);
    for (const { response } of readers) response.destroy();
  });

  it('lets go of its source when the client leaves', async () => {
    const listening = await listen(server.port);
    listening.response.destroy();
    await eventually('it is released', () => released === 1);
    sinks[0]?.send({ event: 'status', data: 'too late' });
    await eventually('nothing is in flight', () => server.http.stats().inFlight === 0);
  });

  it('ends with a retry line when the generation is replaced, and the old generation goes', async () => {
    const listening = await listen(server.port);
    await eventually('the retry line', () => listening.text() === 'retry: 2000\n\n');
    await serve({ retryMs: 50 });
    await within('the end of the stream', 20_000, listening.ended);
    assert.equal(listening.text(), 'retry: 2000\n\nretry: 2000\n\n');
    await eventually('it is released', () => released === 1);
    await eventually('one generation is left', () => server.http.stats().generations === 1);
    const again = await listen(server.port);
    sinks[1]?.send({ event: 'status', data: 'new' });
    await eventually('the new one works', () => again.text().includes('data: new'));
    again.response.destroy();
  });

  it('ends when its source ends it', async () => {
    const listening = await listen(server.port);
    sinks[0]?.send({ event: 'bye', data: 'x' });
    await eventually('the event', () => listening.text().includes('event: bye'));
    sinks[0]?.end();
    await within('the end of the stream', 20_000, listening.ended);
    await eventually('it is released', () => released === 1);
  });

  it('shows that it is alive while nothing happens', async () => {
    await serve({ heartbeatMs: 10, retryMs: 50 });
    const listening = await listen(server.port);
    await eventually('two beats', () => (listening.text().match(/: still here\n\n/g) ?? []).length >= 2);
    assert.match(listening.text(), /^retry: 50\n\n/);
    listening.response.destroy();
  });

  it('keeps only the newest of each kind for a reader that does not read', async () => {
    const wire = await slowReader();
    const data = 'x'.repeat(200_000);
    for (let count = 0; count < 200; count += 1) {
      const event = { event: 'status', data: `${count} ${data}` };
      if (count % 2 === 0) sinks[0]?.send(event);
      else sinks[0]?.sendAll([event]);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(released, 0);
    wire.socket.resume();
    await eventually('the newest arrives', () => wire.text().includes('data: 199 '));
    assert.ok(wire.text().length < 100 * data.length, 'most of what was sent meanwhile is dropped');
    wire.socket.destroy();
    await eventually('it is released', () => released === 1);
  });

  it('gives up a reader for whom too much of different kinds is waiting', async () => {
    await serve({ maxWaitingBytes: 1_000_000 });
    const wire = await slowReader();
    for (let count = 0; count < 200; count += 1) {
      sinks[0]?.send({ event: `kind-${count}`, data: 'x'.repeat(100_000) });
      await new Promise((resolve) => setImmediate(resolve));
    }
    wire.socket.resume();
    await eventually('it is released', () => released === 1);
    assert.ok(!wire.text().includes('kind-199'));
    wire.socket.destroy();
  });

  it('ends in order for whoever may not have it any more, and says so', async () => {
    const listening = await listen(server.port);
    await eventually('the retry line', () => listening.text() === 'retry: 2000\n\n');
    endAnswer();
    sinks[0]?.send({ event: 'status', data: 'of no concern' });
    await within('the end of the stream', 20_000, listening.ended);
    assert.equal(listening.text(), 'retry: 2000\n\nevent: refused\ndata:\n\n');
    await eventually('it is released', () => released === 1);
  });

  it('is cut where whoever may not have it any more does not take its end', async () => {
    const wire = await slowReader();
    const data = 'x'.repeat(200_000);
    for (let count = 0; count < 100; count += 1) {
      sinks[0]?.send({ event: 'status', data: `${count} ${data}` });
      await new Promise((resolve) => setImmediate(resolve));
    }
    endAnswer();
    await eventually('it is released', () => released === 1);
    wire.socket.resume();
    await eventually('its connection is cut', () => wire.socket.closed);
    assert.ok(!wire.text().includes('data: 99 '));
  });

  it('holds nothing after a request for its headers alone', async () => {
    const reply = await ask({ port: server.port, path: '/events', method: 'HEAD' });
    assert.equal(reply.status, 200);
    await eventually('it is released', () => sinks.length === 1 && released === 1);
    await eventually('nothing is in flight', () => server.http.stats().inFlight === 0);
  });

  it('answers 500 and holds nothing when its source fails', async () => {
    await server.swap(
      ledger('page', {
        routes: [
          {
            method: 'GET',
            path: '/events',
            handler: (request, h) =>
              eventStream(request, h, () => {
                throw new Error('no source');
              }),
          },
        ],
      }),
    );
    assert.equal((await ask({ port: server.port, path: '/events' })).status, 500);
  });
});
