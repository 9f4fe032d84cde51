/**
 * The routes of a plugin in its own process: a web server that never listens and is asked by the daemon. So a
 * handler finds the request and the toolkit that it is used to.
 */
import type { Server, ServerRoute } from '@hapi/hapi';
import type { Logger } from '../../../contract/platform.ts';
import { ownPlaceOf } from '../../blame.ts';
import { told } from './denied.ts';
import { MOST_BODY_BYTES } from '../protocol.ts';
import type { RouteAnswer, RouteRequest } from '../protocol.ts';

/** Throws what the web server throws about a route. `folder`: where the plugin's code lies. */
export async function routeServer(
  routes: readonly ServerRoute[],
  log?: Logger,
  folder = '',
): Promise<Server> {
  const { server: create } = await import('@hapi/hapi');
  const server = create({
    autoListen: false,
    compression: false,
    debug: false,
    routes: { payload: { maxBytes: MOST_BODY_BYTES }, cache: { otherwise: 'no-store' } },
  });
  const client = (address: string) => ({
    address,
    isInClear: false,
    markKnown: () => undefined,
    mayBePlugin: async () => false,
  });
  server.decorate('request', 'client', (request) => client(request.info.remoteAddress), { apply: true });
  server.route(routes.map(withoutAuth));
  // The daemon gets an answer, and hears nothing of the error.
  server.events.on({ name: 'request', channels: ['error'] }, ({ method, path }, { error }) =>
    log?.error({ method, path, reason: `${told(error)}${ownPlaceOf(error, [folder])}` }, 'a route failed'),
  );
  await server.initialize();
  return server;
}

/** The daemon has let the request in already. */
function withoutAuth(route: ServerRoute): ServerRoute {
  const { auth, ...options } = { ...(route.options as { auth?: unknown } | undefined) };
  void auth;
  return { ...route, options };
}

export async function answerOf(server: Server, request: RouteRequest): Promise<RouteAnswer> {
  const { method, url, headers, body, remoteAddress } = request;
  const {
    statusCode,
    headers: given,
    rawPayload,
  } = await server.inject({
    method,
    url,
    headers,
    remoteAddress,
    ...(body !== '' && { payload: Buffer.from(body, 'base64') }),
  });
  if (rawPayload.length > MOST_BODY_BYTES)
    throw new Error(`the route's answer is larger than ${MOST_BODY_BYTES} bytes`);
  const plain = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.map(String) : String(value)] as const],
  );
  return { status: statusCode, headers: Object.fromEntries(plain), body: rawPayload.toString('base64') };
}
