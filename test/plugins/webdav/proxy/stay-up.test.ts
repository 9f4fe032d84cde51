import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { isAnswering } from '../../../../plugins/webdav/exporter/health-check.ts';
import { freePort } from '../../../support/platform/free-port.ts';
import { until } from '../../../support/platform/wait.ts';
import { basic, ProxyFixture } from '../../../support/webdav/fake-backend.ts';

const AUTHORIZATION = `Authorization: ${basic('alice', 'wonder:land')}`;
const OPEN = 500;
const SOON = { timeoutMs: 30_000, everyMs: 10 };

describe('clients of the proxy of WebDAV that ask for too much', () => {
  let fixture: ProxyFixture;
  let sockets: Socket[];
  beforeEach(async () => {
    sockets = [];
    fixture = await ProxyFixture.open();
    fixture.backend.files.set('/team/a', Buffer.from('hi'));
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await fixture.close();
  });

  /** A connection that has said this much, and what it was answered. */
  const say = async (text: string, from = '127.0.0.1'): Promise<{ socket: Socket; heard: () => string }> => {
    const socket = connect({ port: fixture.port, host: '127.0.0.1', localAddress: from });
    sockets.push(socket);
    let heard = '';
    socket.on('error', () => undefined).on('data', (piece: Buffer) => (heard += piece.toString('latin1')));
    await once(socket, 'connect');
    socket.write(text);
    return { socket, heard: () => heard };
  };
  const status = async (text: string): Promise<string> => {
    const { socket, heard } = await say(text);
    await until('it is closed', () => socket.destroyed, SOON);
    return heard().split('\r\n', 1)[0] ?? '';
  };
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\n\r\n`;
  /** Resolves with all that were opened, once the last one is in. */
  const crowd = async (count: number, text: string): Promise<readonly Socket[]> => {
    for (let opened = 0; opened < count; opened += 1) await say(text, '127.0.0.2');
    return sockets.slice(-count);
  };
  const closed = (all: readonly Socket[]): number => all.filter(({ destroyed }) => destroyed).length;

  for (const [what, text] of [
    ['say nothing', ''],
    ['never end what they say', 'GET / HTTP/1.1\r\nX-Slow: '],
  ] as const) {
    it(`make way for those who come when they ${what}`, async () => {
      const served = await say(get('/team/a'), '127.0.0.2');
      await until('it is served', () => served.heard().endsWith('hi'), SOON);
      const slow = await crowd(OPEN + 20, text);
      // One was there before.
      await until('the first ones have made way', () => closed(slow) === 21, SOON);
      const late = await say(get('/team/a'), '127.0.0.2');
      await until('who comes is served', () => late.heard().endsWith('hi'), SOON);
      served.socket.write(get('/team/a'));
      await until('who was there goes on', () => served.heard().split('hi').length === 3, SOON);
    });
  }

  it('make way between two requests, and never in the middle of one', async () => {
    const held: (() => void)[] = [];
    fixture.backend.before = ({ url }, response) =>
      url === '/team/slow' && held.push(() => response.writeHead(200).end('done')) > 0;
    const busy = await say(get('/team/slow'), '127.0.0.2');
    await until('it has begun', () => held.length === 1, SOON);
    const idle = await crowd(OPEN, get('/team/a'));
    await until('one has made way', () => closed(idle) === 1, SOON);
    const [late] = [await say('', '127.0.0.2'), await say('', '127.0.0.2')];
    await until('who comes does not push out who has just come', () => closed(idle) === 3, SOON);
    late.socket.write(get('/team/a'));
    await until('it is served', () => late.heard().endsWith('hi'), SOON);
    held[0]?.();
    await until('the answer is whole', () => busy.heard().includes('done'), SOON);
  });

  it('are told so when everybody is being served', async () => {
    let held = 0;
    fixture.backend.before = ({ url }) => url === '/team/slow' && (held += 1) > 0;
    await crowd(OPEN, get('/team/slow'));
    await until('all are being served', () => held === OPEN, SOON);
    const more = await say(get('/team/a'), '127.0.0.2');
    await until('it is refused', () => /^HTTP\/1\.1 503 [^]*Retry-After/.test(more.heard()), SOON);
    assert.equal((await fixture.ask('GET', '/team/a')).status, 200, 'from another address');
    const question = { host: '127.0.0.1', port: fixture.port };
    assert.equal(await isAnswering(question, AbortSignal.timeout(30_000)), true);
    assert.equal(
      await isAnswering({ ...question, port: await freePort() }, AbortSignal.timeout(30_000)),
      false,
    );
  });

  it('are served in turn on one connection, and cut off when they send a thousand requests ahead', async () => {
    const held: (() => void)[] = [];
    fixture.backend.before = ({ url }, response) =>
      url === '/team/slow' && held.push(() => response.writeHead(200).end('done')) > 0;
    const { heard } = await say(get('/team/slow').repeat(5));
    for (let count = 0; count < 5; count += 1) {
      await until('the next one has come', () => held.length > count, SOON);
      await fixture.ask('GET', '/team/a');
      assert.equal(held.length, count + 1, 'at a time');
      held[count]?.();
    }
    await until('all are answered', () => heard().split('done').length === 6, SOON);
    const before = fixture.backend.seen.length;
    const { socket } = await say(get('/team/a').repeat(1_000));
    await until('it is cut off', () => socket.destroyed, SOON);
    assert.ok(
      fixture.backend.seen.length - before <= 8,
      `${fixture.backend.seen.length - before} came to the backend`,
    );
  });

  it('are told what is wrong with what they say', async () => {
    assert.equal(
      await status(`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(40_000)}\r\n\r\n`),
      'HTTP/1.1 431 Request Header Fields Too Large',
    );
    for (const text of [
      'GET / HTTP/1.1\nHost: x\n\n',
      'GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n',
      'GET / HTTP/1.1\r\nHost : x\r\n\r\n',
      'GET / HTTP/1.1\r\n\r\n',
    ])
      assert.equal(await status(text), 'HTTP/1.1 400 Bad Request', text);
    const ranges = Array.from({ length: 1_000 }, (_, index) => `${index * 2}-${index * 2}`).join(',');
    assert.equal(
      (await fixture.ask('GET', '/team/a', { headers: { range: `bytes=${ranges}` } })).status,
      416,
    );
    assert.equal(
      (await fixture.ask('GET', '/team/a', { headers: { range: 'bytes=0-0,1-1' } })).status,
      200,
      "the backend's answer",
    );
    const long = await fixture.ask('PROPFIND', '/team/a', {
      headers: { depth: '0', 'content-length': 1_000_000_000 },
    });
    assert.equal(long.status, 413);
    assert.equal(
      (await fixture.ask('PROPFIND', '/team/a', { headers: { depth: '0' }, body: Buffer.alloc(200_000, 32) }))
        .status,
      413,
    );
    assert.equal(
      (
        await fixture.ask('PROPFIND', '/team/a', {
          headers: { depth: '0', 'transfer-encoding': 'chunked' },
          body: Buffer.alloc(200_000, 32),
        })
      ).status,
      413,
    );
    assert.equal(fixture.backend.count('PROPFIND'), 0);
  });

  it('never find an answer to something else in the middle of a file', async () => {
    fixture.backend.before = ({ url }, response) =>
      url === '/team/slow' && Boolean(response.writeHead(200, { 'content-length': 1_000 }).write('begun'));
    const { socket, heard } = await say(get('/team/slow'));
    await until('it has begun', () => heard().endsWith('begun'), SOON);
    socket.write('what is this\r\n\r\n');
    await until('it is cut off', () => socket.destroyed, SOON);
    assert.ok(heard().endsWith('begun'), heard());
  });

  it('do not hold up others by brackets without an end', async () => {
    fixture.backend.files.set('/team/b', Buffer.from('there'));
    fixture.backend.before = ({ method, headers }, response) =>
      method === 'MOVE' && headers.depth === '1' && Boolean(response.writeHead(400).end());
    const started = process.cpuUsage();
    // Ten seconds when each bracket is followed to the end.
    for (const condition of ['('.repeat(15_000), `(${'<'.repeat(15_000)})`])
      for (let count = 0; count < 30; count += 1)
        await fixture.ask('MOVE', '/team/a', {
          headers: { host: 'x', destination: 'http://x/team/b', if: condition },
        });
    const { user } = process.cpuUsage(started);
    assert.ok(user < 3_000_000, `${user} µs of processor`);
  });

  it('who have come in before come in while others guess, also after a change of shares', async () => {
    const answered: string[] = [];
    const ask = async (who: string, headers = {}): Promise<void> => {
      const { status: code } = await fixture.ask('GET', '/', { headers });
      answered.push(`${who} ${code}`);
    };
    await ask('alice');
    const { users } = fixture.state;
    await fixture.tell({ users: [{ name: 'alice', password: 'another' }] });
    await ask('alice before her password was changed');
    await fixture.tell({ users });
    await ask('alice');
    await fixture.tell({ shares: [] });
    const wrong = { authorization: basic('alice', 'guess') };
    for (let count = 0; count < 2; count += 1) await ask('guess', wrong);
    assert.deepEqual(answered.splice(0), [
      'alice 200',
      'alice before her password was changed 401',
      'alice 200',
      'guess 401',
      'guess 401',
    ]);
    // A process that stands still for as long as a guesser waits, answers both at once.
    for (let round = 0; round < 5 && answered.at(-2) !== 'alice 200'; round += 1) {
      const slowed = ask('guess', { authorization: basic('alice', `another guess ${round}`) });
      await ask('alice');
      await slowed;
    }
    assert.deepEqual(answered.slice(-2), ['alice 200', 'guess 401']);
  });
});
