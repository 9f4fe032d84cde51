/**
 * One HTTP generation: a hapi server built from all ledgers, which never listens itself. hapi cannot remove
 * a route, so every change of the plugin set builds a new generation next to the current one, and the
 * listener switches to it.
 */
import { EventEmitter } from 'node:events';
import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Lifecycle, Request, ResponseObject, ResponseToolkit, Server, ServerRealm } from '@hapi/hapi';
import type { RequestClient } from '../contract/http.ts';
import type { Clock, Logger } from '../contract/platform.ts';
import { actAs } from '../plugins/instance/acting-plugin.ts';
import { placeIn } from '../plugins/instance/ledger.ts';
import type { Ledger } from '../plugins/instance/ledger.ts';
import { timeBox, timeBoxOr } from '../platform/deadline.ts';
import { messageOf } from '../platform/log/thrown.ts';
import { isFromCommandSocket } from '../sdk/http/command-connections.ts';
import { StallWatch } from '../sdk/stall-watch.ts';
import { actingServer } from './acting-server.ts';
import { confined } from './confined.ts';
import { createDrain } from './drain.ts';
import type { RequestEvent } from './listener.ts';
import { answerFor } from './third-party-routes.ts';
import { withProperErrors } from './proper-errors.ts';
import { watchedServer, watchValidation } from './watched-server.ts';
import { reportAnswers } from './requests.ts';
import type { Answered } from './requests.ts';

declare module '@hapi/hapi' {
  interface ServerApplicationState {
    /** Aborted when the generation is replaced: event streams end then. */
    endOfGeneration: AbortSignal;
    clock: Clock;
  }
}

const BUILD_TIMEOUT_MS = 5_000;
const STOP_TIMEOUT_MS = 5_000;
const MAX_BODY_BYTES = 1024 * 1024;
const THIRD_PARTY_ROUTE_MS = 30_000;

export interface Generation {
  readonly inFlight: number;
  /** Names of its authentication plugins. */
  readonly guards: readonly string[];
  /** Name of an enabled authentication plugin that is not active: nobody may come in. */
  closedBy(): string | undefined;
  dispatch(event: RequestEvent, req: IncomingMessage, res: ServerResponse): void;
  socketClosed(socket: Socket): void;
  /** Ends the event streams, waits at most `timeoutMs` for requests in flight and stops the server. */
  retire(timeoutMs: number): Promise<void>;
}

export interface GenerationOptions {
  readonly ledgers: readonly Ledger[];
  readonly isActive: (plugin: string) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** The client of a request: `request.client` of the routes and extensions. */
  readonly clientOf: (req: IncomingMessage) => RequestClient;
  /** Names of the authentication plugins of the generation in force; by default those of this one. */
  readonly guardsNow?: () => readonly string[];
  /** How long a third party's route may take to begin its answer, in milliseconds; default 30 s. */
  readonly routeMs?: number;
  /** Called for each request that changes something or was refused, once it is answered. */
  readonly answered?: Answered;
  /** Default: one of its own. */
  readonly stalls?: StallWatch;
}

type RoutingOptions = GenerationOptions & { readonly routeMs: number; readonly stalls: StallWatch };

/** Given to hapi in place of a listener; never listens. */
class Facade extends EventEmitter {
  constructor() {
    super();
    this.setMaxListeners(0);
  }

  close(done?: () => void): this {
    queueMicrotask(() => done?.());
    return this;
  }

  address(): null {
    return null;
  }
}

/** hapi is read when the first one is built: shares are being mounted by then. */
async function createServer(facade: Facade): Promise<Server> {
  const { server } = await import('@hapi/hapi');
  return server({
    listener: facade as unknown as HttpServer,
    autoListen: false,
    // Without this, stop() throws on a server that never listened, and throws again from a timer.
    operations: { cleanStop: false },
    compression: false,
    debug: false,
    routes: {
      payload: { maxBytes: MAX_BODY_BYTES },
      response: { ranges: false },
      cache: { otherwise: 'no-store' },
    },
  });
}

