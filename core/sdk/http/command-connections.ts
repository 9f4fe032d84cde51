/**
 * Connections over the command socket. They need no password: the kernel lets only root and the daemon's
 * user open it.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

const connections = new WeakSet<Socket>();

/** Called by the listener of the command socket for each connection. */
export function markCommandConnection(socket: Socket): void {
  connections.add(socket);
}

/**
 * Whether a request came over the command socket. Decided by its connection, never by anything that the
 * client sends.
 */
export function isFromCommandSocket(request: IncomingMessage): boolean {
  return connections.has(request.socket);
}
