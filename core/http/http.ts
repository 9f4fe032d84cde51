/**
 * The web server: one listener, the request guard in front of it, and the current generation behind it. For
 * the plugin host it is a projector: when ledgers change, it builds a new generation and swaps it in.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KeyPair, RequestClient } from '../contract/http.ts';
import type { Clock, Logger } from '../contract/platform.ts';
import type { Projector } from '../plugins/instance/ledger.ts';
import type { Address } from '../sdk/http/address.ts';
import { isFromCommandSocket } from '../sdk/http/command-connections.ts';
import type { StallWatch } from '../sdk/stall-watch.ts';
import { isEncrypted } from '../sdk/http/secure-server.ts';
import { addSecurityHeaders, answerHealth, answerProblem } from './answer.ts';
import { buildGeneration } from './generation.ts';
import type { Generation } from './generation.ts';
import { openCommandSocket } from './command-socket.ts';
import { createListener, DEFAULT_LIMITS } from './listener.ts';
import type { Listener, ListenerLimits, ListenerOptions, RequestEvent } from './listener.ts';
import { refusalOf } from './request-guard.ts';
import { refusedRequest, serveFor } from './requests.ts';
import type { Answered } from './requests.ts';

export interface HttpOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Host names that are accepted besides localhost and addresses. Called at every request. */
  readonly hostnames: () => readonly string[];
  /** Addresses and ranges of trusted proxies; none by default. Called at every request. */
  readonly trustedProxies?: () => readonly string[];
  /** The user of processes of plugins, by its number; default none. Called for each connection that is asked about. */
  readonly pluginsUser?: () => Promise<number | undefined>;
  /** True: answers over TLS tell browsers to come by TLS alone for a year. Called at every request. */
  readonly hsts?: () => boolean;
  /**
   * Why nobody may come in, such as an authentication plugin that failed; undefined when requests are
   * served. Called at every request.
   */
  readonly guardState?: () => string | undefined;
  readonly limits?: Partial<ListenerLimits>;
  /** How long a replaced generation may take to finish its requests. */
  readonly retireTimeoutMs?: number;
  /** How long a third party's route may take, in milliseconds; default 30 s. */
  readonly routeMs?: number;
  /** Called for each request that changes something or was refused, once it is answered. */
  readonly answered?: Answered;
  /** Default: one of its own. */
  readonly stalls?: StallWatch;
}

export interface HttpStats {
  /** The current one and those that still finish requests. */
  readonly generations: number;
  readonly inFlight: number;
  readonly sockets: number;
}

export interface Http {
  readonly projector: Projector;
  readonly address: Address | undefined;
  /**
   * Listens on the new address before the old one is closed; with a certificate by TLS alone. Rejects with a
   * plain sentence and keeps the old one, unless that is the same port without TLS.
   */
  listen(address: Address, certificate?: KeyPair): Promise<void>;
  /** Listens no more, unless by TLS; the command socket goes on. */
  closePlain(): Promise<void>;
  /** Opens the command socket in the state folder, in addition to the address. */
  listenForCommands(stateDir: string): Promise<void>;
  close(): Promise<void>;
  stats(): HttpStats;
}

const RETIRE_TIMEOUT_MS = 60_000;
const CLOSE_TIMEOUT_MS = 5_000;
const NO_PROXIES: readonly string[] = [];

export function createHttp(options: HttpOptions): Http {
  return new HttpServer(options);
}

class HttpServer implements Http {
  readonly projector: Projector;
  readonly #options: HttpOptions;
  readonly #listener: Listener;
  readonly #live = new Set<Generation>();
  /** Callbacks and limits that both listeners share. */
  readonly #reception: Pick<ListenerOptions, 'clock' | 'limits' | 'onRequest' | 'onSocketClosed'>;
  #current: Generation | undefined;
  #closeCommandSocket: (() => Promise<void>) | undefined;

