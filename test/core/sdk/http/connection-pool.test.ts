import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ConnectionPool, createClock } from '../../../../core/sdk/standalone.ts';
import type { ConnectionPoolOptions } from '../../../../core/sdk/standalone.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { until } from '../../../support/platform/wait.ts';

const SOON = { timeoutMs: 20_000, everyMs: 5 };
const [MAX, MAX_PER_ADDRESS] = [12, 8];
const PROXY = '127.0.0.9';

interface Client {
  readonly socket: Socket;
  readonly heard: () => string;
}

describe('a connection pool', () => {
  let pool: ConnectionPool;
  let server: Server;
  let clients: Client[];
  let crowded: string[];
  /** Answers to `/held`, in the order in which they came. */
  let held: ServerResponse[];

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!(await pool.turn(request, response))) return;
    if (request.headers.authorization !== undefined) pool.serve(request, 'known');
    else if (request.method === 'GET') pool.serve(request, 'stranger');
    if (request.url === '/last') response.setHeader('connection', 'close');
    if (request.url === '/held') held.push(response);
    else response.end('answer');
  };

  const serve = async (options: Pick<ConnectionPoolOptions, 'headMs'> & Partial<ConnectionPoolOptions>) => {
    pool = new ConnectionPool({
      clock: createClock(),
      maxConnections: MAX,
      maxPerAddress: MAX_PER_ADDRESS,
      isTrustedProxy: (address) => address === PROXY,
      onCrowded: (address) => crowded.push(address),
      ...options,
    });
    server = createServer((request, response) => void handle(request, response));
    pool.attach(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
  };
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };

  beforeEach(async () => {
    [clients, held, crowded] = [[], [], []];
    await serve({ headMs: 3_000 });
  });
  afterEach(async () => {
    for (const { socket } of clients) socket.destroy();
    await stop();
  });

  /** A connection that has said this much, and that the server has taken notice of. */
  const dial = async (text = '', from = '127.0.0.1', options = {}): Promise<Client> => {
    const socket = connect({
      port: (server.address() as AddressInfo).port,
      host: '127.0.0.1',
      localAddress: from,
      ...options,
    });
    let heard = '';
    socket.on('error', () => undefined).on('data', (piece: Buffer) => (heard += piece.toString('latin1')));
    const arrived = once(server, 'connection');
    clients.push({ socket, heard: () => heard });
    await Promise.all([once(socket, 'connect'), arrived]);
    socket.write(text);
    return clients.at(-1) as Client;
  };
  const get = (path: string, who = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${who}\r\n`;
  const LET_IN = 'Authorization: yes\r\n';
  const answered = async (client: Client, count = 1): Promise<Client> => {
    await until('it is answered', () => client.heard().split('answer').length > count, SOON);
    return client;
  };
  const idle = async (who: string, from?: string): Promise<Client> =>
    answered(await dial(get('/', who), from));
  const closed = (all: readonly Client[]): readonly boolean[] => all.map(({ socket }) => socket.destroyed);
  const fill = async (count: number, make: () => Promise<Client>): Promise<Client[]> => {
    const all: Client[] = [];
    for (let opened = 0; opened < count; opened += 1) all.push(await make());
    return all;
  };

  it('lets the longest idle stranger of an address make way for who comes from there', async () => {
    const strangers = await fill(MAX_PER_ADDRESS, () => idle(''));
    const late = await idle('');
    await until('one has made way', () => strangers[0]?.socket.destroyed, SOON);
    assert.deepEqual(
      closed([...strangers.slice(1), late]),
      Array.from({ length: MAX_PER_ADDRESS }, () => false),
    );
    assert.deepEqual(crowded, ['127.0.0.1']);
    assert.equal(pool.size, MAX_PER_ADDRESS);
  });

  it('lets strangers make way before those who were let in, and nobody who is being served', async () => {
    const known = await idle(LET_IN);
    const busy = await dial(get('/held', LET_IN));
    await until('it is being served', () => held.length === 1, SOON);
    const strangers = await fill(MAX_PER_ADDRESS - 2, () => dial());
    await fill(MAX_PER_ADDRESS, () => dial());
    await until('all have made way', () => closed(strangers).every(Boolean), SOON);
    assert.deepEqual(closed([known, busy]), [false, false]);
    held[0]?.end('answer');
    await answered(busy);
    known.socket.write(get('/', LET_IN));
    await answered(known, 2);
  });

  it('lets a stranger who is being served make way only where nobody else can', async () => {
    const stream = await dial(get('/held'));
    await until('it is being served', () => held.length === 1, SOON);
    const silent = await fill(MAX_PER_ADDRESS - 1, () => dial());
    await fill(MAX_PER_ADDRESS - 1, () => dial());
    await until('the silent ones have made way', () => closed(silent).every(Boolean), SOON);
    assert.equal(stream.socket.destroyed, false);
    const busy = await fill(MAX_PER_ADDRESS, async () => {
      const [count, client] = [held.length, await dial(get('/held', LET_IN))];
      await until('it is being served', () => held.length > count, SOON);
      return client;
    });
    await until('the stranger has made way', () => stream.socket.destroyed, SOON);
    const refused = await dial(get('/'));
    await until('there is no room', () => refused.socket.destroyed, SOON);
    assert.match(refused.heard(), /^HTTP\/1\.1 503 Service Unavailable\r\nRetry-After: 5\r\n/);
    assert.ok(closed(busy).every((isClosed) => !isClosed));
    assert.match((await idle('', '127.0.0.2')).heard(), /answer/, 'from another address');
  });

  it('takes no more of all addresses together, and limits a trusted proxy by nothing else', async () => {
    const fromProxy = await fill(MAX, () => idle('', PROXY));
    assert.deepEqual(crowded, []);
    await idle('', '127.0.0.2');
    await until('one has made way', () => fromProxy[0]?.socket.destroyed, SOON);
    assert.equal(pool.size, MAX);
  });

  for (const [what, text] of [
    ['says nothing', ''],
    ['never ends its head', 'GET / HTTP/1.1\r\nX-Slow: '],
    ['speaks no HTTP', 'hello\r\n\r\n'],
    ['wants a tunnel', 'CONNECT a:22 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ] as const) {
    it(`frees the connection of one that ${what} and never closes its side`, async () => {
      await stop();
      await serve({ headMs: 300 });
      const { socket, heard } = await dial(text, '127.0.0.1', { allowHalfOpen: true });
      await until('it is told', () => heard() !== '', SOON);
      assert.match(heard(), /^HTTP\/1\.1 4\d\d [^]*Connection: close/);
      await until('its descriptor is free', () => pool.size === 0, SOON);
      await until(
        'nothing is left',
        () =>
          new Promise<boolean>((resolve) => server.getConnections((_error, count) => resolve(count === 0))),
        SOON,
      );
      assert.equal(socket.writableEnded, false);
    });
  }

  it('ends a connection some time after its last answer, whatever the client goes on sending', async () => {
    const clock = createManualClock();
    await stop();
    await serve({ clock, headMs: 3_000 });
    const { socket, heard } = await dial(
      'POST /last HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n',
      '127.0.0.1',
      { allowHalfOpen: true },
    );
    await until('it is answered', () => heard().includes('answer'), SOON);
    let more = 0;
    server.on('request', () => {
      more += 1;
    });
    socket.write(`body${get('/')}`);
    await until('the next request is there', () => more > 0, { timeoutMs: 5_000, everyMs: 5 });
    assert.equal(pool.size, 1, 'the client may read its answer first');
    await clock.advance(10_500);
    await until('its descriptor is free', () => pool.size === 0, SOON);
  });

  it('serves what is sent ahead in turn, and cuts off who sends too much ahead', async () => {
    const { socket } = await dial(get('/held').repeat(5));
    for (let count = 1; count <= 5; count += 1) {
      await until('the next one has its turn', () => held.length === count, SOON);
      await idle('');
      assert.equal(held.length, count);
      held.at(-1)?.end('answer');
    }
    assert.equal(socket.destroyed, false);
    const { socket: greedy } = await dial(get('/held').repeat(9));
    await until('it is cut off', () => greedy.destroyed, SOON);
  });
});
