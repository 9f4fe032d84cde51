import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { addressOf, dial } from '../../../plugins/nas-watch/dial.ts';

const connection = (type: string, options: Record<string, string>) => ({ name: 'nas', type, options });

describe('a knock', () => {
  it('goes where the connection leads', () => {
    assert.deepEqual(addressOf(connection('sftp', { host: 'nas.lan' })), { host: 'nas.lan', port: 22 });
    assert.deepEqual(addressOf(connection('smb', { host: '10.0.0.1', port: '1445' })), {
      host: '10.0.0.1',
      port: 1445,
    });
    assert.deepEqual(addressOf(connection('webdav', { url: 'https://nas.lan/dav' })), {
      host: 'nas.lan',
      port: 443,
    });
    assert.deepEqual(addressOf(connection('webdav', { url: 'http://[::1]:8080/' })), {
      host: '::1',
      port: 8080,
    });
    assert.deepEqual(addressOf(connection('s3', { endpoint: 'http://minio:9000' })), {
      host: 'minio',
      port: 9000,
    });
    for (const nowhere of [
      connection('local', {}),
      connection('s3', { endpoint: 'eu-west' }),
      connection('other', { host: 'x' }),
      connection('sftp', { host: 'x', port: 'y' }),
    ])
      assert.equal(addressOf(nowhere), undefined);
  });

  it('is heard where somebody listens', async () => {
    const server = createServer((socket) => socket.destroy());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const there = connection('sftp', { host: '127.0.0.1', port: String(port) });
    assert.equal(await dial(there, AbortSignal.timeout(20_000)), true);
    assert.equal(await dial(there, AbortSignal.abort()), false);
    server.close();
    await once(server, 'close');
    assert.equal(await dial(there, AbortSignal.timeout(20_000)), false);
    assert.equal(await dial(connection('local', {}), AbortSignal.timeout(20_000)), undefined);
  });
});
