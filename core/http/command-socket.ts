/**
 * A second way in, for who administers this machine: a unix socket in the state folder that nobody but root
 * and the daemon's user can open. The kernel has checked who comes over it, so whoever does needs no
 * password.
 */
import { constants } from 'node:fs';
import { chmod, open, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Logger } from '../contract/platform.ts';
import { markCommandConnection } from '../sdk/http/command-connections.ts';
import type { ListenerLimits, RequestEvent } from './listener.ts';

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
  // Socket names are cut off after 107 bytes; through a descriptor every folder has a short one.
  const folder = await open(options.stateDir, constants.O_RDONLY | constants.O_DIRECTORY);
  const path = `/proc/self/fd/${folder.fd}/${COMMAND_SOCKET}`;
  const server = serverOf(options);
  try {
    // Left by a daemon that was killed: whoever holds the lock is the only one.
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
  // For instance no descriptor is left for who comes: that ends nothing.
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

/** The name goes at once; what was asked before is answered, within `letGoMs`. */
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
