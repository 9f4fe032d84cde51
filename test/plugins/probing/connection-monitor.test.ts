import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createClock } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { until, within } from '../../support/platform/wait.ts';
import { createConnectionMonitors } from '../../../plugins/probing/connection-monitor.ts';

const LONG_MS = 20_000;

describe('the monitor of a connection', () => {
  const sockets: Socket[] = [];
  let server: Server;
  let port: number;

  before(async () => {
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      sockets.push(socket);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  });
  after(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });

  it('is one for all connections that lead to the same address', () => {
    const monitors = createConnectionMonitors(createClock());
    const sftp = (name: string, host: string) => monitors.of({ name, type: 'sftp', options: { host } });
    assert.equal(sftp('a', '10.0.0.1'), sftp('b', '10.0.0.1'));
    assert.notEqual(sftp('a', '10.0.0.1'), sftp('a', '10.0.0.2'));
    assert.equal(monitors.of({ name: 'c', type: 'local', options: {} }), undefined);
  });

  it('dials once for all who ask at the same time, and again for who asks later', async () => {
    const monitor = createConnectionMonitors(createClock()).at({
      host: '127.0.0.1',
      port,
      manner: 'greets',
    });
    const asked = [1, 2, 3].map(() => monitor.dial(AbortSignal.timeout(LONG_MS)));
    await once(server, 'connection');
    // Who gives up earlier does not end the dial of the others.
    assert.equal(await monitor.dial(AbortSignal.abort()), 'i/o timeout');
    sockets.at(-1)?.end('SSH-2.0-x\r\n');
    assert.deepEqual(await Promise.all(asked), [undefined, undefined, undefined]);
    assert.equal(sockets.length, 1);
    const later = monitor.dial(AbortSignal.timeout(LONG_MS));
    await once(server, 'connection');
    sockets.at(-1)?.end('SSH-2.0-x\r\n');
    assert.equal(await later, undefined);
    assert.equal(sockets.length, 2);
  });

  it('dials again for who joined a dial that found nobody', async () => {
    const monitor = createConnectionMonitors(createClock()).at({ host: '127.0.0.1', port, manner: 'greets' });
    const before = sockets.length;
    const first = monitor.dial(AbortSignal.timeout(LONG_MS));
    const joined = monitor.dial(AbortSignal.timeout(LONG_MS));
    await once(server, 'connection');
    sockets.at(-1)?.end();
    assert.equal(await first, 'connection reset');
    await until('the second dial', async () => sockets.length === before + 2, { timeoutMs: LONG_MS });
    sockets.at(-1)?.end('SSH-2.0-x\r\n');
    assert.equal(await joined, undefined);
  });

  it('gives up a NAS that takes the connection and says nothing, though the caller would wait', async () => {
    const clock = createManualClock();
    const monitor = createConnectionMonitors(clock).at({ host: '127.0.0.1', port, manner: 'greets' });
    const dialled = monitor.dial(new AbortController().signal);
    await once(server, 'connection');
    await clock.advance(2_000);
    assert.equal(await within('the end of the dial', LONG_MS, dialled), 'i/o timeout');
  });
});
