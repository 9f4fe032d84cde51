/**
 * Allows one daemon per state folder: the daemon listens on a unix socket in it for as long as it lives. A
 * socket that nobody answers on belongs to a daemon that was killed, and is taken over.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { chmod, open, unlink } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { childEnvironment } from './processes/environment.ts';

/** Errors of connecting to an abandoned socket. Any other may come from a living daemon. */
const ABANDONED = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'];

const OPEN_LOCK = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
/** The exit status of flock(1) where somebody else has the lock. */
const HELD = 1;

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

/** Lets one daemon at a time check, remove and take over. */
async function inTurn<T>(stateDir: string, act: () => Promise<T>): Promise<T> {
  return holdFolder(stateDir, 'mountkeeper', (cause) => inUse(stateDir, cause), act);
}

/**
 * Runs `act` while nobody else holds `folder` under the same name; rejects with `taken` where somebody does.
 * The kernel lets go the moment the process ends, however it ends. The lock lies on a file in the folder that other
 * users cannot open: whoever can open a file can lock it, and names outside of the folder are anybody's.
 */
export async function holdFolder<T>(
  folder: string,
  name: string,
  taken: (cause: Error) => Error,
  act: () => Promise<T>,
): Promise<T> {
  const file = await open(join(folder, `.${name}.lock`), OPEN_LOCK, 0o600);
  try {
    if (!(await isLockedNow(file.fd))) throw taken(new Error(`${folder} is locked`));
    return await act();
  } finally {
    await file.close();
  }
}

/**
 * Locks the open file or folder, for as long as this process, or one that it is passed to, has it open. Node has no
 * such call; flock(1) locks what it is given open, and that outlives it.
 */
export async function isLockedNow(fd: number): Promise<boolean> {
  const child = spawn('flock', ['-n', '-x', '3'], {
    cwd: '/',
    env: childEnvironment(),
    stdio: ['ignore', 'ignore', 'ignore', fd],
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  }).catch((cause: Error) => Promise.reject(lockFailure(cause)));
  if (code !== 0 && code !== HELD) throw lockFailure(new Error(`flock ended with ${code ?? 'a signal'}`));
  return code === 0;
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

function lockFailure(cause: Error): Error {
  return new Error(`a folder cannot be locked: ${cause.message}`, { cause });
}

function listen(path: string, taken: (cause: Error) => Error): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(cause.code === 'EADDRINUSE' ? taken(cause) : lockFailure(cause));
    });
    server.listen(path, () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
