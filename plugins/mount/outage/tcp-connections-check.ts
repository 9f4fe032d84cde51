import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Check, Processes } from 'mountkeeper';
import { createTcpConnections } from './tcp-connections.ts';

const WITHIN_MS = 1_000;

/**
 * Tests on a connection to itself whether connections can be closed in the kernel: that needs a tool, a
 * privilege and kernel support.
 */
export async function tcpConnectionsCheck(processes: Pick<Processes, 'run'>): Promise<Check> {
  const title = 'silent connections';
  if (await canCut(processes))
    return { title, result: 'ok', detail: 'can be ended at once when a NAS has gone silent', advice: '' };
  return {
    title,
    result: 'warning',
    detail: 'cannot be ended: what is being read when a NAS goes silent hangs for some 20 s longer',
    advice:
      'Install the package iproute2 and run the daemon as root, on a kernel with CONFIG_INET_DIAG_DESTROY.',
  };
}

async function canCut(processes: Pick<Processes, 'run'>): Promise<boolean> {
  const server = createServer((socket) => socket.on('error', () => undefined));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1' });
  const isCut = new Promise<boolean>((settle) => {
    socket
      .on('error', () => undefined)
      .once('close', () => settle(true))
      .once('timeout', () => settle(false));
  });
  try {
    await once(socket, 'connect');
    const standing = createTcpConnections({
      pid: process.pid,
      nas: { host: '127.0.0.1', port, manner: 'accepts' },
      rcPort: 0,
      processes,
    });
    await standing.cut((await standing.look()) ?? []);
    socket.setTimeout(WITHIN_MS);
    return await isCut;
  } catch {
    // It is not possible, whatever the reason.
    return false;
  } finally {
    socket.destroy();
    server.close();
  }
}
