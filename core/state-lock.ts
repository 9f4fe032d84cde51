/**
 * One daemon per state folder: a unix socket in it, held as long as the process lives. A socket that nobody answers on was left
 * by a daemon that was killed and is taken over.
 */
import { createConnection, createServer } from 'node:net';
import type { Server } from 'node:net';
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';

/** Resolves with the release. Rejects with a sentence when another daemon holds the folder. */
export async function lockStateDir(stateDir: string): Promise<() => Promise<void>> {
  const path = join(stateDir, 'daemon.sock');
  if (await isAnswered(path)) throw new Error(`another mountkeeper daemon is running on the state folder ${stateDir}; stop it first, or give this one another supervisor.state_dir`);
  await unlink(path).catch(() => undefined);
  const server = createServer((socket) => socket.destroy());
  await listen(server, path);
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(new Error(`the state folder cannot be locked: ${cause.message}`, { cause })));
    server.listen(path, resolve);
  });
}
