import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { ShortCommand, ShortCommandResult } from 'mountkeeper';
import { createTcpConnections, parseConnections } from '../../../../plugins/mount/outage/tcp-connections.ts';
import type { TcpConnections } from '../../../../plugins/mount/outage/tcp-connections.ts';
import { tcpConnectionsCheck } from '../../../../plugins/mount/outage/tcp-connections-check.ts';
import { unlessRoot } from '../../../runner/skips.ts';

const run = ({ command, args }: ShortCommand): Promise<ShortCommandResult> =>
  new Promise((resolve, reject) => {
    execFile(command, [...args], (error, stdout, stderr) =>
      error && typeof error.code !== 'number'
        ? reject(error)
        : resolve({ code: error ? 1 : 0, signal: null, stdout, stderr }),
    );
  });

interface Line {
  readonly client: Socket;
  readonly server: Socket;
  readonly closed: Promise<unknown>;
}

async function createLines(
  t: TestContext,
  count: number,
): Promise<{ readonly lines: readonly Line[]; readonly standing: TcpConnections }> {
  const accepted: Socket[] = [];
  const server = createServer((socket) => void accepted.push(socket.on('error', () => undefined)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const lines: Line[] = [];
  for (let index = 0; index < count; index += 1) {
    const client = connect({ port, host: '127.0.0.1' });
    client.on('error', () => undefined);
    const connected = once(server, 'connection');
    await Promise.all([once(client, 'connect'), connected]);
    lines.push({
      client,
      server: accepted.at(-1) as Socket,
      closed: new Promise((resolve) => client.once('close', resolve)),
    });
  }
  t.after(() => {
    for (const { client, server: other } of lines) [client, other].forEach((socket) => socket.destroy());
    server.close();
  });
  return {
    lines,
    standing: createTcpConnections({
      pid: process.pid,
      nas: { host: '127.0.0.1', port, manner: 'accepts' },
      rcPort: 0,
      processes: { run },
    }),
  };
}

describe('connections that stand', { skip: unlessRoot }, () => {
  it('are ended when nothing moves on them, and left alone when something does', async (t) => {
    const {
      lines: [silent, moving],
      standing,
    } = await createLines(t, 2);
    assert.ok(silent && moving);
    for (const { client, server } of [silent, moving]) {
      server.write('greeting');
      await once(client, 'data');
    }
    const before = await standing.look();
    assert.equal(before?.length, 2);
    moving.server.write('more');
    await once(moving.client, 'data');
    assert.equal(await standing.cut(before), 1);
    await silent.closed;
    assert.equal(moving.client.destroyed, false);
  });

  it('that are new and wait for a first answer are ended, too', async (t) => {
    const {
      lines: [dialling],
      standing,
    } = await createLines(t, 1);
    dialling?.client.write('hello?');
    assert.equal(await standing.cut([]), 1);
    await dialling?.closed;
  });

  it('can be tried out', async () => {
    assert.equal((await tcpConnectionsCheck({ run })).result, 'ok');
    assert.equal(
      (await tcpConnectionsCheck({ run: () => Promise.reject(new Error('ss is missing')) })).result,
      'warning',
    );
  });
});

describe('what ss prints', () => {
  it('is read with counters that are left out while they are zero', () => {
    const text = [
      'ESTAB 0 0 127.0.0.1:50000 127.0.0.1:445 ino:11 sk:1 <-> cubic rto:204 ' +
        'bytes_sent:900 bytes_acked:901 bytes_received:77 segs_out:5',
      'SYN-SENT 0 1 [::ffff:192.0.2.1]:50001 [::ffff:192.0.2.7]:445 timer:(on,1sec,0) ino:12 sk:2 <-> cubic rto:1000',
      'TIME-WAIT 0 0 127.0.0.1:50002 127.0.0.1:445 ino:0 sk:3',
      '',
    ].join('\n');
    assert.deepEqual(parseConnections(text), [
      { inode: '11', local: '127.0.0.1:50000', remote: '127.0.0.1:445', acked: 901, received: 77 },
      {
        inode: '12',
        local: '[::ffff:192.0.2.1]:50001',
        remote: '[::ffff:192.0.2.7]:445',
        acked: 0,
        received: 0,
      },
    ]);
  });
});
