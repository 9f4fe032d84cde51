/** Free loopback ports, taken below the range that the kernel hands out by itself. */
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { basename } from 'node:path';

const [FIRST, LAST] = [15_000, 32_000];
const ROOM = 250;
/** A port may be let go for a while, as a NAS is that goes away: each file looks for its own among others than its neighbours do. */
const room = FIRST + ROOM * (createHash('sha256').update(basename(process.argv[1] ?? '')).digest().readUInt32BE() % Math.floor((LAST - FIRST) / ROOM));
const given = new Set<number>();

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const port = attempt < 100 ? randomInt(room, room + ROOM) : randomInt(FIRST, LAST);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port found between ${FIRST} and ${LAST}`);
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
