/**
 * Counts the requests in flight on one generation, so that it is stopped only after the last of them. A
 * queued (pipelined) response whose connection dies never closes, so the count is kept per connection.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface Drain {
  readonly inFlight: number;
  enter(socket: Socket, res: ServerResponse): void;
  /** The connection is closed, and with it every response still queued on it. */
  socketClosed(socket: Socket): void;
  /** Resolves when nothing is in flight. Call it only when no more requests are added. */
  idle(): Promise<void>;
  /** Closes the connections of what is still in flight. */
  destroy(): void;
}

export function createDrain(): Drain {
  const open = new Map<Socket, number>();
  const waiting: (() => void)[] = [];

  function settle(): void {
    if (open.size === 0) for (const resolve of waiting.splice(0)) resolve();
  }

  function leave(socket: Socket): void {
    const count = open.get(socket);
    if (count === undefined) return;
    if (count > 1) open.set(socket, count - 1);
    else open.delete(socket);
    settle();
  }

  return {
    get inFlight() {
      return [...open.values()].reduce((sum, count) => sum + count, 0);
    },
    enter(socket, res) {
      open.set(socket, (open.get(socket) ?? 0) + 1);
      res.once('close', () => leave(socket));
    },
    socketClosed(socket) {
      if (open.delete(socket)) settle();
    },
    idle() {
      return new Promise((resolve) => {
        waiting.push(resolve);
        settle();
      });
    },
    destroy() {
      for (const socket of open.keys()) socket.destroy();
    },
  };
}
