/** Which versions and ciphers a real client of TLS gets from a server with an RSA certificate. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { connect } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import { promisify } from 'node:util';
import { SecureServer } from '../../../../core/sdk/http/secure-server.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const run = promisify(execFile);
/** Lets a client offer what its own OpenSSL would not. */
const WEAK = '@SECLEVEL=0';

describe('a server that speaks TLS', () => {
  let scratch: Scratch;
  let server: SecureServer;
  let port: number;

  /** What was agreed on; the code of the error where nothing was. */
  const agreed = (offer: ConnectionOptions): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...offer });
      socket.once('secureConnect', () => {
        resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
        socket.destroy();
      });
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });

  before(async () => {
    scratch = await createScratch('secure');
    const [key, certificate] = [scratch.path('key.pem'), scratch.path('certificate.pem')];
    const made = ['-newkey', 'rsa:2048', '-nodes', '-keyout', key];
    await run('openssl', [
      'req',
      '-x509',
      ...made,
      '-out',
      certificate,
      '-subj',
      '/CN=localhost',
      '-days',
      '2',
    ]);
    const pair = { cert: await readFile(certificate, 'utf8'), key: await readFile(key, 'utf8') };
    server = new SecureServer({}, pair);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  after(async () => {
    server.close();
    await scratch.close();
  });

  for (const ciphers of ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', `AES128-SHA:AES256-SHA:${WEAK}`])
    it(`agrees on none with a client that offers ${ciphers} alone, whose key exchange is by the RSA key`, async () => {
      assert.match(await agreed({ maxVersion: 'TLSv1.2', ciphers }), /HANDSHAKE_FAILURE/);
    });

  it('agrees on ciphers whose key exchange is for one connection alone', async () => {
    for (const ciphers of ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'])
      assert.equal(
        await agreed({ maxVersion: 'TLSv1.2', ciphers: `AES128-GCM-SHA256:${ciphers}` }),
        `TLSv1.2 ${ciphers}`,
      );
    assert.match(await agreed({}), /^TLSv1\.3 TLS_/);
  });

  it('speaks no version before TLS 1.2', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: `ALL:${WEAK}` } as const;
    assert.match(await agreed(old), /PROTOCOL_VERSION/);
  });
});
