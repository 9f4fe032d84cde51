/** Real connections: the kernel is asked whose they are. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket, TcpNetConnectOpts } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { ownerOf } from '../../../core/http/local-owner.ts';
import { SKIPS } from '../../runner/skips.ts';

const OTHER_USER = 65_534;
const hasIpv6 = networkInterfaces()['lo']?.some(({ family }) => family === 'IPv6') === true;
const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;

/** A listener, and what it gets of each connection: nothing of it is read, as while a long body comes. */
async function listening(t: TestContext, host: string) {
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }).listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const accepted = async (): Promise<Socket> => {
    const [socket] = (await once(server, 'connection')) as [Socket];
    sockets.push(socket.on('error', () => undefined));
    return socket;
  };
  const dial = async (options: Partial<TcpNetConnectOpts> = {}) => {
    const coming = accepted();
    const client = connect({ host: '127.0.0.1', port, ...options });
    sockets.push(client.on('error', () => undefined));
    const [socket] = await Promise.all([coming, once(client, 'connect')]);
    return { client, socket };
  };
  return { port, accepted, dial };
}

describe('whose a connection is', () => {
  for (const [what, host, options] of [
    ['loopback', '127.0.0.1', {}],
    ['IPv4 to a listener for both', '::', {}],
    ['IPv6', '::', { host: '::1' }],
    ['an address of this machine', '0.0.0.0', { host: ownAddress ?? '127.0.0.1' }],
    ['one address of this machine to another', '0.0.0.0', { localAddress: ownAddress ?? '127.0.0.2' }],
  ] as const)
    it(`is told over ${what}`, { skip: host === '::' && !hasIpv6 && SKIPS.ipv6.reason }, async (t) => {
      const { dial } = await listening(t, host);
      const { socket } = await dial(options);
      assert.equal(await ownerOf(socket), process.geteuid?.());
    });

  it(
    'is the user of the process on the other side',
    { skip: process.geteuid?.() !== 0 && SKIPS.root.reason },
    async (t) => {
      const { accepted, port } = await listening(t, '127.0.0.1');
      const code = `require('net').connect(${port}, '127.0.0.1')`;
      const coming = accepted();
      const child = spawn(process.execPath, ['-e', code], { uid: OTHER_USER, gid: OTHER_USER, cwd: '/' });
      t.after(() => child.kill('SIGKILL'));
      assert.equal(await ownerOf(await coming), OTHER_USER);
    },
  );

  it('is nobody to be told where the client has gone, in order or not', async (t) => {
    const { dial } = await listening(t, '127.0.0.1');
    for (const leave of ['destroy', 'resetAndDestroy'] as const) {
      const { client, socket } = await dial();
      client.write('POST / HTTP/1.1\r\n\r\n');
      client[leave]();
      await once(client, 'close');
      assert.equal(await ownerOf(socket), undefined, leave);
    }
  });

  it('is not told by who has taken the port of a client that has gone', async (t) => {
    const { dial } = await listening(t, '127.0.0.1');
    const taken = async (): Promise<readonly [former: Socket, next: Socket]> => {
      const { client, socket } = await dial();
      const { localPort = 0 } = client;
      // As what counts connections does: Node knows them from then on.
      assert.ok(socket.remoteAddress !== undefined && socket.localAddress !== undefined);
      client.resetAndDestroy();
      await once(client, 'close');
      return [socket, (await dial({ localPort })).socket];
    };
    // Another program of the machine may be faster to take that very port.
    const [former, next] = await taken().catch(taken).catch(taken);
    assert.equal(await ownerOf(next), process.geteuid?.());
    assert.equal(await ownerOf(former), undefined);
  });

  it('is not asked of another machine', async () => {
    for (const remoteAddress of ['198.51.100.7', '::ffff:198.51.100.7', '2001:db8::7', 'fe80::7%eth0'])
      assert.equal(await ownerOf({ remoteAddress } as Socket), 'elsewhere', remoteAddress);
  });
});
