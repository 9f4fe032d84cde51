/** Free loopback ports, taken below the range that the kernel hands out by itself, so that two tests seldom meet. */
import { createServer } from 'node:net';
import { once } from 'node:events';
import { randomInt } from 'node:crypto';

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(15_000, 32_000);
    if (await isFree(port)) return port;
  }
  throw new Error('no free port found between 15000 and 32000');
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ host: '127.0.0.1', port, exclusive: true });
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
