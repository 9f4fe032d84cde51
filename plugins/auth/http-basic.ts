/**
 * The door as a native hapi plugin. It stands before routing, so that it holds for the routes of all plugins whatever
 * they declare, for paths that nobody serves, and for requests that cannot be read.
 */
import type { Lifecycle, Plugin, Server } from '@hapi/hapi';
import { isFromCommandSocket } from 'mountkeeper';
import type { Decision, Door } from './door.ts';

const REFUSALS: Readonly<Record<Exclude<Decision, 'open'>, { status: number; error: string; message: string }>> = {
  unauthorized: { status: 401, error: 'Unauthorized', message: 'Sign in with the user name and password of web.username and web.password.' },
  'too-many': { status: 429, error: 'Too Many Requests', message: 'Too many wrong passwords came from your address. Wait a few seconds.' },
  closed: { status: 503, error: 'Service Unavailable', message: 'The password of this server cannot be read, so nobody is let in. The log says why.' },
};

const CHALLENGE = 'Basic realm="mountkeeper", charset="UTF-8"';
const RETRY_SECONDS = '8';

export function httpBasic(door: Door): Plugin<object> {
  const onRequest: Lifecycle.Method = async (request, h) => {
    // The kernel has asked already who it is.
    if (isFromCommandSocket(request.raw.req)) return h.continue;
    const authorization = request.raw.req.headers.authorization;
    const decision = await door.decide({ authorization, address: request.info.remoteAddress });
    if (decision === 'open') return h.continue;
    const { status, error, message } = REFUSALS[decision];
    const response = h.response({ statusCode: status, error, message }).code(status);
    if (status === 401) response.header('www-authenticate', CHALLENGE);
    else response.header('retry-after', RETRY_SECONDS);
    return response.takeover();
  };
  return { name: 'auth/http-basic', register: (server: Server) => server.ext('onRequest', onRequest) };
}
