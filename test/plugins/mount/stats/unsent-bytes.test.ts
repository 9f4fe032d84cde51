/** What the kernel holds back of what a process has written to its connections. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, it } from 'node:test';
import { unsentBytes } from '../../../../plugins/mount/stats/unsent-bytes.ts';
import { until } from '../../../support/platform/wait.ts';

const MIB = 1_048_576;
const WAIT = { timeoutMs: 20_000 };
const NO_PROCESS = 2 ** 22 + 1;

describe('bytes that a process has written and nobody has taken yet', () => {
  for (const host of ['127.0.0.1', '::1'])
    it(`are counted until they are taken, over ${host}`, async (t) => {
      const server = createServer({ pauseOnConnect: true });
      t.after(() => server.close());
      server.listen(0, host);
      await once(server, 'listening');
      const before = unsentBytes(process.pid);
      const accepted = once(server, 'connection') as Promise<[Socket]>;
      const client = createConnection({ host, port: (server.address() as AddressInfo).port });
      t.after(() => client.destroy());
      const [taker] = await accepted;
      t.after(() => taker.destroy());
      client.write(Buffer.alloc(64 * MIB));
      await until('the kernel holds some', () => unsentBytes(process.pid) - before > 64 * 1_024, WAIT);
      taker.resume();
      await until('all is taken', () => taker.bytesRead === 64 * MIB, WAIT);
      await until('none is left', () => unsentBytes(process.pid) === before, WAIT);
    });

  it('are none of a process that is gone, or has no connection', async () => {
    assert.equal(unsentBytes(NO_PROCESS), 0);
    assert.equal(unsentBytes(1), 0);
  });
});