/** The plugin that a route belongs to, also for routes of native hapi plugins inside it. */
function ownerOf(realm: ServerRealm, root: ServerRealm): string | undefined {
  let owner: string | undefined;
  for (let at: ServerRealm | null = realm; at !== null && at !== root; at = at.parent ?? null)
    owner = at.plugin;
  return owner;
}

function unavailable(message: string, h: ResponseToolkit): ResponseObject {
  return h
    .response({ statusCode: 503, error: 'Service Unavailable', message })
    .code(503)
    .header('retry-after', '1')
    .takeover();
}

function refuseWhileInactive(server: Server, isActive: (plugin: string) => boolean): void {
  const owners = new WeakMap<ServerRealm, string | undefined>();
  const method: Lifecycle.Method = (request, h) => {
    const { realm } = request.route;
    if (!owners.has(realm)) owners.set(realm, ownerOf(realm, server.realm));
    const owner = owners.get(realm);
    if (owner === undefined || isActive(owner)) return h.continue;
    return unavailable(`The plugin "${owner}" is just starting. Try again in a moment.`, h);
  };
  server.ext('onPreAuth', method);
}

/** A request that came before an authentication plugin did was asked by nobody; its body may have come since. */
function refuseOnceGuarded(server: Server, own: readonly string[], guardsNow: () => readonly string[]): void {
  server.ext('onPostAuth', (request, h) => {
    const guard = guardsNow().find((name) => !own.includes(name));
    if (guard === undefined || isFromCommandSocket(request.raw.req)) return h.continue;
    return unavailable(`The plugin "${guard}" was switched on meanwhile. Send the request again.`, h);
  });
}

function reportErrors(server: Server, log: Logger): void {
  const describe = (request: Request): object => ({
    method: request.method,
    path: request.path,
    plugin: ownerOf(request.route.realm, server.realm),
  });
  server.events.on({ name: 'request', channels: ['error'] }, (request, event) => {
    log.error({ ...describe(request), err: event.error }, 'a route failed');
  });
  server.events.on({ name: 'log', channels: ['internal'] }, (event) => {
    if (event.error) log.warn({ tags: event.tags, err: event.error }, 'the web server reported a problem');
  });
}

/** Authentication plugins first, so that their extensions see a request before those of all others. */
function inOrder(ledgers: readonly Ledger[]): readonly Ledger[] {
  return [...ledgers].sort((a, b) => Number(b.guard) - Number(a.guard) || (a.plugin < b.plugin ? -1 : 1));
}

/** Wraps the handlers of all plugins' routes, also of routes that their native hapi plugins have added. */
function watchHandlers(
  server: Server,
  stalls: StallWatch,
  ledgerOf: (plugin: string) => Ledger | undefined,
): void {
  for (const route of server.table()) {
    const ledger = ledgerOf(ownerOf(route.realm, server.realm) ?? '');
    const settings = route.settings as { handler?: unknown };
    const { handler } = settings;
    if (!ledger || typeof handler !== 'function') continue;
    const place = placeIn(ledger, `route ${route.method.toUpperCase()} ${route.path}`);
    const { actor } = ledger;
    watchValidation(route, place, stalls);
    settings.handler = function timed(this: unknown, ...args: readonly unknown[]): unknown {
      const handle = (): unknown => actAs(actor, () => handler.apply(this, args) as unknown);
      return withProperErrors(() => stalls.call(place, handle));
    };
  }
}

/** Whoever decides about every request inside the daemon cannot be confined to its own. */
function isConfined({ routePrefix, guard }: Ledger): boolean {
  return routePrefix !== '' && !guard;
}

