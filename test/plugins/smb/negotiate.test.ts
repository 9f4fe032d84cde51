import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, it } from 'node:test';
import { negotiate, negotiateRequest, readNegotiateAnswer } from '../../../plugins/smb/negotiate.ts';

function answer(changes: { status?: number; command?: number; dialect?: number } = {}): Buffer {
  const message = Buffer.alloc(64 + 65);
  message.write('\xfeSMB', 0, 'latin1');
  message.writeUInt32LE(changes.status ?? 0, 8);
  message.writeUInt16LE(changes.command ?? 0, 12);
  message.writeUInt16LE(changes.dialect ?? 0x0302, 68);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(message.length);
  return Buffer.concat([length, message]);
}

async function served<T>(onSocket: (socket: Socket) => void, use: (port: number) => Promise<T>): Promise<T> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await use((server.address() as AddressInfo).port);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

describe('the question to an SMB server', () => {
  it('is a negotiation with its length in front', () => {
    const bytes = negotiateRequest(Buffer.alloc(16, 7));
    assert.equal(bytes.readUInt32BE(), bytes.length - 4);
    assert.equal(bytes.toString('latin1', 4, 8), '\xfeSMB');
    assert.equal(bytes.readUInt16LE(4 + 64 + 2), 3);
  });

  it('is answered by the dialect, also in pieces', async () => {
    assert.equal(readNegotiateAnswer(answer().subarray(0, 50)), undefined);
    assert.equal(readNegotiateAnswer(answer()), 0x0302);
    const dialect = await served(
      (socket) =>
        socket.once('data', () => {
          socket.write(answer().subarray(0, 30));
          setImmediate(() => socket.write(answer().subarray(30)));
        }),
      (port) => negotiate({ host: '127.0.0.1', port }, AbortSignal.timeout(20_000)),
    );
    assert.equal(dialect, 0x0302);
  });

  it('is no answer when something else listens, or the server refuses', () => {
    assert.throws(
      () => readNegotiateAnswer(Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')),
      /no SMB server/,
    );
    assert.throws(() => readNegotiateAnswer(answer({ status: 0xc0000022 })), /0xc0000022/);
    assert.throws(() => readNegotiateAnswer(answer({ command: 1 })), /no SMB2 server/);
  });

  it('ends at the deadline when the server accepts and is silent', async () => {
    await served(
      () => undefined,
      (port) =>
        assert.rejects(negotiate({ host: '127.0.0.1', port }, AbortSignal.timeout(100)), {
          name: 'TimeoutError',
        }),
    );
  });
});
