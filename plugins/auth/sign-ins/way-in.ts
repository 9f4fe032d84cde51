/**
 * What a browser gets that is not signed in, and asks for a page or a part of one: the way to sign in, and never the
 * question that the browser itself would ask. Everything else is asked by Basic, as programs know it.
 */
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import { pathOf, safeBack } from 'mountkeeper';
import { answerPage } from './routes.ts';
import { signInAt } from './sign-in-page.ts';
import type { PageParts } from './sign-in-page.ts';

export interface Stranger {
  readonly request: Request;
  readonly page: PageParts;
  /** The answer of the API. */
  readonly refusal: () => ResponseObject;
  /** Why nobody can sign in. */
  readonly problem?: 'in-clear';
}

/** Undefined: whoever asks is to be asked by Basic. */
export function wayIn(
  { page, problem, refusal, request }: Stranger,
  h: ResponseToolkit,
): ResponseObject | undefined {
  const { headers } = request.raw.req;
  if (!isPage(request)) return undefined;
  if (headers['hx-request'] === 'true') {
    // A page that was open while its sign-in ended would have an error in the browser's console by another status.
    const isReading = ['get', 'head'].includes(request.method);
    const answer = isReading ? h.response().code(204) : refusal();
    return answer.header('hx-redirect', signInAt(pathOf(headers['hx-current-url'])));
  }
  // The stream of a page cannot show anything: the page finds out by itself.
  if (headers.accept === 'text/event-stream') return refusal();
  if (!isNavigation(request)) return undefined;
  if (request.method === 'get')
    return h
      .response()
      .code(303)
      .header('location', signInAt(safeBack(`${request.path}${request.url.search}`)));
  // What a form sent was not done, and its answer says so.
  const [status, told] = problem === undefined ? [401, {}] : [403, { problem }];
  return answerPage({ request, status, ...page, ...told, back: pathOf(headers.referer) }, h);
}

/** Browsers say so themselves, but over plain HTTP to another machine they do not. */
function isNavigation({ method, raw: { req } }: Request): boolean {
  const { accept = '', 'sec-fetch-mode': mode = 'navigate' } = req.headers;
  return ['get', 'post'].includes(method) && accept.includes('text/html') && mode === 'navigate';
}

function isPage({ method, path, server }: Request): boolean {
  try {
    return server.match(method as 'get', path)?.settings.plugins?.access?.isPage === true;
  } catch {
    // A path that cannot be read.
    return false;
  }
}
