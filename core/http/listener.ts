/**
 * The daemon's one TCP listener. It survives every HTTP generation and moves between addresses: it listens
 * on the new address before it closes the old one. Limits on times, sizes and numbers of connections are
 * set here.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { KeyPair, RequestClient } from '../contract/http.ts';
import { clientAddress, ConnectionPool, isInClear, SecureServer, trustedProxies } from '../sdk/standalone.ts';
import type { TrustedProxies } from '../sdk/standalone.ts';
import type { Clock, Logger } from '../contract/platform.ts';
import { listenProblem, overlaps, plainHost, sameAddress } from '../sdk/http/address.ts';
import type { Address } from '../sdk/http/address.ts';
import { ownerOf } from './local-owner.ts';
import { createSerialQueue } from '../platform/serial-queue.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const http = process.getBuiltinModule('node:http');

export interface ListenerLimits {
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** For one IPv4 address, or one IPv6 network of 64 bits; not for a trusted proxy. */
  readonly maxPerAddress: number;
  /** A client that reads nothing of its answer for so long is disconnected. */
  readonly idleAnswerMs: number;
  /** How often overdue requests are looked for. */
  readonly checkIntervalMs: number;
  /** How long answers may continue over an address that was closed. */
  readonly letGoMs: number;
}

export const DEFAULT_LIMITS: ListenerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 20_000,
  maxHeaderBytes: 16_384,
  maxConnections: 2_500,
  maxPerAddress: 2_100,
  idleAnswerMs: 300_000,
  checkIntervalMs: 500,
  letGoMs: 10_000,
};

export type RequestEvent = 'request' | 'checkContinue';

export interface ListenerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: ListenerLimits;
  /** Addresses and ranges of the trusted proxies. Called at every request. */
  readonly trustedProxies: () => readonly string[];
  /** The user of processes of plugins; undefined where they have none of their own. */
  readonly pluginsUser: () => Promise<number | undefined>;
  readonly onRequest: (event: RequestEvent, req: IncomingMessage, res: ServerResponse) => void;
  readonly onSocketClosed: (socket: Socket) => void;
}

export interface Listener {
  readonly address: Address | undefined;
  readonly sockets: number;
  /** With a certificate the address speaks TLS alone. A new one holds for the connections that come then. */
  listen(address: Address, certificate?: KeyPair): Promise<void>;
  /** Listens no more, unless by TLS. Requests that have begun are finished. */
  closePlain(): Promise<void>;
  close(): Promise<void>;
  /** The client of a request. */
  clientOf(req: IncomingMessage): RequestClient;
}

/**
 * Length of the accept queue; beyond it the kernel drops connection attempts, which clients repeat after a
 * second.
 */
const MAX_COMING = 4_096;
/** That connections were refused or closed for others is logged at most this often. */
const SAY_CROWDED_EVERY_MS = 60_000;

interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

interface Entrance {
  readonly server: Server;
  /** Responses that are not finished. */
  readonly answers: Set<ServerResponse>;
}

/** One server socket with its open connections. */
interface ListeningSocket extends Entrance {
  readonly asked: Address;
  readonly bound: Address;
  readonly certificate: KeyPair | undefined;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

export function createListener(options: ListenerOptions): Listener {
  return new MovingListener(options);
}

class MovingListener implements Listener {
  readonly #options: ListenerOptions;
  readonly #sockets = new Set<Socket>();
  readonly #ofPlugins = new WeakMap<Socket, Promise<boolean>>();
  readonly #pool: ConnectionPool;
  #proxies: { readonly list: readonly string[]; readonly trusted: TrustedProxies } | undefined;
  #saidCrowdedAt = -Infinity;
  #current: ListeningSocket | undefined;
  readonly #queue = createSerialQueue();