async function registerLedger(
  server: Server,
  ledger: Ledger,
  { clock, routeMs, stalls }: RoutingOptions,
): Promise<void> {
  if (ledger.routes.length === 0 && ledger.hapi.length === 0) return;
  const { plugin: name, routePrefix: prefix } = ledger;
  const owns = ({ route }: Request): boolean => ownerOf(route.realm, server.realm) === name;
  const limits = { plugin: name, prefix, owns, timeoutMs: routeMs, clock };
  await server.register({
    name,
    register: async (given: Server) => {
      const watched = watchedServer(given, { stalls, place: (at) => placeIn(ledger, at) });
      const own = ledger.actor ? actingServer(watched, ledger.actor) : watched;
      for (const { plugin, options } of ledger.hapi) {
        const native = isConfined(ledger) ? confined(plugin, limits) : plugin;
        const routes = prefix === '' ? undefined : { prefix };
        await own.register({ plugin: native, options: options as object }, { routes });
      }
      own.route([...ledger.routes]);
    },
  });
}

async function assemble(server: Server, options: RoutingOptions): Promise<void> {
  for (const ledger of inOrder(options.ledgers)) {
    // The web server checks each route's options, which takes milliseconds: the generation in force answers meanwhile.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      const registering = actAs(ledger.actor, () => registerLedger(server, ledger, options));
      await inTime(registering, options.clock);
    } catch (error) {
      throw new Error(`routes of plugin ${ledger.plugin}: ${messageOf(error)}`, { cause: undefined });
    }
  }
  const { ledgers, log, clock, routeMs, stalls } = options;
  const byName = new Map(ledgers.map((ledger) => [ledger.plugin, ledger]));
  watchHandlers(server, stalls, (plugin) => byName.get(plugin));
  const thirdParties = new Set(ledgers.flatMap((one) => (one.routePrefix === '' ? [] : one.plugin)));
  const thirdPartyAt = (realm: ServerRealm): string | undefined => {
    const owner = ownerOf(realm, server.realm);
    return owner !== undefined && thirdParties.has(owner) ? owner : undefined;
  };
  answerFor(server, { thirdPartyAt, log, clock, routeMs });
  await inTime(server.start(), options.clock);
}

/**
 * A native hapi plugin may never come back from its registration; the generation in force does not wait for
 * it. Each has its own time: on a busy machine all together may take long, and then a change would be lost.
 */
function inTime(work: Promise<void>, clock: Clock): Promise<void> {
  const sentence = `the routes were not ready within ${BUILD_TIMEOUT_MS / 1000} s`;
  return timeBox(clock, BUILD_TIMEOUT_MS, work, sentence);
}

/** A plugin may have a word when a server stops, too. */
async function stopQuietly(server: Server, { clock, log }: GenerationOptions): Promise<void> {
  try {
    await timeBox(clock, STOP_TIMEOUT_MS, server.stop());
  } catch (err) {
    log.warn({ err }, 'an HTTP generation did not stop cleanly');
  }
}

export async function buildGeneration(options: GenerationOptions): Promise<Generation> {
  const { clock, log, isActive } = options;
  const facade = new Facade();
  const server = await createServer(facade);
  const end = new AbortController();
  server.app.endOfGeneration = end.signal;
  server.app.clock = clock;
  server.decorate('request', 'client', (request) => options.clientOf(request.raw.req), { apply: true });
  const { answered } = options;
  if (answered) reportAnswers(server, { answered, log, addressOf: (req) => options.clientOf(req).address });
  const guards = options.ledgers.filter((ledger) => ledger.guard).map((ledger) => ledger.plugin);
  refuseWhileInactive(server, isActive);
  refuseOnceGuarded(server, guards, options.guardsNow ?? (() => guards));
  reportErrors(server, log);
  try {
    await assemble(server, { routeMs: THIRD_PARTY_ROUTE_MS, stalls: new StallWatch(options), ...options });
  } catch (error) {
    await stopQuietly(server, options);
    throw error;
  }
  const drain = createDrain();
  return {
    get inFlight() {
      return drain.inFlight;
    },
    guards,
    closedBy: () => guards.find((plugin) => !isActive(plugin)),
    dispatch(event, req, res) {
      drain.enter(req.socket, res);
      facade.emit(event, req, res);
    },
    socketClosed: (socket) => drain.socketClosed(socket),
    async retire(timeoutMs) {
      end.abort();
      await timeBoxOr(clock, timeoutMs, drain.idle(), () => drain.destroy());
      await stopQuietly(server, options);
    },
  };
}
