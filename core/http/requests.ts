/**
 * Who asks for what: an account of each request that changes something or was refused, and, for whatever such a
 * request brings about, across all awaits, who sent it.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Request, Server } from '@hapi/hapi';
import type { AnsweredRequest, NamedPrincipal, Requester, RequestOrigin } from '../contract/http.ts';
import type { Logger } from '../contract/platform.ts';
import { isFromCommandSocket } from '../sdk/http/command-connections.ts';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Refused: by who asks, from where, for which name of this server, or too often. */
const REFUSED = new Set([401, 403, 421, 429]);
const LONGEST_TEXT = 200;
const MOST_PARAMS = 20;

export type Answered = (request: AnsweredRequest) => void;
export type AddressOf = (req: IncomingMessage) => string;

interface Asked {
  readonly id: string;
  readonly from: RequestOrigin;
  /** While it is not over: what a request left behind, such as a timer, does not keep its body in memory. */
  request?: Request | undefined;
  isOver: boolean;
}

const current = new AsyncLocalStorage<Asked>();
const known = new WeakMap<IncomingMessage, Asked>();

/** Whose request the running code works for. Undefined outside requests, for reading ones, and once it is answered. */
export function requesterNow(): Requester | undefined {
  const asked = current.getStore();
  return asked === undefined || asked.isOver ? undefined : requesterOf(asked);
}

/** Serves a request; what that brings about knows its requester. */
export function serveFor(req: IncomingMessage, addressOf: AddressOf, serve: () => void): void {
  if (!isChanging(req.method ?? '')) return serve();
  current.run(askedIn(req, addressOf), serve);
}

export interface ReportOptions {
  readonly addressOf: AddressOf;
  readonly answered: Answered;
  readonly log: Logger;
}

/** Tells of each request of this server that changed something or was refused, once it is answered. */
export function reportAnswers(server: Server, { addressOf, answered, log }: ReportOptions): void {
  server.ext('onRequest', (request, h) => {
    const asked = known.get(request.raw.req);
    if (asked) asked.request = request;
    return h.continue;
  });
  server.events.on('response', (request) => {
    try {
      const status = statusOf(request);
      if (isChanging(request.method) || isRefused(status, request))
        answered(accountOf(request, status, addressOf));
    } catch (err) {
      // The web server waits for nobody here: an error would be nobody's.
      log.error({ err, path: request.path }, 'a request could not be told of');
    }
    const asked = known.get(request.raw.req);
    if (asked) Object.assign(asked, { isOver: true, request: undefined });
  });
}

/** A request that the core refused before any route. */
export function refusedRequest(
  req: IncomingMessage,
  status: number,
  addressOf: AddressOf,
): AnsweredRequest | undefined {
  if (!isChanging(req.method ?? '') && !isRefused(status)) return undefined;
  return Object.freeze({
    ...requesterOf(askedIn(req, addressOf)),
    method: req.method ?? '',
    route: undefined,
    path: cut((req.url ?? '').replace(/[?#].*/s, '')),
    params: {},
    about: {},
    status,
    isDone: false,
    isRefused: isRefused(status),
    isQuestion: false,
    hasAuthorization: req.headers.authorization !== undefined,
  });
}

function askedIn(req: IncomingMessage, addressOf: AddressOf): Asked {
  const asked = known.get(req) ?? {
    id: randomBytes(6).toString('hex'),
    from: originOf(req, addressOf),
    isOver: false,
  };
  known.set(req, asked);
  return asked;
}

function originOf(req: IncomingMessage, addressOf: AddressOf): RequestOrigin {
  if (!isFromCommandSocket(req)) return { address: addressOf(req) };
  return { users: [...new Set([0, process.geteuid?.() ?? 0])] };
}

function requesterOf({ id, from, request }: Asked): Requester {
  const principal = namedIn(request?.auth?.credentials);
  return Object.freeze({ id, from, ...(principal && { principal }) });
}

/** What a plugin that authenticates has found; undefined where none has. */
function namedIn(credentials: unknown): NamedPrincipal | undefined {
  if (typeof credentials !== 'object' || credentials === null) return undefined;
  const { name, kind, role } = credentials as Record<string, unknown>;
  if (typeof name !== 'string') return undefined;
  return {
    name: cut(name),
    ...(typeof kind === 'string' && { kind: cut(kind) }),
    ...(typeof role === 'string' && { role: cut(role) }),
  };
}

function isChanging(method: string): boolean {
  return !SAFE_METHODS.has(method.toUpperCase());
}

/** `app`: a plugin may answer as if what is asked for were not there. */
function isRefused(status: number | undefined, { app }: Pick<Request, 'app'> = { app: {} }): boolean {
  return REFUSED.has(status ?? 0) || app.isRefused === true;
}

/** Undefined when the client was gone before. */
function statusOf({ response, raw }: Request): number | undefined {
  // What has answered by itself, as the status does, leaves no response but a symbol.
  if (typeof response !== 'object') return raw.res.headersSent ? raw.res.statusCode : undefined;
  if ('isBoom' in response) return response.output.statusCode;
  return typeof response.statusCode === 'number' ? response.statusCode : undefined;
}

function accountOf(request: Request, status: number | undefined, addressOf: AddressOf): AnsweredRequest {
  const route = routeOf(request);
  const { about = {} } = request.app;
  return Object.freeze({
    ...requesterOf({ ...askedIn(request.raw.req, addressOf), request }),
    method: request.method.toUpperCase(),
    route: route?.path,
    path: cut(request.path),
    // None yet where it was refused before its route was looked for.
    params: texts((request.params as Request['params'] | null) ?? {}),
    about: texts(about),
    status,
    isDone: status !== undefined && status < 400 && !saysNotDone(request),
    isRefused: isRefused(status, request),
    isQuestion: request.app.isQuestion === true || isQuestionOf(route),
    hasAuthorization: request.headers['authorization'] !== undefined || request.app.hasCredentials === true,
  });
}

/** Also of a request that was refused before its route was looked for. */
function routeOf(request: Request): Request['route'] | null {
  if ((request.route.method as string) !== '_special') return request.route;
  try {
    return request.server.match(request.method as 'post', request.path) as Request['route'] | null;
  } catch {
    // A path that no route can have.
    return null;
  }
}

function isQuestionOf(route: Request['route'] | null): boolean {
  return route?.settings.plugins?.documented?.().isQuestion === true;
}

/** By the route, or by an answer of the API: `{ ok: false, message }`, with any status. */
function saysNotDone({ app, response }: Request): boolean {
  if (app.isDone === false) return true;
  const source = typeof response === 'object' && 'source' in response ? response.source : undefined;
  return typeof source === 'object' && source !== null && (source as { ok?: unknown }).ok === false;
}

function texts(given: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.freeze(
    Object.fromEntries(
      Object.entries(given)
        .slice(0, MOST_PARAMS)
        .map(([key, value]) => [cut(key), cut(String(value))]),
    ),
  );
}

function cut(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}…`;
}
