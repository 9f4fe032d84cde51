/**
 * The authenticator as a native hapi plugin. It runs before routing, so it applies to the routes of all
 * plugins whatever they declare, to paths that nobody serves, and to malformed requests.
 */
import type { Lifecycle, Plugin, Request, ResponseObject, ResponseToolkit, Server } from '@hapi/hapi';
import { isFromCommandSocket, principalOf } from 'mountkeeper';
import { refusalOf } from './access.ts';
import type { Decision, Authenticator } from './authenticator.ts';
import { sentCookie } from './sign-ins/cookie.ts';
import { answerPage, isSigningIn, signInRoutes } from './sign-ins/routes.ts';
import type { SignIns } from './sign-ins/sign-ins.ts';
import type { PageParts } from './sign-ins/sign-in-page.ts';
import { wayIn } from './sign-ins/way-in.ts';
import type { Admitted } from './principals.ts';
import type { OpenRequests } from './open-requests.ts';

type Refused = Exclude<Decision, 'open' | 'known'> | 'of-plugin';

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
  'of-plugin': {
    status: 403,
    error: 'Forbidden',
    message:
      "This may come from a third party's plugin, which may use nothing of this server without a password or token. " +
      'Set web.password, and give it a token of web.tokens. If it is something else, let it wait for the answer.',
  },
  'in-clear': {
    status: 403,
    error: 'Forbidden',
    message:
      'Over plain HTTP everybody on the way could read a password or a token, so this server takes none from other ' +
      'machines. Let it speak TLS ([web.tls] in its configuration), or allow this by web.plain_http = true.',
  },
};

const CHALLENGE = 'Basic realm="mountkeeper", charset="UTF-8"';
const TOKEN_CHALLENGE = 'Bearer realm="mountkeeper", error="invalid_token"';
const RETRY_SECONDS = '8';

export interface HttpBasicParts {
  readonly authenticator: Authenticator;
  readonly open: OpenRequests;
  readonly signIns: SignIns;
  /** Of the page to sign in. */
  readonly page: PageParts;
  /** Whether what the request brings could be read on its way, and must not be taken therefore. */
  readonly isInClear: (request: Request) => boolean;
  /** Called when a sign-in has been ended. */
  readonly ended: () => void;
}

/**
 * Who sent the request is asked before routing; whether that is enough, as soon as the route is known; and once its
 * body has come, whether both still hold.
 */
export function httpBasic({
  authenticator,
  ended,
  isInClear,
  open,
  page,
  signIns,
}: HttpBasicParts): Plugin<object> {
  const admit = async (request: Request, admitted: Admitted | undefined, h: ResponseToolkit) => {
    // Where nobody is asked who they are, a plugin would get more than its permissions say.
    if (admitted === undefined && (await request.client.mayBePlugin()))
      return said('of-plugin', h).takeover();
    open.add(request, admitted);
    request.app.isStillLetIn = () => open.isStill(request);
    if (admitted !== undefined) letIn(request, admitted);
    return h.continue;
  };
  const onRequest: Lifecycle.Method = async (request, h) => {
    // The kernel has already checked which user this is.
    if (isFromCommandSocket(request.raw.req) || isSigningIn(request)) return h.continue;
    const { authorization } = request.raw.req.headers;
    const cookie = sentCookie(request.raw.req);
    const { address } = request.client;
    const gone = (): AbortSignal => goneOf(request);
    const { decision, admitted } = await authenticator.decide({
      authorization,
      cookie,
      address,
      isInClear: isInClear(request),
      gone,
    });
    if (decision === 'open' || decision === 'known') return admit(request, admitted, h);
    if (decision === 'in-clear') return turnedAway({ request, page }, h);
    if (decision !== 'unauthorized' || authorization !== undefined) return refused(decision, h);
    return unauthorized({ request, page, hasCookie: cookie !== undefined }, h);
  };
  /** The body has come now, as slowly as its sender liked. */
  const onPostAuth: Lifecycle.Method = (request, h) => {
    if (open.isStill(request)) return h.continue;
    if (principalOf(request)?.kind === 'token') return refused('no-token', h);
    return unauthorized({ request, page, hasCookie: sentCookie(request.raw.req) !== undefined }, h);
  };
  return {
    name: 'auth/http-basic',
    register: (server: Server) => {
      server.ext('onRequest', onRequest);
      server.ext('onPreAuth', onPreAuth);
      server.ext('onPostAuth', onPostAuth);
      server.route(signInRoutes({ authenticator, signIns, page, isInClear, goneOf, ended }));
    },
  };
}

function letIn(request: Request, { principal }: Admitted): void {
  request.client.markKnown();
  Object.assign(request.auth, { isAuthenticated: true, credentials: principal });
}

function said(decision: Refused, h: ResponseToolkit): ResponseObject {
  const { status, error, message } = REFUSALS[decision];
  return h.response({ statusCode: status, error, message }).code(status);
}

function refused(decision: Refused, h: ResponseToolkit): ResponseObject {
  const response = said(decision, h);
  if (response.statusCode !== 401) response.header('retry-after', RETRY_SECONDS);
  else response.header('www-authenticate', decision === 'no-token' ? TOKEN_CHALLENGE : CHALLENGE);
  return response.takeover();
}

interface Unauthorized {
  readonly request: Request;
  readonly page: PageParts;
  /** It came with the cookie of a sign-in that has ended. */
  readonly hasCookie: boolean;
}

/** Whoever was signed in by the page signs in by it again, and not by the question that the browser itself asks. */
function unauthorized({ hasCookie, page, request }: Unauthorized, h: ResponseToolkit): ResponseObject {
  const refusal = (): ResponseObject => said('unauthorized', h);
  const led = wayIn({ request, page, refusal }, h);
  if (led) return led.takeover();
  const response = wantsPage(request)
    ? answerPage({ request, status: 401, ...page, back: '/' }, h)
    : refusal();
  return (hasCookie ? response : response.header('www-authenticate', CHALLENGE)).takeover();
}

/** Nobody is asked for a password that everybody on the way could read. Browsers are told on the page to sign in. */
function turnedAway(
  { page, request }: Pick<Unauthorized, 'page' | 'request'>,
  h: ResponseToolkit,
): ResponseObject {
  const refusal = (): ResponseObject => said('in-clear', h);
  const led = wayIn({ request, page, refusal, problem: 'in-clear' }, h);
  if (led) return led.takeover();
  if (!wantsPage(request)) return refusal().takeover();
  return answerPage({ request, status: 403, ...page, back: '/', problem: 'in-clear' }, h).takeover();
}

/** A browser that opens what is no page, such as figures. The API answers in JSON whatever is asked for. */
function wantsPage({ headers, method, path }: Request): boolean {
  return method === 'get' && !path.startsWith('/api/') && /^text\/html\b/.test(String(headers['accept']));
}

/** hapi's own answers to what nobody serves. */
const UNROUTED = '_special';

const onPreAuth: Lifecycle.Method = (request, h) => {
  const principal = principalOf(request);
  const { method, settings } = request.route;
  if (principal === undefined || (method as string) === UNROUTED) return h.continue;
  const refusal = refusalOf(principal, settings.plugins?.access, request.params as Record<string, unknown>);
  if (refusal === undefined) return h.continue;
  if (refusal === 'not-found') {
    // The answer is that for a share that is not there; the record of changes has what was tried.
    request.app.isRefused = true;
    return h.response().code(404).takeover();
  }
  return h.response({ statusCode: 403, error: 'Forbidden', message: refusal }).code(403).takeover();
};

function goneOf({ raw: { res } }: Request): AbortSignal {
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  return gone.signal;
}
