import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, it } from 'node:test';
import {
  addressProblem,
  askOnce,
  ownAddress,
  portProblem,
  spellingOf,
} from '../../../../core/sdk/servers/server-address.ts';

const HERE = '127.0.0.1';

async function served<T>(serve: (socket: Socket) => void, use: (port: number) => Promise<T>): Promise<T> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined));
    serve(socket);
  }).listen(0, HERE);
  await once(server, 'listening');
  try {
    return await use((server.address() as AddressInfo).port);
  } finally {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  }
}

const question = {
  request: Buffer.from('who?'),
  read: (received: Buffer) => {
    if (received.toString('latin1').startsWith('HTTP')) throw new Error('a web server');
    return received.length < 6 ? undefined : received.toString('latin1');
  },
};
const ask = (port: number, signal = AbortSignal.timeout(20_000)) =>
  askOnce({ host: HERE, port }, question, signal);

describe('one question to a server', () => {
  it('is answered once the answer is whole, and the connection ends', async () => {
    let ended: Promise<unknown> = Promise.resolve();
    const answer = await served(
      (socket) => {
        ended = once(socket, 'close');
        socket.once('data', (asked: Buffer) => {
          socket.write(asked.subarray(0, 2));
          setImmediate(() => socket.write('oami'));
        });
      },
      async (port) => {
        const text = await ask(port);
        await ended;
        return text;
      },
    );
    assert.equal(answer, 'whoami');
  });

  it('fails by what came, by the end of the connection, and where nobody listens', async () => {
    await served(
      (socket) => socket.write('HTTP/1.1 400'),
      (port) => assert.rejects(ask(port), /a web server/),
    );
    await served(
      (socket) => socket.end('no'),
      (port) => assert.rejects(ask(port), /closes the connection/),
    );
    const gone = await served(
      () => undefined,
      async (port) => port,
    );
    await assert.rejects(ask(gone), { code: 'ECONNREFUSED' });
  });

  it('ends with its signal, also with one that has gone before', async () => {
    await served(
      () => undefined,
      async (port) => {
        await assert.rejects(ask(port, AbortSignal.timeout(50)), { name: 'TimeoutError' });
        await assert.rejects(ask(port, AbortSignal.abort(new Error('over'))), /over/);
      },
    );
  });
});

describe('the address of a server', () => {
  it('is asked from this machine where it listens everywhere', () => {
    assert.deepEqual(
      [
        ownAddress({ host: '0.0.0.0', port: 1 }).host,
        ownAddress({ host: '::', port: 1 }).host,
        ownAddress({ host: '192.0.2.1', port: 1 }).host,
      ],
      [HERE, '::1', '192.0.2.1'],
    );
  });

  it('is told to be missing, or taken, with the setting to change', async () => {
    assert.equal(addressProblem({ host: HERE, port: 1 }, { section: 'ftp' }), undefined);
    assert.match(
      addressProblem({ host: '192.0.2.77', port: 1 }, { section: 'ftp' }) ?? '',
      /192\.0\.2\.77: this machine has no such address; correct ftp\.listen/,
    );
    await served(
      () => undefined,
      async (port) => {
        assert.equal(
          await portProblem({ host: HERE, port }, { section: 'ftp', suspect: 'an old one' }),
          `port ${port} on ${HERE} is taken by another program (an old one?); stop that, or set ftp.port`,
        );
      },
    );
    assert.equal(await portProblem({ host: HERE, port: 0 }, { section: 'ftp' }), undefined);
  });
});

describe('an address in several spellings', () => {
  it('has one to compare it by', () => {
    for (const address of ['FD00::2', 'fd00:0::2', 'fd00:0:0:0:0:0:0:0002'])
      assert.equal(spellingOf(address), 'fd00::2');
    for (const other of ['192.0.2.1', 'fe80::1%lan0', 'lan0', '', '::'])
      assert.equal(spellingOf(other), other);
  });
});
