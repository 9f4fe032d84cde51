import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { ConnectionConfig } from 'mountkeeper';
import { nasAddress } from '../../../plugins/probing/nas-address.ts';
import { createDial } from '../../../plugins/probing/dial.ts';

const connection = (type: string, options: ConnectionConfig['options']): ConnectionConfig => ({
  name: 'nas',
  type,
  options,
});

describe('where a NAS listens', () => {
  it('is known where the options say it', () => {
    assert.deepEqual(nasAddress(connection('sftp', { host: 'nas.lan' })), {
      host: 'nas.lan',
      port: 22,
      manner: 'greets',
    });
    assert.deepEqual(nasAddress(connection('smb', { host: 'nas.lan', port: 4445 })), {
      host: 'nas.lan',
      port: 4445,
      manner: 'accepts',
    });
    assert.equal(nasAddress(connection('smb', { host: '10.0.0.1', port: '1445' }))?.port, 1445);
    assert.deepEqual(nasAddress(connection('webdav', { url: 'http://[::1]:8080/dav' })), {
      host: '::1',
      port: 8080,
      manner: 'answers',
    });
    assert.deepEqual(nasAddress(connection('webdav', { url: 'https://nas.lan/dav' })), {
      host: 'nas.lan',
      port: 443,
      manner: 'accepts',
    });
    assert.deepEqual(nasAddress(connection('s3', { endpoint: 'http://minio:9000' })), {
      host: 'minio',
      port: 9000,
      manner: 'answers',
    });
  });

  it('is not known where they do not, or lead by another way', () => {
    for (const [type, options] of [
      ['drive', {}],
      ['local', {}],
      ['s3', { endpoint: 'eu-west' }],
      ['other', { host: 'x' }],
      ['sftp', { host: 'x', port: 'y' }],
      ['sftp', { host: 'x', port: '70000' }],
      ['alias', { remote: 'nas:x' }],
      ['sftp', { host: 'nas', socks_proxy: 'p:1' }],
      ['sftp', { host: { env: 'NAS' } }],
      ['webdav', { url: 'nas' }],
    ] as const) {
      assert.equal(nasAddress(connection(type, options)), undefined, type);
    }
  });
});

describe('a dial of a NAS', () => {
  const sockets = new Set<Socket>();
  let server: Server;
  let speech: string | undefined;
  let port: number;

  before(async () => {
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).on('data', () => undefined);
      if (speech !== undefined) socket.end(speech);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  });
  after(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });

  it('finds one that speaks, and none that only takes the connection', async () => {
    const look = createDial({ host: 'localhost', port, manner: 'greets' });
    speech = 'SSH-2.0-x\r\n';
    assert.equal(await look(AbortSignal.timeout(20_000)), undefined);
    speech = undefined;
    assert.equal(await look(AbortSignal.timeout(100)), 'i/o timeout');
    assert.equal(
      await createDial({ host: '127.0.0.1', port, manner: 'accepts' })(AbortSignal.timeout(20_000)),
      undefined,
    );
  });

  it('finds one at any of the addresses that its name has', async () => {
    speech = 'SSH-2.0-x\r\n';
    const named = (...addresses: string[]) =>
      createDial({ host: 'nas.lan', port, manner: 'greets' }, async () =>
        addresses.map((address) => ({ address })),
      );
    assert.equal(await named('127.0.0.2', '127.0.0.1')(AbortSignal.timeout(20_000)), undefined);
    assert.equal(await named('127.0.0.1', '127.0.0.2')(AbortSignal.timeout(20_000)), undefined);
    assert.equal(await named('127.0.0.2', '127.0.0.3')(AbortSignal.timeout(20_000)), 'connection refused');
  });

  it('says why there is none', async () => {
    assert.equal(
      await createDial({ host: '127.0.0.1', port: 1, manner: 'greets' })(AbortSignal.timeout(20_000)),
      'connection refused',
    );
  });
});
