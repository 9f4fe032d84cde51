/** Free loopback ports, taken below the range that the kernel hands out by itself. */
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname } from 'node:path';

const [FIRST, LAST] = [15_000, 32_000];
const ROOM = 200;
/**
 * A port may be let go for a while, as a NAS is that goes away: each file looks for its own among others than
 * its neighbours do.
 */
const room = FIRST + ROOM * (placeOf(process.argv[1] ?? '') % Math.floor((LAST - FIRST) / ROOM));
const given = new Set<number>();

/**
 * Of an end-to-end file among its neighbours, so that no two have the same; anything else is placed by its
 * name.
 */
function placeOf(file: string): number {
  const isEndToEnd = file.endsWith('.test.js');
  const place = isEndToEnd
    ? readdirSync(dirname(file))
        .filter((name) => name.endsWith('.test.js'))
        .sort()
        .indexOf(basename(file))
    : -1;
  return place >= 0 ? place : createHash('sha256').update(basename(file)).digest().readUInt32BE();
}

/** A port on which nothing listens, given once in this process. Rejects when none is found. */
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
    if (server.listening) await once(server.close(), 'close');
  }
}