  constructor(options: ListenerOptions) {
    this.#options = options;
    const {
      clock,
      limits: { headersTimeoutMs: headMs, maxConnections, maxPerAddress },
    } = options;
    this.#pool = new ConnectionPool({
      clock,
      headMs,
      maxConnections,
      maxPerAddress,
      isTrustedProxy: (address) => this.#trusted().has(address),
      onCrowded: (address) => this.#sayCrowded(address),
    });
  }

  get address(): Address | undefined {
    return this.#current?.bound;
  }

  get sockets(): number {
    return this.#sockets.size;
  }

  listen(address: Address, certificate?: KeyPair): Promise<void> {
    return this.#queue.run(() => this.#move(address, certificate));
  }

  closePlain(): Promise<void> {
    return this.#queue.run(async () => {
      const plain = this.#current;
      if (!plain || plain.certificate) return;
      this.#current = undefined;
      void this.#letGo(plain);
      const { host, port } = plain.bound;
      this.#options.log.warn({ host, port }, 'plain HTTP ends, since TLS is wanted');
    });
  }

  close(): Promise<void> {
    return this.#queue.run(async () => {
      const last = this.#current;
      this.#current = undefined;
      if (last) await this.#letGo(last);
    });
  }

  clientOf(req: IncomingMessage): RequestClient {
    const { remoteAddress = '' } = req.socket;
    return {
      address: clientAddress(remoteAddress, req.headers, this.#trusted()),
      isInClear: isInClear(req, this.#trusted()),
      markKnown: () => this.#pool.serve(req, 'known'),
      mayBePlugin: () => this.#mayBePlugin(req.socket),
    };
  }

  /** Asked once for each connection: a socket stays whose it was made. */
  #mayBePlugin(socket: Socket): Promise<boolean> {
    const known = this.#ofPlugins.get(socket);
    if (known) return known;
    const asked = this.#options.pluginsUser().then(async (user) => {
      if (user === undefined) return false;
      const owner = await ownerOf(socket);
      return owner === undefined || owner === user;
    });
    this.#ofPlugins.set(socket, asked);
    return asked;
  }

  #trusted(): TrustedProxies {
    const list = this.#options.trustedProxies();
    if (this.#proxies?.list !== list) this.#proxies = { list, trusted: trustedProxies(list) };
    return this.#proxies.trusted;
  }

  #sayCrowded(address: string): void {
    const {
      clock,
      limits: { maxConnections, maxPerAddress },
      log,
    } = this.#options;
    if (clock.monotonic() - this.#saidCrowdedAt < SAY_CROWDED_EVERY_MS) return;
    this.#saidCrowdedAt = clock.monotonic();
    const message = 'too many connections to the web server; the longest idle make way';
    log.warn({ address, maxConnections, maxPerAddress }, message);
  }

  async #move(address: Address, certificate: KeyPair | undefined): Promise<void> {
    const previous = this.#current;
    const isSame = previous && (sameAddress(previous.asked, address) || sameAddress(previous.bound, address));
    if (isSame && this.#isServing(previous, certificate)) return;
    if (isSame) {
      this.#current = await this.#replace(previous, previous.bound, certificate);
    } else if (previous && overlaps(previous.bound, address)) {
      this.#current = await this.#replace(previous, address, certificate);
    } else {
      this.#current = await this.#open(address, certificate);
      if (previous) void this.#letGo(previous);
    }
    const { host, port } = this.#current.bound;
    this.#options.log.info({ host, port, tls: certificate !== undefined }, 'web server listens');
  }

  /** True when the open socket can go on: as it is, or with another certificate. */
  #isServing(socket: ListeningSocket, certificate: KeyPair | undefined): boolean {
    const { server } = socket;
    if (!certificate || !(server instanceof SecureServer))
      return certificate === undefined && !(server instanceof SecureServer);
    if (certificate !== socket.certificate) server.setCertificate(certificate);
    this.#current = { ...socket, certificate };
    return true;
  }

  /**
   * From one address of a port to all addresses, or back, or between TLS and none: the kernel does not allow
   * both at once, so the old one is closed first. It is opened again when that fails; but no plain one where TLS is
   * wanted.
   */
  async #replace(
    previous: ListeningSocket,
    address: Address,
    certificate: KeyPair | undefined,
  ): Promise<ListeningSocket> {
    void this.#letGo(previous);
    try {
      return await this.#open(address, certificate);
    } catch (error) {
      this.#current = undefined;
      if (previous.certificate || !certificate)
        this.#current = await this.#open(previous.bound, previous.certificate);
      throw error;
    }
  }

  #open(asked: Address, certificate: KeyPair | undefined): Promise<ListeningSocket> {
    const answers = new Set<ServerResponse>();
    const server = this.#createServer(answers, certificate);
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        server.close();
        reject(new Error(listenProblem(error, asked), { cause: error }));
      };
      server.once('error', fail);
      server.listen({ host: plainHost(asked.host), port: asked.port, backlog: MAX_COMING }, () => {
        server.off('error', fail);
        server.on('error', (err) => this.#options.log.error({ err }, 'the web listener reported an error'));
        const bound = server.address() as AddressInfo;
        const { port } = bound;
        resolve({ server, answers, asked, bound: { host: plainHost(asked.host), port }, certificate });
      });
    });
  }

  #createServer(answers: Set<ServerResponse>, certificate: KeyPair | undefined): Server {
    const { limits } = this.#options;
    const options = {
      // The connection pool times out new connections; this is for the heads of later requests.
      headersTimeout: limits.requestTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      maxHeaderSize: limits.maxHeaderBytes,
      connectionsCheckingInterval: limits.checkIntervalMs,
    };
    const server = certificate ? new SecureServer(options, certificate) : new http.Server(options);
    this.#pool.attach(server);
    server.on('connection', (socket: Socket) => this.#track(socket, answers));
    for (const event of ['request', 'checkContinue'] as const) {
      server.on(event, (req, res) => void this.#accept(event, { server, answers }, { req, res }));
    }
    return server;
  }

  #track(socket: Socket, answers: Set<ServerResponse>): void {
    this.#sockets.add(socket);
    socket.once('close', () => {
      // A response that still waits for its turn is never closed when its connection dies.
      for (const res of answers) if (res.req.socket === socket) answers.delete(res);
      this.#sockets.delete(socket);
      this.#options.onSocketClosed(socket);
    });
  }

  async #accept(event: RequestEvent, entrance: Entrance, { req, res }: Exchange): Promise<void> {
    const { server, answers } = entrance;
    // A request that was read before its connection was closed has nobody to answer.
    if (req.socket.destroyed) return;
    answers.add(res);
    res.once('close', () => {
      answers.delete(res);
      if (!server.listening) setImmediate(() => server.closeIdleConnections());
    });
    if (!server.listening) res.shouldKeepAlive = false;
    res.setTimeout(this.#options.limits.idleAnswerMs, () => req.socket.destroy());
    if (!(await this.#pool.turn(req, res))) return;
    // A client that is still sending a body does not count as served yet.
    if (!hasBody(req)) this.#pool.serve(req, 'stranger');
    this.#options.onRequest(event, req, res);
  }

  /** Stops accepting at once; resolves when the last connection is closed, after `letGoMs` at the latest. */
  #letGo({ server, answers }: ListeningSocket): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(this.#options.limits.letGoMs, () =>
        server.closeAllConnections(),
      );
      // Requests that have begun are finished, and no more come over their connections.
      for (const res of answers) if (!res.headersSent) res.shouldKeepAlive = false;
      server.close(() => {
        cancel();
        resolve();
      });
      server.closeIdleConnections();
    });
  }
}
