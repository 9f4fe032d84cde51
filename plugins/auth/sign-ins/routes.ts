/**
 * Signing in and out by a form. Requests of other sites never come here: the web server refuses what they send, and
 * browsers leave the cookie out of it.
 */
import type { Request, ResponseObject, ResponseToolkit, RouteOptions, ServerRoute } from '@hapi/hapi';
import { openTo, principalOf, safeBack } from 'mountkeeper';
import type { Authenticator, Decision } from '../authenticator.ts';
import { sentCookie, setCookie } from './cookie.ts';
import type { SignIns } from './sign-ins.ts';
import { POLICY, SIGN_IN, signInPage } from './sign-in-page.ts';
import type { PageParts, Shown, SignInProblem } from './sign-in-page.ts';

export const SIGN_OUT = '/sign-out';
const LONGEST_BROWSER = 200;
/** For the reference page of roles: whoever signs in is nobody yet (`isSigningIn`). It opens nothing by itself. */
const FOR_ANYBODY = 'for-anybody';
const PAGE: RouteOptions = {
  ...openTo({ role: 'viewer', isPage: true }),
  state: { parse: false, failAction: 'ignore' },
};
const FORM: RouteOptions = {
  ...PAGE,
  payload: { maxBytes: 16 * 1024, allow: 'application/x-www-form-urlencoded' },
};

const PROBLEMS: Readonly<Record<Exclude<Decision, 'open' | 'known'>, [SignInProblem, number]>> = {
  unauthorized: ['wrong', 401],
  'no-token': ['wrong', 401],
  'too-many': ['too-many', 429],
  closed: ['closed', 503],
  'in-clear': ['in-clear', 403],
};

export interface SignInRouteParts {
  readonly authenticator: Authenticator;
  readonly signIns: SignIns;
  readonly page: PageParts;
  readonly isInClear: (request: Request) => boolean;
  readonly goneOf: (request: Request) => AbortSignal;
  /** A sign-in has been ended: what is being sent over it ends, too. */
  readonly ended: () => void;
}

/** Whether a request asks who it is itself, and needs nobody to be let in. */
export function isSigningIn({ path, method }: Request): boolean {
  return path === SIGN_IN && ['get', 'head', 'post'].includes(method);
}

export interface Page extends Shown {
  readonly request: Request;
  readonly status: number;
}

export function answerPage({ request, status, ...shown }: Page, h: ResponseToolkit): ResponseObject {
  const page = signInPage(request, shown);
  return h.response(page).code(status).type('text/html').header('content-security-policy', POLICY);
}

export function signInRoutes(parts: SignInRouteParts): ServerRoute[] {
  const { authenticator, isInClear, page } = parts;
  return [
    {
      method: 'GET',
      path: SIGN_IN,
      options: { ...PAGE, tags: [FOR_ANYBODY] },
      handler: async (request, h) => {
        const { back } = request.query as Fields;
        const isRefused = isInClear(request) && authenticator.asksAnybody;
        const [status, told] = isRefused ? [403, { problem: 'in-clear' as const }] : [200, {}];
        return answerPage({ request, status, ...page, ...told, back }, h);
      },
    },
    {
      method: 'POST',
      path: SIGN_IN,
      options: { ...FORM, tags: [FOR_ANYBODY] },
      handler: (request, h) => signIn(parts, request, h),
    },
    { method: 'POST', path: SIGN_OUT, options: PAGE, handler: (request, h) => signOut(parts, request, h) },
  ];
}

type Fields = Readonly<Record<string, unknown>>;

async function signIn(
  { authenticator, goneOf, isInClear, page, signIns }: SignInRouteParts,
  request: Request,
  h: ResponseToolkit,
): Promise<ResponseObject> {
  const { back, code, username, password } = (request.payload ?? {}) as Fields;
  const refused = (problem: SignInProblem, status: number): ResponseObject =>
    answerPage(
      { request, status, ...page, back, problem, ...(typeof username === 'string' && { name: username }) },
      h,
    );
  if (typeof username !== 'string' || typeof password !== 'string') return refused('wrong', 400);
  request.app.hasCredentials = true;
  const authorization = `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
  const { address } = request.client;
  const visitor = {
    authorization,
    cookie: undefined,
    address,
    isInClear: isInClear(request),
    gone: () => goneOf(request),
    ...(typeof code === 'string' && code !== '' && { code }),
  };
  const { decision, admitted } = await authenticator.decide(visitor);
  if (decision !== 'known' && decision !== 'open') return refused(...PROBLEMS[decision]);
  const answer = h.response().code(303).header('location', safeBack(back));
  if (!admitted) return answer;
  request.client.markKnown();
  Object.assign(request.auth, { isAuthenticated: true, credentials: admitted.principal });
  endSent(signIns, request);
  const browser = (request.raw.req.headers['user-agent'] ?? '').slice(0, LONGEST_BROWSER);
  const cookie = signIns.begin({ admitted, address, browser });
  return answer.header('set-cookie', setCookie(request, cookie));
}

/** Whoever signs in again has one sign-in, and another cookie. */
function endSent(signIns: SignIns, request: Request): void {
  const cookie = sentCookie(request.raw.req) ?? '';
  const former = cookie === '' ? undefined : signIns.use(cookie)?.principal.signIn;
  if (former !== undefined) signIns.end(former);
}

function signOut({ ended, signIns }: SignInRouteParts, request: Request, h: ResponseToolkit): ResponseObject {
  const id = principalOf(request)?.signIn;
  if (id === undefined) return h.response().code(303).header('location', '/');
  signIns.end(id);
  ended();
  return h
    .response()
    .code(303)
    .header('location', SIGN_IN)
    .header('set-cookie', setCookie(request, undefined));
}
