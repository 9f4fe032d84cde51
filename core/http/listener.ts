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

export function createListener(options: ListenerOptions): Listener {
  return new MovingListener(options);
}

class MovingListener implements Listener {
  readonly #options: ListenerOptions;
  readonly #sockets = new Set<Socket>();
  /** Answers under way, by connection. */
  readonly #busy = new WeakMap<Socket, number>();
  #current: Door | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  get address(): Address | undefined {
    return this.#current?.bound;
  }

  get sockets(): number {
    return this.#sockets.size;
  }

  listen(address: Address): Promise<void> {
    return this.#inTurn(() => this.#move(address));
  }

  close(): Promise<void> {
    return this.#inTurn(async () => {
      const last = this.#current;
      this.#current = undefined;
      if (last) await this.#letGo(last);
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  async #move(address: Address): Promise<void> {
    const previous = this.#current;
    if (previous && (sameAddress(previous.asked, address) || sameAddress(previous.bound, address))) return;
    if (previous && overlaps(previous.bound, address)) {
      this.#current = await this.#replace(previous, address);
    } else {
      this.#current = await this.#open(address);
      if (previous) void this.#letGo(previous);
    }
    const { host, port } = this.#current.bound;
    this.#options.log.info({ host, port }, 'web server listens');
  }

  /** From one address of a port to all of them, or back: the kernel lets nobody hold both, so the old one goes first. */
  async #replace(previous: Door, address: Address): Promise<Door> {
    void this.#letGo(previous);
    try {
      return await this.#open(address);
    } catch (error) {
      this.#current = await this.#open(previous.bound);
      throw error;
    }
  }

  #open(asked: Address): Promise<Door> {
    const answers = new Set<ServerResponse>();
    const server = this.#createServer(answers);
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        server.close();
        reject(new Error(listenProblem(error, asked), { cause: error }));
      };
      server.once('error', fail);
      server.listen({ host: plainHost(asked.host), port: asked.port }, () => {
        server.off('error', fail);
        server.on('error', (err) => this.#options.log.error({ err }, 'the web listener reported an error'));
        const bound = server.address() as AddressInfo;
        resolve({ server, answers, asked, bound: { host: plainHost(asked.host), port: bound.port } });
      });
    });
  }

  #createServer(answers: Set<ServerResponse>): Server {
    const { limits, log } = this.#options;
    const server = createServer({
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      maxHeaderSize: limits.maxHeaderBytes,
      connectionsCheckingInterval: limits.checkIntervalMs,
    });
    server.maxConnections = limits.maxConnections;
    server.on('connection', (socket: Socket) => this.#track(socket));
    server.on('request', (req, res) => this.#accept('request', { server, answers }, { req, res }));
    server.on('checkContinue', (req, res) => this.#accept('checkContinue', { server, answers }, { req, res }));
    server.on('clientError', (error, socket) => answerClientError(error, socket as Socket, (this.#busy.get(socket as Socket) ?? 0) > 0));
    server.on('drop', () => log.warn({ maxConnections: limits.maxConnections }, 'too many connections, one was refused'));
    return server;
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#options.onSocketClosed(socket);
    });
  }

  #accept(event: RequestEvent, { server, answers }: Pick<Door, 'server' | 'answers'>, { req, res }: Exchange): void {
    const { socket } = req;
    this.#busy.set(socket, (this.#busy.get(socket) ?? 0) + 1);
    answers.add(res);
    res.once('close', () => {
      this.#busy.set(socket, (this.#busy.get(socket) ?? 1) - 1);
      answers.delete(res);
      if (!server.listening) setImmediate(() => server.closeIdleConnections());
    });
    if (!server.listening) res.shouldKeepAlive = false;
    this.#options.onRequest(event, req, res);
  }

  /** Stops accepting at once; resolves when the last connection is gone, which is after `letGoMs` at the latest. */
  #letGo({ server, answers }: Door): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(this.#options.limits.letGoMs, () => server.closeAllConnections());
      // What has begun is finished, and nothing more comes over its connection.
      for (const res of answers) if (!res.headersSent) res.shouldKeepAlive = false;
      server.close(() => {
        cancel();
        resolve();
      });
      server.closeIdleConnections();
    });
  }
}
