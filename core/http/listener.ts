/**
 * The one listener of the daemon. It outlives every HTTP generation and moves between addresses: the new address is
 * listened on before the old one is let go. Times, sizes and numbers of connections are bounded here.
 */
import { createServer, STATUS_CODES } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Clock, Logger } from '../services.ts';
import { listenProblem, overlaps, plainHost, sameAddress } from './address.ts';
import type { Address } from './address.ts';

export interface ListenerLimits {
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** How often overdue requests are looked for. */
  readonly checkIntervalMs: number;
  /** How long answers may go on over an address that was let go. */
  readonly letGoMs: number;
}

export const DEFAULT_LIMITS: ListenerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 20_000,
  maxHeaderBytes: 16_384,
  maxConnections: 1_000,
  checkIntervalMs: 2_000,
  letGoMs: 10_000,
};

export type RequestEvent = 'request' | 'checkContinue';

export interface ListenerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: ListenerLimits;
  readonly onRequest: (event: RequestEvent, req: IncomingMessage, res: ServerResponse) => void;
  readonly onSocketClosed: (socket: Socket) => void;
}

export interface Listener {
  readonly address: Address | undefined;
  readonly sockets: number;
  listen(address: Address): Promise<void>;
  close(): Promise<void>;
}

const CLIENT_ERROR_STATUS: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/** One server socket with its open connections. */
interface Door {
  readonly server: Server;
  /** Answers that are not finished. */
  readonly answers: Set<ServerResponse>;
  readonly asked: Address;
  readonly bound: Address;
}

function answerClientError(error: NodeJS.ErrnoException, socket: Socket, busy: boolean): void {
  if (busy || !socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = CLIENT_ERROR_STATUS[error.code ?? ''] ?? 400;
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

export function createListener({ clock, log, limits, onRequest, onSocketClosed }: ListenerOptions): Listener {
  const sockets = new Set<Socket>();
  const busy = new WeakMap<Socket, number>();
  let current: Door | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  function accept(event: RequestEvent, { server, answers }: Pick<Door, 'server' | 'answers'>, exchange: Exchange): void {
    const { req, res } = exchange;
    const { socket } = req;
    busy.set(socket, (busy.get(socket) ?? 0) + 1);
    answers.add(res);
    res.once('close', () => {
      busy.set(socket, (busy.get(socket) ?? 1) - 1);
      answers.delete(res);
      if (!server.listening) setImmediate(() => server.closeIdleConnections());
    });
    if (!server.listening) res.shouldKeepAlive = false;
    onRequest(event, req, res);
  }

  function track(socket: Socket): void {
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      onSocketClosed(socket);
    });
  }

  function createDoor(answers: Set<ServerResponse>): Server {
    const server = createServer({
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      maxHeaderSize: limits.maxHeaderBytes,
      connectionsCheckingInterval: limits.checkIntervalMs,
    });
    server.maxConnections = limits.maxConnections;
    server.on('connection', track);
    server.on('request', (req, res) => accept('request', { server, answers }, { req, res }));
    server.on('checkContinue', (req, res) => accept('checkContinue', { server, answers }, { req, res }));
    server.on('clientError', (error, socket) => answerClientError(error, socket as Socket, (busy.get(socket as Socket) ?? 0) > 0));
    server.on('drop', () => log.warn({ maxConnections: limits.maxConnections }, 'too many connections, one was refused'));
    return server;
  }

  function open(asked: Address): Promise<Door> {
    const answers = new Set<ServerResponse>();
    const server = createDoor(answers);
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        server.close();
        reject(new Error(listenProblem(error, asked), { cause: error }));
      };
      server.once('error', fail);
      server.listen({ host: plainHost(asked.host), port: asked.port }, () => {
        server.off('error', fail);
        server.on('error', (err) => log.error({ err }, 'the web listener reported an error'));
        const bound = server.address() as AddressInfo;
        resolve({ server, answers, asked, bound: { host: plainHost(asked.host), port: bound.port } });
      });
    });
  }

  /** Stops accepting at once; resolves when the last connection is gone, which is after `letGoMs` at the latest. */
  function letGo(door: Door): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(limits.letGoMs, () => door.server.closeAllConnections());
      // What has begun is finished, and nothing more comes over its connection.
      for (const res of door.answers) if (!res.headersSent) res.shouldKeepAlive = false;
      door.server.close(() => {
        cancel();
        resolve();
      });
      door.server.closeIdleConnections();
    });
  }

  /** From one address of a port to all of them, or back: the kernel lets nobody hold both, so the old one goes first. */
  async function replace(previous: Door, address: Address): Promise<Door> {
    void letGo(previous);
    try {
      return await open(address);
    } catch (error) {
      current = await open(previous.bound);
      throw error;
    }
  }

  async function move(address: Address): Promise<void> {
    const previous = current;
    if (previous && (sameAddress(previous.asked, address) || sameAddress(previous.bound, address))) return;
    if (previous && overlaps(previous.bound, address)) {
      current = await replace(previous, address);
    } else {
      current = await open(address);
      if (previous) void letGo(previous);
    }
    log.info({ host: current.bound.host, port: current.bound.port }, 'web server listens');
  }

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = queue.then(work);
    queue = result.catch(() => undefined);
    return result;
  }

  return {
    get address() {
      return current?.bound;
    },
    get sockets() {
      return sockets.size;
    },
    listen: (address) => inTurn(() => move(address)),
    close: () => inTurn(async () => {
      const last = current;
      current = undefined;
      if (last) await letGo(last);
    }),
  };
}