  constructor(options: HttpOptions) {
    const { clock, log } = options;
    this.#options = options;
    this.#reception = {
      clock,
      limits: { ...DEFAULT_LIMITS, ...options.limits },
      onRequest: (event, req, res) => this.#onRequest(event, req, res),
      onSocketClosed: (socket) => {
        for (const generation of this.#live) generation.socketClosed(socket);
      },
    };
    const trustedProxies = options.trustedProxies ?? (() => NO_PROXIES);
    const pluginsUser = options.pluginsUser ?? (async () => undefined);
    this.#listener = createListener({ ...this.#reception, log, trustedProxies, pluginsUser });
    this.projector = {
      name: 'http',
      build: async (ledgers, isActive) => {
        const clientOf = (req: IncomingMessage): RequestClient => this.#listener.clientOf(req);
        const { routeMs, answered, stalls } = options;
        const generation = await buildGeneration({
          ledgers,
          isActive,
          clock,
          log,
          clientOf,
          guardsNow: () => this.#current?.guards ?? [],
          ...(answered && { answered }),
          ...(stalls && { stalls }),
          ...(routeMs !== undefined && { routeMs }),
        });
        return { commit: () => this.#commit(generation), discard: () => generation.retire(0) };
      },
    };
  }

  get address(): Address | undefined {
    return this.#listener.address;
  }

  listen(address: Address, certificate?: KeyPair): Promise<void> {
    return this.#listener.listen(address, certificate);
  }

  closePlain(): Promise<void> {
    return this.#listener.closePlain();
  }

  async listenForCommands(stateDir: string): Promise<void> {
    this.#closeCommandSocket = await openCommandSocket({
      ...this.#reception,
      log: this.#options.log,
      stateDir,
    });
  }

  async close(): Promise<void> {
    this.#current = undefined;
    await Promise.all([
      this.#listener.close(),
      this.#closeCommandSocket?.(),
      ...[...this.#live].map((generation) => this.#retire(generation, CLOSE_TIMEOUT_MS)),
    ]);
  }

  stats(): HttpStats {
    return {
      generations: this.#live.size,
      inFlight: [...this.#live].reduce((sum, generation) => sum + generation.inFlight, 0),
      sockets: this.#listener.sockets,
    };
  }

  #onRequest(event: RequestEvent, req: IncomingMessage, res: ServerResponse): void {
    addSecurityHeaders(res, isEncrypted(req) && this.#options.hsts?.() === true);
    if (req.url === '/healthz' && (req.method === 'GET' || req.method === 'HEAD'))
      return answerHealth(req, res);
    const refusal = refusalOf(req, this.#names());
    if (refusal) {
      const { address } = this.#listener.clientOf(req);
      const { host, origin } = req.headers;
      this.#options.log.debug({ address, status: refusal.status, host, origin }, 'request refused');
      const refused = refusedRequest(req, refusal.status, this.#addressOf);
      if (refused) this.#options.answered?.(refused);
      return answerProblem(req, res, refusal.status, refusal.message);
    }
    const reason = this.#closedReason(isFromCommandSocket(req));
    if (reason !== undefined) return answerProblem(req, res, 503, reason);
    serveFor(req, this.#addressOf, () => this.#current?.dispatch(event, req, res));
  }

  readonly #addressOf = (req: IncomingMessage): string => this.#listener.clientOf(req).address;

  #names(): readonly string[] {
    const bound = this.#listener.address?.host;
    return bound === undefined ? this.#options.hostnames() : [bound, ...this.#options.hostnames()];
  }

  #closedReason(isAdmin: boolean): string | undefined {
    if (this.#current === undefined) return 'The server is just starting. Try again in a moment.';
    // Whoever may open the command socket needs no authentication, and is the one who can repair it.
    if (isAdmin) return undefined;
    const guard = this.#current.closedBy();
    if (guard !== undefined)
      return `Nobody is let in while the plugin "${guard}" is not active. The log says why.`;
    return this.#options.guardState?.();
  }

  #commit(generation: Generation): void {
    const previous = this.#current;
    this.#live.add(generation);
    this.#current = generation;
    if (previous) void this.#retire(previous, this.#options.retireTimeoutMs ?? RETIRE_TIMEOUT_MS);
  }

  /** Not awaited by the swap: the request that caused it may itself be in flight on the old generation. */
  async #retire(generation: Generation, timeoutMs: number): Promise<void> {
    await generation.retire(timeoutMs);
    this.#live.delete(generation);
  }
}
