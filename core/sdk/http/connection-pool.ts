/**
 * The connections of all clients of an HTTP server. A client that opens too many cannot lock others out:
 * for each new connection, an idle one is closed. Pipelined requests of one connection are served in order.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { addressKey } from './client-address.ts';
import { Connection, ClientConnections } from './client-connection.ts';
import { LateConnections } from './late-connections.ts';
import type { Clock } from '../../contract/platform.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

export interface ConnectionPoolOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly maxConnections: number;
  /** How long a new connection may take to send the head of its first request, in milliseconds. */
  readonly headMs: number;
  /** For one IPv4 address, or one IPv6 network of 64 bits. */
  readonly maxPerAddress: number;
  /**
   * A trusted proxy carries many clients: its connections count only towards the limit of all addresses
   * together.
   */
  readonly isTrustedProxy?: (address: string) => boolean;
  /** Called for each connection that was refused or closed to make room. */
  readonly onCrowded?: (address: string) => void;
}

/**
 * Most pipelined requests per connection. Clients normally wait for an answer; this serves the few that do
 * not.
 */
const MAX_AHEAD = 8;
/**
 * How long a refused client may take to read the reason before its connection is closed; frees the
 * descriptor afterwards.
 */
const LINGER_MS = 1_000;
/** The same for a client whose request is refused while its body is still arriving. */
const LINGER_UNREAD_MS = 10_000;
/** The same for connections that were refused for lack of room; meanwhile they do not count. */
const LINGER_REFUSED_MS = 100;
const CLIENT_ERROR_STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #connections = new WeakMap<Duplex, Connection>();
  readonly #all = new ClientConnections();
  readonly #perAddress = new Map<string, ClientConnections>();
  readonly #late: LateConnections<Connection>;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#late = new LateConnections(options.clock);
  }

  /** Connections that are open now. */
  get size(): number {
    return this.#all.size;
  }

  /**
   * Takes over the connections of a server (several servers may share one pool) and answers requests that
   * its parser cannot read.
   */
  attach(server: Server): void {
    server.on('connection', (socket: Socket) => {
      socket.on('error', () => undefined);
      if (!this.#open(socket))
        this.#end(socket, 503, { headers: 'Retry-After: 5\r\n', lingerMs: LINGER_REFUSED_MS });
    });
    server.on('connect', (_request, socket) => this.#end(socket, 405));
    server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
      // Nothing may be written into the middle of a response.
      if (code === 'ECONNRESET' || this.#isAnswering(socket)) socket.destroy();
      else this.#end(socket, CLIENT_ERROR_STATUS[code] ?? 400);
    });
  }

  /** Resolves with true when it is this request's turn; with false when its client has gone. */
  async turn(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    // Requests after the last answer must not delay the end of the connection.
    if (!connection || !socket.writable) return false;
    if (connection.open >= MAX_AHEAD) {
      this.#leave(connection);
      return false;
    }
    connection.open += 1;
    this.#late.clear(connection);
    const { before } = connection;
    connection.before = new Promise<void>((resolve) =>
      response.once('close', () => {
        connection.open -= 1;
        this.#rest(connection);
        resolve();
      }),
    );
    await before;
    connection.request = request;
    connection.answer = response;
    return !socket.destroyed;
  }

  /**
   * Marks a request as being served until its response is finished. `known`: its client is authenticated,
   * and its connection is never closed to make room. `stranger`: an unknown client; its connection is
   * closed only when no idle one can be.
   */
  serve({ socket }: IncomingMessage, who: 'known' | 'stranger'): void {
    const connection = this.#connections.get(socket);
    if (!connection || connection.state === 'served-known') return;
    this.#move(connection, who === 'known' ? 'served-known' : 'served-stranger');
  }

  /** Whether an answer is under way. */
  #isAnswering(socket: Duplex): boolean {
    const { open = 0, answer } = this.#connections.get(socket) ?? {};
    return open > 0 && answer?.headersSent === true;
  }

  /** False when there is no room because every connection is being served. */
  #open(socket: Socket): boolean {
    const { isTrustedProxy, maxConnections, maxPerAddress } = this.#options;
    const { remoteAddress = '' } = socket;
    const address = addressKey(remoteAddress);
    const own = this.#perAddress.get(address) ?? new ClientConnections();
    const limit = isTrustedProxy?.(remoteAddress) === true ? Infinity : maxPerAddress;
    const hasRoom =
      this.#makeRoom(own, limit, remoteAddress) && this.#makeRoom(this.#all, maxConnections, remoteAddress);
    if (!hasRoom) return false;
    const connection = new Connection(socket, address);
    this.#connections.set(socket, connection);
    this.#perAddress.set(address, own);
    for (const client of this.#clients(connection)) client.add(connection);
    socket.once('close', () => this.#leave(connection));
    this.#lingerOn(connection);
    this.#late.set(connection, this.#options.headMs, () => this.#end(socket, 408));
    return true;
  }

  /**
   * Node closes a connection as soon as the last answer is written. A client that is still sending an
   * unwanted body would often miss the answer, and a hostile one would reconnect at once; so the socket
   * stays open for a while.
   */
  #lingerOn(connection: Connection): void {
    const { socket } = connection;
    const close = socket.destroySoon.bind(socket);
    socket.destroySoon = () => {
      if (connection.request?.complete !== false) return close();
      socket.end();
      this.#late.set(connection, LINGER_UNREAD_MS, () => socket.destroy());
    };
  }

  #makeRoom(client: ClientConnections, max: number, remoteAddress: string): boolean {
    if (client.size < max) return true;
    this.#options.onCrowded?.(remoteAddress);
    const { first } = client;
    if (first) this.#leave(first);
    return first !== undefined;
  }

  #rest(connection: Connection): void {
    if (connection.state !== 'idle' && this.#connections.has(connection.socket))
      this.#move(connection, 'idle');
  }

  #move(connection: Connection, state: Connection['state']): void {
    const clients = this.#clients(connection);
    for (const client of clients) client.remove(connection);
    connection.state = state;
    connection.isKnown ||= state === 'served-known';
    for (const client of clients) client.add(connection);
  }

  #leave(connection: Connection): void {
    if (!this.#connections.delete(connection.socket)) return;
    this.#late.clear(connection);
    for (const client of this.#clients(connection)) client.remove(connection);
    if (this.#perAddress.get(connection.address)?.size === 0) this.#perAddress.delete(connection.address);
    connection.socket.destroy();
  }

  #clients({ address }: Connection): readonly ClientConnections[] {
    const own = this.#perAddress.get(address);
    return own ? [this.#all, own] : [this.#all];
  }

  #end(socket: Duplex, status: number, { headers = '', lingerMs = LINGER_MS } = {}): void {
    if (!socket.writable) return void socket.destroy();
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers}Connection: close\r\nContent-Length: 0\r\n\r\n`,
    );
    socket.once(
      'close',
      this.#options.clock.after(lingerMs, () => socket.destroy()),
    );
  }
}
