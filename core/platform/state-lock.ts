/**
 * One daemon per state folder: a unix socket in it, held as long as the process lives. A socket that nobody
 * answers on was left by a daemon that was killed and is taken over.
 */
import { chmod, open, stat, unlink } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import type { Server } from 'node:net';

/** What a socket says that nobody holds any more. Anything else may be a living daemon. */
const ABANDONED = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'];

/** Resolves with the release. Rejects with a sentence when another daemon holds the folder. */
export async function lockStateDir(stateDir: string): Promise<() => Promise<void>> {
  // Socket names are cut off after 107 bytes; through a descriptor every folder has a short one.
  const folder = await open(stateDir);
  try {
    const server = await inTurn(stateDir, () => takeOver(stateDir, `/proc/self/fd/${folder.fd}/daemon.sock`));
    return async () => {
      await close(server);
      await folder.close();
    };
  } catch (error) {
    await folder.close();
    throw error;
  }
}

/**
 * One daemon at a time looks, removes and takes over. The kernel's own name space is free again the moment a
 * process ends.
 */
async function inTurn<T>(stateDir: string, act: () => Promise<T>): Promise<T> {
  const { dev, ino } = await stat(stateDir);
  const turn = await listen(`\0mountkeeper/${dev}/${ino}`, stateDir);
  try {
    return await act();
  } finally {
    await close(turn);
  }
}

async function takeOver(stateDir: string, path: string): Promise<Server> {
  if (await isHeld(path)) throw inUse(stateDir);
  await unlink(path).catch(() => undefined);
  const server = await listen(path, stateDir);
  await chmod(path, 0o600);
  server.unref();
  return server;
}

function isHeld(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(!ABANDONED.includes(error.code ?? '')));
  });
}

function inUse(stateDir: string, cause?: Error): Error {
  const sentence = `another mountkeeper daemon is running on the state folder ${stateDir}; stop it first, or give this one another supervisor.state_dir`;
  return new Error(sentence, cause ? { cause } : {});
}

function listen(path: string, stateDir: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(
        cause.code === 'EADDRINUSE'
          ? inUse(stateDir, cause)
          : new Error(`the state folder cannot be locked: ${cause.message}`, { cause }),
      );
    });
    server.listen(path, () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
