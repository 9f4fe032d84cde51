import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { turn, until, within } from '../../support/platform/wait.ts';
import { createServer, dial, ledger, textRoute } from '../../support/http/test-server.ts';

const REQUESTS_PER_ROUND = 4_000;
/** Between two swaps. */
const BATCH = 200;
/** A small object that stays of each request shows; what an engine keeps of its own is a quarter of it at most. */
const MOST_BYTES_PER_REQUEST = 100;
/** More that is sent ahead ends a connection. */
const AHEAD = 5;

/** What the engine keeps until it has told of the end of something goes with the second collection. */
async function collectedHeapBytes(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  gc();
  await turn();
  await turn();
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
    const before = await collectedHeapBytes();
    await round(400);
    const grown = (await collectedHeapBytes()) - before;
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
    let heard = (): void => undefined;
    wire.socket.removeAllListeners('data');
    wire.socket.on('data', (chunk: string) => {
      received += chunk.split('HTTP/1.1 200').length - 1;
      heard();
    });
    const answered = async (count: number): Promise<void> => {
      while (received < count) await new Promise<void>((resolve) => (heard = resolve));
    };
    const batch = 'GET /a HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(AHEAD);

    const round = async (): Promise<void> => {
      const goal = received + REQUESTS_PER_ROUND;
      while (received < goal) {
        const next = received + AHEAD;
        wire.socket.write(batch);
        await within('the batch is answered', 20_000, answered(next));
        if (received % BATCH === 0) await serve();
      }
    };
    await round();
    await until('old generations are gone', () => server.http.stats().generations === 1, {
      timeoutMs: 20_000,
    });
    const before = await collectedHeapBytes();
    await round();
    await round();
    await until('old generations are gone', () => server.http.stats().generations === 1, {
      timeoutMs: 20_000,
    });
    const grown = (await collectedHeapBytes()) - before;
    assert.equal(server.http.stats().sockets, 1);
    wire.socket.destroy();
    await server.http.close();
    assert.ok(
      grown < 2 * REQUESTS_PER_ROUND * MOST_BYTES_PER_REQUEST,
      `the heap grew by ${grown} bytes over ${2 * REQUESTS_PER_ROUND} requests and ` +
        `${(2 * REQUESTS_PER_ROUND) / BATCH} swaps`,
    );
  });
});
