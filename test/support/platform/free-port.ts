/** Free loopback ports, taken below the range that the kernel hands out by itself. */
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, sep } from 'node:path';

const [FIRST, LAST] = [15_000, 32_000];
/** End-to-end files, with some to come. */
const FILES = 160;
/** For whatever is none. */
const MORE_ROOMS = 6;
/**
 * A port may be let go for a while, as a NAS is that goes away: each file looks for its own among others than all other
 * files do.
 */
const { start: room, size: ROOM } = roomOf(process.argv[1] ?? '');
const given = new Set<number>();

/** Of an end-to-end file among all of them, so that no two have the same; anything else is placed by its name. */
function roomOf(file: string): { readonly start: number; readonly size: number } {
  const [root = '', name] = file.split(`${sep}e2e${sep}`);
  const files =
    name === undefined
      ? []
      : readdirSync(join(root, 'e2e'), { recursive: true, encoding: 'utf8' })
          .filter((one) => one.endsWith('.test.js'))
          .sort();
  const size = Math.floor((LAST - FIRST) / (FILES + MORE_ROOMS));
  const index = name === undefined ? -1 : files.indexOf(name);
  const place =
    index >= 0 && index < FILES
      ? index
      : FILES + (createHash('sha256').update(file).digest().readUInt32BE() % MORE_ROOMS);
  return { start: FIRST + size * place, size };
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
