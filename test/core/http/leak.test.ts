import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until } from '../../support/platform/wait.ts';
import { createServer, dial, ledger, textRoute } from '../../support/http/test-server.ts';

const REQUESTS_PER_ROUND = 10_000;
/** Between two swaps. */
const BATCH = 500;
/** More that is sent ahead ends a connection. */
const AHEAD = 5;

function collectedHeapBytes(): number {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  gc();
  gc();
  return process.memoryUsage().heapUsed;
}

describe('connections that die while requests wait on them', () => {
  it('leave no memory behind', async () => {
    const server = await createServer();
    let asked = 0;
    await server.swap(
      ledger('a', {
        routes: [
          {
            method: 'GET',
            path: '/held',
            handler: async ({ raw }) => {
              asked += 1;
              await once(raw.req.socket, 'close');
              return 'x';
            },
          },
        ],
      }),
    );
    const round = async (connections: number): Promise<void> => {
      for (let count = 0; count < connections; count += 1) {
        const before = asked;
        const { socket } = await dial(server.port);
        socket.write('GET /held HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(AHEAD));
        await until('the first is asked', () => asked > before, { timeoutMs: 20_000, everyMs: 0 });
        socket.destroy();
      }
      await until('they are gone', () => server.http.stats().sockets === 0, { timeoutMs: 20_000 });
    };
    await round(100);
    const before = collectedHeapBytes();
    await round(400);
    const grown = collectedHeapBytes() - before;
    await server.http.close();
    assert.ok(grown < 4_000_000, `the heap grew by ${grown} bytes`);
  });
});

describe('many requests and many swaps', () => {
  it('leave no memory, connection or generation behind', async () => {
    const server = await createServer();
    const serve = () => server.swap(ledger('a', { routes: [textRoute('/a', 'x')] }));
    await serve();
    const wire = await dial(server.port);
    let received = 0;
    wire.socket.removeAllListeners('data');
    wire.socket.on('data', (chunk: string) => (received += chunk.split('HTTP/1.1 200').length - 1));
    const batch = 'GET /a HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(AHEAD);

    const round = async (): Promise<void> => {
      const goal = received + REQUESTS_PER_ROUND;
      while (received < goal) {
        const next = received + AHEAD;
        wire.socket.write(batch);
        await until('the batch is answered', () => received >= next, { timeoutMs: 20_000, everyMs: 0 });
        if (received % BATCH === 0) await serve();
      }
    };
    await round();
    await until('old generations are gone', () => server.http.stats().generations === 1, {
      timeoutMs: 20_000,
    });
    const before = collectedHeapBytes();
    await round();
    await round();
    await until('old generations are gone', () => server.http.stats().generations === 1, {
      timeoutMs: 20_000,
    });
    const grown = collectedHeapBytes() - before;
    assert.equal(server.http.stats().sockets, 1);
    wire.socket.destroy();
    await server.http.close();
    assert.ok(
      grown < 2_000_000,
      `the heap grew by ${grown} bytes over ${2 * REQUESTS_PER_ROUND} requests and ` +
        `${(2 * REQUESTS_PER_ROUND) / BATCH} swaps`,
    );
  });
});
