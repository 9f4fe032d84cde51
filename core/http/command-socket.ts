/**
 * A second listener, for administrators of this machine: a unix socket in the state folder that only root
 * and the daemon's user can open. The kernel checks who connects, so no password is needed.
 */
import { constants } from 'node:fs';
import { chmod, open, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Logger } from '../contract/platform.ts';
import { markCommandConnection } from '../sdk/http/command-connections.ts';
import type { ListenerLimits, RequestEvent } from './listener.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { createServer } = process.getBuiltinModule('node:http');

/** Its name in the state folder, which has mode 0700. */
export const COMMAND_SOCKET = 'command.sock';

export interface CommandSocketOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: ListenerLimits;
  readonly stateDir: string;
  readonly onRequest: (event: RequestEvent, req: IncomingMessage, res: ServerResponse) => void;
  readonly onSocketClosed: (socket: Socket) => void;
}

/** Opens the socket and resolves with its release. The caller holds the lock of the state folder. */
export async function openCommandSocket(options: CommandSocketOptions): Promise<() => Promise<void>> {
  // Socket paths are limited to 107 bytes; through /proc/self/fd every folder has a short path.
  const folder = await open(options.stateDir, constants.O_RDONLY | constants.O_DIRECTORY);
  const path = `/proc/self/fd/${folder.fd}/${COMMAND_SOCKET}`;
  const server = serverOf(options);
  try {
    // Left by a daemon that was killed: the holder of the state folder's lock is the only daemon.
    await unlink(path).catch(unlessMissing);
    await listen(server, path);
    await chmod(path, 0o600);
  } catch (error) {
    server.close();
    await folder.close();
    throw error;
  }
  return () => close(server, folder, options);
}

function unlessMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

function serverOf({ limits, log, onRequest, onSocketClosed }: CommandSocketOptions): Server {
  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    connectionsCheckingInterval: limits.checkIntervalMs,
  });
  server.maxConnections = limits.maxConnections;
  // For example, no file descriptor is left for a new connection: the server goes on.
  server.on('error', (err) => {
    if (server.listening) log.error({ err }, 'the command socket reported an error');
  });
  server.on('connection', (socket: Socket) => {
    markCommandConnection(socket);
    socket.once('close', () => onSocketClosed(socket));
  });
  server.on('request', (req, res) => onRequest('request', req, res));
  server.on('checkContinue', (req, res) => onRequest('checkContinue', req, res));
  return server;
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Removes the name at once; requests that have arrived are answered, within `letGoMs`. */
async function close(
  server: Server,
  folder: FileHandle,
  { clock, limits }: CommandSocketOptions,
): Promise<void> {
  await new Promise<void>((resolve) => {
    const cancel = clock.after(limits.letGoMs, () => server.closeAllConnections());
    server.close(() => {
      cancel();
      resolve();
    });
    server.closeIdleConnections();
  });
  await folder.close();
}
