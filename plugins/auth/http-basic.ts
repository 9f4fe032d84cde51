/**
 * The authenticator as a native hapi plugin. It runs before routing, so it applies to the routes of all
 * plugins whatever they declare, to paths that nobody serves, and to malformed requests.
 */
import type { Lifecycle, Plugin, Request, ResponseObject, ResponseToolkit, Server } from '@hapi/hapi';
import { isFromCommandSocket, principalOf } from 'mountkeeper';
import { refusalOf } from './access.ts';
import type { Decision, Authenticator } from './authenticator.ts';
import type { OpenRequests } from './open-requests.ts';

type Refused = Exclude<Decision, 'open' | 'known'>;

const REFUSALS: Readonly<Record<Refused, { status: number; error: string; message: string }>> = {
  unauthorized: {
    status: 401,
    error: 'Unauthorized',
    message: 'Sign in with the user name and password of web.username and web.password.',
  },
  'no-token': {
    status: 401,
    error: 'Unauthorized',
    message: 'This token is not known, or it has expired.',
  },
  'too-many': {
    status: 429,
    error: 'Too Many Requests',
    message: 'Too many wrong passwords came from your address. Wait a few seconds.',
  },
  closed: {
    status: 503,
    error: 'Service Unavailable',
    message: 'The password of this server cannot be read, so nobody is let in. The log says why.',
  },
};

const CHALLENGE = 'Basic realm="mountkeeper", charset="UTF-8"';
const TOKEN_CHALLENGE = 'Bearer realm="mountkeeper", error="invalid_token"';
const RETRY_SECONDS = '8';

/** Who sent the request is asked before routing; whether that is enough, as soon as the route is known. */
export function httpBasic(authenticator: Authenticator, open: OpenRequests): Plugin<object> {
  const onRequest: Lifecycle.Method = async (request, h) => {
    // The kernel has already checked which user this is.
    if (isFromCommandSocket(request.raw.req)) return h.continue;
    const authorization = request.raw.req.headers.authorization;
    const { address } = request.client;
    const gone = (): AbortSignal => goneOf(request);
    const { decision, admitted } = await authenticator.decide({ authorization, address, gone });
    if (decision === 'known') request.client.markKnown();
    if (admitted !== undefined) {
      Object.assign(request.auth, { isAuthenticated: true, credentials: admitted.principal });
    }
    if (decision === 'open' || admitted !== undefined) open.add(request, admitted);
    return decision === 'open' || decision === 'known' ? h.continue : refused(decision, h);
  };
  return {
    name: 'auth/http-basic',
    register: (server: Server) => {
      server.ext('onRequest', onRequest);
      server.ext('onPreAuth', onPreAuth);
    },
  };
}

function refused(decision: Refused, h: ResponseToolkit): ResponseObject {
  const { status, error, message } = REFUSALS[decision];
  const response = h.response({ statusCode: status, error, message }).code(status);
  if (status !== 401) response.header('retry-after', RETRY_SECONDS);
  else response.header('www-authenticate', decision === 'no-token' ? TOKEN_CHALLENGE : CHALLENGE);
  return response.takeover();
}

/** hapi's own answers to what nobody serves. */
const UNROUTED = '_special';

const onPreAuth: Lifecycle.Method = (request, h) => {
  const principal = principalOf(request);
  const { method, settings } = request.route;
  if (principal === undefined || (method as string) === UNROUTED) return h.continue;
  const refusal = refusalOf(principal, settings.plugins?.access, request.params as Record<string, unknown>);
  if (refusal === undefined) return h.continue;
  // As for a share that is not there.
  if (refusal === 'not-found') return h.response().code(404).takeover();
  return h.response({ statusCode: 403, error: 'Forbidden', message: refusal }).code(403).takeover();
};

function goneOf({ raw: { res } }: Request): AbortSignal {
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  return gone.signal;
}
