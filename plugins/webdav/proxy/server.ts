import { once } from 'node:events';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { ConnectionPool, SecureServer } from 'mountkeeper/sdk';
import type { ConnectionPoolOptions } from 'mountkeeper/sdk';
import { answer } from './answer.ts';
import type { Refusal } from './answer.ts';
import type { Authenticator } from './authenticator.ts';
import { clock } from './clock.ts';
import { backendPath, Refused } from './exchange.ts';
import { NOT_HERE, NOT_MOUNTED, Unavailable } from './upstream.ts';
import type { Upstream } from './upstream.ts';
import { hasTrailingSlash, parsePath } from './requests/path.ts';
import { serveRoot } from './requests/share-list.ts';
import { isWriting, METHODS, serve } from './requests/share-request.ts';
import type { ShareTools } from './requests/share-request.ts';
import type { UserName, Visitors } from './visitors.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { createServer } = process.getBuiltinModule('node:http');

const HEAD_MS = 20_000;
/** For a connection that has already sent requests. */
const LATER_HEAD_MS = 60_000;
const LOOK_FOR_LATE_MS = 500;
/**
 * A connection takes about 12 kB. Beyond the limit per address each new connection closes another one,
 * which costs more than keeping it.
 */
const LIMITS: ProxyLimits = { maxConnections: 2_500, maxPerAddress: 2_100 };
const KEEP_ALIVE_MS = 65_000;
const MAX_HEAD_BYTES = 32_768;

export type ProxyLimits = Pick<ConnectionPoolOptions, 'maxConnections' | 'maxPerAddress'>;

export interface ProxyServerOptions {
  readonly limits?: ProxyLimits | undefined;
  /** True: TLS is spoken, and nothing else, once there is a certificate. */
  readonly isSecure?: boolean;
}

export interface ProxyTools {
  readonly authenticator: Authenticator;
  readonly visitors: Visitors;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly put: ShareTools;
  /** Whether the daemon itself asks. */
  readonly isOwn: (request: IncomingMessage) => boolean;
  readonly log: (sentence: string) => void;
}

/** The server for clients. */
export function createProxy(
  tools: ProxyTools,
  { limits = LIMITS, isSecure = false }: ProxyServerOptions,
): Server {
  const connections = new ConnectionPool({
    clock,
    headMs: HEAD_MS,
    ...limits,
    isTrustedProxy: (address) => tools.authenticator.isTrustedProxy(address),
  });
  // A transfer may take days; only the head of a request has a time limit.
  const options: ServerOptions = {
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: LATER_HEAD_MS,
    connectionsCheckingInterval: LOOK_FOR_LATE_MS,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAlive: true,
    noDelay: true,
  };
  const server = isSecure ? new SecureServer(options) : createServer(options);
  const take =
    (expectsContinue: boolean) =>
    (request: IncomingMessage, response: ServerResponse): void =>
      void handle(request, response, { ...tools, connections, expectsContinue });
  connections.attach(server);
  server.on('request', take(false));
  server.on('checkContinue', take(true));
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    answer(request, response, { status: 417, text: 'This cannot be expected here.' }),
  );
  return server;
}

interface HandleTools extends ProxyTools {
  readonly connections: ConnectionPool;
  readonly expectsContinue: boolean;
}

async function handle(request: IncomingMessage, response: ServerResponse, tools: HandleTools): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  request.on('error', () => undefined);
  response.on('error', () => undefined);
  try {
    if (!(await tools.connections.turn(request, response))) return;
    const admission = await tools.authenticator.admit(request, gone.signal, tools.isOwn(request));
    if ('refusal' in admission) return answer(request, response, admission.refusal);
    const refusal = methodRefusal(request);
    if (refusal) return answer(request, response, refusal);
    tools.connections.serve(request, 'known');
    await route(request, response, { ...tools, ...admission, gone });
  } catch (error) {
    if (!gone.signal.aborted) return answer(request, response, refusalOf(error, tools.log));
    response.destroy();
  }
}

interface Visiting extends HandleTools {
  readonly user: UserName;
  readonly address: string;
  readonly gone: AbortController;
}

function refusalFor(away: Upstream | undefined): Refusal {
  return away?.isAbsent === true ? NOT_MOUNTED : NOT_HERE;
}

async function route(request: IncomingMessage, response: ServerResponse, tools: Visiting): Promise<void> {
  const { user, address, gone, visitors } = tools;
  const url = request.url ?? '';
  const place = url === '*' ? { share: undefined, parts: [] } : parsePath(url);
  if (!place) throw new Refused(400, 'This path cannot be asked for.');
  // A share that its user may not enter is as one that is not there.
  const theirs = [...tools.upstreams.values()].filter(({ name }) => visitors.entrance(user, name) !== 'none');
  const known = theirs.filter(({ isKnown }) => isKnown);
  if (place.share === undefined)
    return serveRoot(request, response, known.map((upstream) => upstream.name).sort());
  const isMeant = ({ name }: Upstream): boolean => name.normalize('NFC') === place.share;
  const upstream = known.find(isMeant);
  if (!upstream) return answer(request, response, refusalFor(theirs.find(isMeant)));
  // An answer goes on after the work has ended, and the work after the client has left.
  const left = gone.signal.aborted ? undefined : once(gone.signal, 'abort');
  const work = serve(
    {
      request,
      response,
      upstream,
      user,
      isReader: visitors.entrance(user, upstream.name) === 'read',
      parts: place.parts,
      path: backendPath(upstream, place.parts, hasTrailingSlash(url)),
      gone: gone.signal,
      expectsContinue: tools.expectsContinue,
    },
    tools.put,
  );
  visitors.enter({
    user,
    share: upstream.name,
    from: tools.isOwn(request) ? undefined : { address, socket: request.socket },
    isWriting: isWriting(request.method ?? ''),
    end: () => {
      // Its connection may serve another request by now.
      if (gone.signal.aborted) return;
      // At once: the share may come back before the end of the connection is heard of.
      gone.abort();
      // What the kernel still holds for the client is dropped, too.
      request.socket.resetAndDestroy();
    },
    over: Promise.allSettled([work, left]),
  });
  await work;
}

function methodRefusal(request: IncomingMessage): Refusal | undefined {
  if (METHODS.has(request.method ?? '')) return undefined;
  return { status: 405, text: 'This cannot be done here.', headers: { allow: [...METHODS].join(', ') } };
}

function refusalOf(error: unknown, log: (sentence: string) => void): Refusal {
  if (error instanceof Refused || error instanceof Unavailable) return error.refusal;
  log(`a request failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return { status: 500, text: "Something went wrong here; the server's log says what." };
}
