/**
 * Connections over the command socket, which needs no password: the kernel lets only root and the daemon's
 * user open it.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

const connections = new WeakSet<Socket>();

/** For whoever accepts connections on the command socket. */
export function markCommandConnection(socket: Socket): void {
  connections.add(socket);
}

/**
 * Whether a request came over the command socket: by its connection, never by anything that a client says.
 */
export function isFromCommandSocket(request: IncomingMessage): boolean {
  return connections.has(request.socket);
}
