/**
 * The authenticator as a native hapi plugin. It runs before routing, so it applies to the routes of all
 * plugins whatever they declare, to paths that nobody serves, and to malformed requests.
 */
import type { Lifecycle, Plugin, Request, Server } from '@hapi/hapi';
import { isFromCommandSocket } from 'mountkeeper';
import type { Decision, Authenticator } from './authenticator.ts';

type Refused = Exclude<Decision, 'open' | 'known'>;

const REFUSALS: Readonly<Record<Refused, { status: number; error: string; message: string }>> = {
  unauthorized: {
    status: 401,
    error: 'Unauthorized',
    message: 'Sign in with the user name and password of web.username and web.password.',
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
const RETRY_SECONDS = '8';

export function httpBasic(authenticator: Authenticator): Plugin<object> {
  const onRequest: Lifecycle.Method = async (request, h) => {
    // The kernel has already checked which user this is.
    if (isFromCommandSocket(request.raw.req)) return h.continue;
    const authorization = request.raw.req.headers.authorization;
    const { address } = request.client;
    const decision = await authenticator.decide({ authorization, address, gone: () => goneOf(request) });
    if (decision === 'known') request.client.markKnown();
    if (decision === 'open' || decision === 'known') return h.continue;
    const { status, error, message } = REFUSALS[decision];
    const response = h.response({ statusCode: status, error, message }).code(status);
    if (status === 401) response.header('www-authenticate', CHALLENGE);
    else response.header('retry-after', RETRY_SECONDS);
    return response.takeover();
  };
  return { name: 'auth/http-basic', register: (server: Server) => server.ext('onRequest', onRequest) };
}

function goneOf({ raw: { res } }: Request): AbortSignal {
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  return gone.signal;
}
