/**
 * Third parties' routes inside the daemon are answered for: one that takes too long, or gives what cannot be sent, gets
 * an answer that names the plugin, and so does the log. The web server would leave such a request open for ever.
 */
import type Boom from '@hapi/boom';
import type { Request, Server, ServerRealm } from '@hapi/hapi';
import type { Clock, Logger } from '../contract/platform.ts';

/** After the end of a route's time: the web server's own answer has begun by then. */
const UNSENT_MS = 1_000;
const UNSENDABLE = 'a route gave an answer that cannot be sent';

export interface AnswerForOptions {
  /** The third party's plugin that a route belongs to; undefined for all others. */
  readonly thirdPartyAt: (realm: ServerRealm) => string | undefined;
  /** How long a route may take to begin its answer, in milliseconds. */
  readonly routeMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** To be called once all routes are there. */
export function answerFor(server: Server, options: AnswerForOptions): void {
  limitTime(server, options);
  const late = lateRequests(server, options);
  const { thirdPartyAt, log, routeMs } = options;
  server.ext('onPreResponse', (request, h) => {
    const { response } = request;
    const plugin = thirdPartyAt(request.route.realm);
    if (plugin === undefined || !('isBoom' in response)) return h.continue;
    if (!isSendable(response)) {
      // The web server would throw where nobody catches it, and leave the request open.
      log.error({ plugin, method: request.method, path: request.path }, UNSENDABLE);
      response.output = { statusCode: 500, payload: unsendableBy(plugin), headers: {} };
    }
    const payload: unknown = response.output.payload;
    // The plugin may have made a text of it.
    if (late.has(request) && typeof payload === 'object')
      response.output.payload.message = `The plugin "${plugin}" did not answer within ${routeMs / 1_000} s.`;
    return h.continue;
  });
  server.ext('onPreAuth', (request, h) => {
    const plugin = thirdPartyAt(request.route.realm);
    if (plugin !== undefined) answerAtLast(request, { plugin, abandon: h.abandon }, options);
    return h.continue;
  });
}

/** The web server itself ends the wait. */
function limitTime(server: Server, { thirdPartyAt, routeMs }: AnswerForOptions): void {
  for (const { realm, settings } of server.table()) {
    if (thirdPartyAt(realm) === undefined) continue;
    const { server: own } = settings.timeout ?? {};
    settings.timeout = {
      ...settings.timeout,
      server: Math.min(typeof own === 'number' ? own : routeMs, routeMs),
    };
  }
}

/** Those whose wait it has ended. */
function lateRequests(
  server: Server,
  { thirdPartyAt, log, routeMs }: AnswerForOptions,
): Pick<WeakSet<Request>, 'has'> {
  const late = new WeakSet<Request>();
  server.events.on(
    { name: 'request', channels: ['internal'] },
    (request, _event, { timeout, server: ofServer }) => {
      const plugin = thirdPartyAt(request.route.realm);
      if (timeout !== true || ofServer !== true || plugin === undefined) return;
      const { method, path } = request;
      late.add(request);
      log.error({ plugin, method, path, ms: routeMs }, 'a route did not answer in time');
    },
  );
  return late;
}

type Output = Boom.Output;

/** An error may carry any answer: a text, or that another page is to be asked for. */
function isSendable({ output }: { readonly output: unknown }): boolean {
  const { statusCode, payload, headers } = (output ?? {}) as Partial<Record<keyof Output, unknown>>;
  const isTable = (one: unknown): boolean => typeof one === 'object' && one !== null;
  const isStatus = Number.isInteger(statusCode) && Number(statusCode) >= 200 && Number(statusCode) <= 599;
  return isStatus && (typeof payload === 'string' || isTable(payload)) && isTable(headers);
}

function unsendableBy(plugin: string): Output['payload'] {
  const message = `The plugin "${plugin}" gave an answer that cannot be sent.`;
  return { statusCode: 500, error: 'Internal Server Error', message };
}

/**
 * The web server gives up its own wait with an answer that it takes for none of its own, such as a symbol, and
 * leaves the request open for ever. What has begun by then, goes on; so does what the plugin answers by itself.
 */
function answerAtLast(
  request: Request,
  { plugin, abandon }: { readonly plugin: string; readonly abandon: symbol },
  { clock, log, routeMs }: AnswerForOptions,
): void {
  const { method, path, raw } = request;
  const { res } = raw;
  const cancel = clock.after(routeMs + UNSENT_MS, () => {
    if (res.headersSent || res.writableEnded || (request.response as unknown) === abandon) return;
    log.error({ plugin, method, path }, UNSENDABLE);
    res.writeHead(500, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
    res.end(JSON.stringify(unsendableBy(plugin)));
  });
  res.once('close', cancel).once('finish', cancel);
}
