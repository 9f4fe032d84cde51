/**
 * Allows one daemon per state folder: the daemon listens on a unix socket in it for as long as it lives. A
 * socket that nobody answers on belongs to a daemon that was killed, and is taken over.
 */
import { chmod, open, stat, unlink } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import type { Server } from 'node:net';

/** Errors of connecting to an abandoned socket. Any other may come from a living daemon. */
const ABANDONED = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'];

/** Resolves with the release. Rejects with a sentence when another daemon holds the folder. */
export async function lockStateDir(stateDir: string): Promise<() => Promise<void>> {
  // Socket paths are limited to 107 bytes; through /proc/self/fd every folder has a short path.
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
 * Lets one daemon at a time check, remove and take over. An abstract socket serves as the lock, because the
 * kernel frees it the moment its process ends.
 */
async function inTurn<T>(stateDir: string, act: () => Promise<T>): Promise<T> {
  return holdFolder(stateDir, 'mountkeeper', (cause) => inUse(stateDir, cause), act);
}

/**
 * Runs `act` while nobody else holds `folder` under the same name; rejects with `taken` where somebody does.
 * The kernel lets go the moment the process ends, however it ends.
 */
export async function holdFolder<T>(
  folder: string,
  name: string,
  taken: (cause: Error) => Error,
  act: () => Promise<T>,
): Promise<T> {
  const { dev, ino } = await stat(folder);
  const turn = await listen(`\0${name}/${dev}/${ino}`, taken);
  try {
    return await act();
  } finally {
    await close(turn);
  }
}

async function takeOver(stateDir: string, path: string): Promise<Server> {
  if (await isHeld(path)) throw inUse(stateDir);
  // Where it cannot be removed, listening fails and says so.
  await unlink(path).catch(() => undefined);
  const server = await listen(path, (cause) => inUse(stateDir, cause));
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
  const sentence =
    `another mountkeeper daemon is running on the state folder ${stateDir}; ` +
    'stop it first, or give this one another supervisor.state_dir';
  return new Error(sentence, cause ? { cause } : {});
}

function listen(path: string, taken: (cause: Error) => Error): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(
        cause.code === 'EADDRINUSE'
          ? taken(cause)
          : new Error(`the state folder cannot be locked: ${cause.message}`, { cause }),
      );
    });
    server.listen(path, () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
