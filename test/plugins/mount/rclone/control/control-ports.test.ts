import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, it } from 'node:test';
import { createClock } from '../../../../../core/platform/clock.ts';
import { createManualClock } from '../../../../../core/testing/manual-clock.ts';
import { ControlPorts } from '../../../../../plugins/mount/rclone/control/control-ports.ts';
import type { ControlPort } from '../../../../../plugins/mount/rclone/control/control-ports.ts';
import { freePort } from '../../../../support/platform/free-port.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';
import { until } from '../../../../support/platform/wait.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';

const SOON = { timeoutMs: 10_000 };
const BIG = 'x'.repeat(3_000_000);

describe('the port of a remote control', () => {
  const [user, password] = ['mountkeeper', 'ö:password'];
  let scratch: Scratch;
  let behind: Server;
  let heard: string[];
  let connections = 0;
  let open: ControlPort[] = [];
  const clients: Socket[] = [];

  before(async () => {
    scratch = await createScratch('control-ports');
    behind = createServer(
      (request, answer) =>
        void text(request).then((body) => {
          heard.push(`${request.method} ${request.url} ${body.length}`);
          answer.end(body === '' ? 'nothing' : body);
        }),
    );
    behind.on('connection', () => (connections += 1));
    behind.listen(scratch.path('rc.sock'));
    await once(behind, 'listening');
  });
  after(async () => {
    behind.closeAllConnections();
    behind.close();
    await scratch.close();
  });
  afterEach(() => {
    for (const port of open.splice(0)) port.close();
    for (const client of clients.splice(0)) client.destroy();
  });

  const listen = async (ports: ControlPorts, port?: number): Promise<ControlPort> => {
    [heard, connections] = [[], 0];
    const wanted = port ?? (await freePort());
    const one = ports.open(
      { port: wanted, socket: scratch.path('rc.sock'), user, password },
      collectLog().log,
    );
    open = [...open, one];
    await until('it listens', () => reaches(one.port), SOON);
    return one;
  };
  const reaches = async (port: number): Promise<boolean> => {
    const socket = connect({ port, host: '127.0.0.1' });
    return once(socket, 'connect')
      .then(
        () => true,
        () => false,
      )
      .finally(() => socket.destroy());
  };
  const ask = (port: number, credentials: string | undefined, body = ''): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/core/pid`, {
      method: 'POST',
      body,
      signal: AbortSignal.timeout(10_000),
      headers:
        credentials === undefined
          ? {}
          : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
    });
  const idle = async (port: number): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1' });
    clients.push(socket);
    socket.on('error', () => undefined).resume();
    await once(socket, 'connect');
    return socket;
  };

  it('passes on what comes with the password, byte for byte', async () => {
    const { port } = await listen(new ControlPorts(createClock()));
    assert.equal(await (await ask(port, `${user}:${password}`)).text(), 'nothing');
    assert.equal(await (await ask(port, `${user}:${password}`, BIG)).text(), BIG);
    assert.equal(await (await ask(port, `${user}:${password}`, '照片 ü')).text(), '照片 ü');
    assert.deepEqual(heard, ['POST /core/pid 0', `POST /core/pid ${BIG.length}`, 'POST /core/pid 4']);
  });

  it('lets nothing without it come to rclone', async () => {
    const { port } = await listen(new ControlPorts(createClock()));
    for (const credentials of [undefined, `${user}:`, `${user}:ö:passwor`, `${password}:${user}`, ':']) {
      const answer = await ask(port, credentials);
      assert.equal(answer.status, 401, credentials);
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Basic/, credentials);
    }
    const socket = await idle(port);
    socket.write(`POST /core/pid HTTP/1.1\r\nX: ${'a'.repeat(20_000)}`);
    await once(socket, 'close');
    assert.deepEqual([heard, connections], [[], 0]);
  });

  it('ends connections on which no head comes within 10 s', async () => {
    const clock = createManualClock();
    const { port } = await listen(new ControlPorts(clock));
    const [silent, half] = [await idle(port), await idle(port)];
    half.write('POST /core/pid HTTP/1.1\r\n');
    let ended = 0;
    for (const socket of [silent, half]) socket.once('close', () => (ended += 1));
    assert.equal((await ask(port, `${user}:${password}`)).status, 200, 'both are known to it by now');
    await clock.advance(9_000);
    assert.equal(ended, 0);
    await clock.advance(2_000);
    await until('both are ended', () => ended === 2, SOON);
  });

  it('lets the oldest make way in a crowd, on whichever port', async () => {
    const ports = new ControlPorts(createManualClock());
    const [one, other] = [await listen(ports), await listen(ports)];
    const first = await idle(one.port);
    const ended = once(first, 'close');
    for (let count = 0; count < 700; count += 50)
      await Promise.all(Array.from({ length: 50 }, () => idle(other.port)));
    await ended;
    assert.equal((await ask(one.port, `${user}:${password}`)).status, 200);
  });

  it('listens elsewhere when its port is taken, and says where', async () => {
    const ports = new ControlPorts(createClock());
    const first = await listen(ports);
    const second = await listen(ports, first.port);
    await until('it has another', () => second.port !== first.port, SOON);
    assert.equal((await ask(second.port, `${user}:${password}`)).status, 200);
  });

  it('is shut with all its connections', async () => {
    const one = await listen(new ControlPorts(createClock()));
    const socket = await idle(one.port);
    const ended = once(socket, 'close');
    one.close();
    await ended;
    assert.equal(await reaches(one.port), false);
  });

  it('answers by an end when rclone is gone', async () => {
    const one = new ControlPorts(createClock()).open(
      { port: await freePort(), socket: scratch.path('none.sock'), user, password },
      collectLog().log,
    );
    open = [...open, one];
    await until('it listens', () => reaches(one.port), SOON);
    await assert.rejects(ask(one.port, `${user}:${password}`));
    await rm(scratch.path('none.sock'), { force: true });
  });
});
