import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { createClock, tcpClients } from 'mountkeeper';
import type { Processes, ShortCommand, ShortCommandResult } from 'mountkeeper';
import { runShortCommand } from '../../../../core/platform/processes/short-command.ts';
import { spawn } from 'node:child_process';
import { freePort } from '../../../support/platform/free-port.ts';

const processes = (run: (spec: ShortCommand) => Promise<ShortCommandResult>) =>
  ({ run }) as unknown as Processes;
const says = (stdout: string, code = 0) =>
  processes(async () => ({ code, signal: null, stdout, stderr: code === 0 ? '' : 'Netlink error\n' }));
const real = processes((spec) => runShortCommand(spec, createClock()));

describe('clients of a port', () => {
  it('are read from what ss says, with IPv4 in IPv6, zones, and counts where the kernel has them', async () => {
    const lines = [
      '0      0      192.0.2.1:445 192.0.2.9:50000 ino:1 sk:2 <-> cubic ' +
        'bytes_sent:15 bytes_acked:12 bytes_received:7 segs_out:8',
      '0      0      [::ffff:192.0.2.1]:445 [::ffff:192.0.2.8]:50001 ino:2 sk:3 <-> cubic bytes_received:4',
      '0      0      [fe80::1%eth0]:445 [fe80::2%eth0]:50002 ino:3 sk:4 <-> cubic rto:204',
      // This machine's own, to a server elsewhere and to this one.
      '0      0      192.0.2.1:40000 192.0.2.7:445 ino:4 sk:5 <->',
      'nonsense',
    ];
    assert.deepEqual(await tcpClients(says(lines.join('\n')), 445), [
      { address: '192.0.2.9', port: 50_000, bytesToClient: 12, bytesFromClient: 7 },
      { address: '192.0.2.8', port: 50_001, bytesToClient: 0, bytesFromClient: 4 },
      { address: 'fe80::2', port: 50_002, bytesToClient: null, bytesFromClient: null },
    ]);
    await assert.rejects(tcpClients(says('', 255), 445), /ss ended with 255: Netlink error/);
  });

  it('are those of other processes, with what they were sent, as the kernel really says it', async (t) => {
    const server = createServer(
      (socket) => void socket.on('error', () => undefined).write('x'.repeat(1_000)),
    );
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const own = connect(port, '127.0.0.1').resume();
    t.after(() => own.destroy());
    await once(own, 'connect');
    assert.deepEqual(await tcpClients(real, port), []);
    const script = `require('net').connect(${port}, '127.0.0.1').once('data', () => console.log('got'))`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const [client, ...more] = await tcpClients(real, port);
    assert.deepEqual(
      [client?.address, client?.bytesToClient, client?.bytesFromClient],
      ['127.0.0.1', 1_000, 0],
    );
    assert.deepEqual(more, []);
    assert.deepEqual(await tcpClients(real, await freePort()), []);
  });
});
