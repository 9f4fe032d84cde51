/** GET /api/status and GET /api/extensions, each also of one share. */
import type { Request, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { documented, sharesOf } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { DOCUMENTS } from './openapi/answers.ts';
import { createStatusBodies } from './status-bodies.ts';
import type { Body } from './status-bodies.ts';

const LOOK = { role: 'viewer', verb: 'status' } as const;
const REFUSED_GZIP = /\bgzip\s*;\s*q=0(?:\.0*)?(?:\s*(?:,|$))/i;

/** True when the client accepts gzip. */
export function takesGzip(acceptEncoding: string): boolean {
  return /\bgzip\b/i.test(acceptEncoding) && !REFUSED_GZIP.test(acceptEncoding);
}

/** `If-None-Match` contains a list of tags, which may be weak, or `*`. */
export function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => ['*', etag, `W/${etag}`].includes(tag.trim()));
}

function wantsGzip(request: Request): boolean {
  return takesGzip(String(request.raw.req.headers['accept-encoding'] ?? ''));
}

/**
 * Written without hapi's response handling, which costs more than the rest of a poll. The body never
 * changes once it is made, so hapi has nothing left to do.
 */
function send(body: Body, { raw }: Request, h: ResponseToolkit): symbol {
  const { req, res } = raw;
  const etag = `"${body.etag}"`;
  res.setHeader('cache-control', 'no-store');
  res.setHeader('etag', etag);
  res.setHeader('vary', 'accept-encoding');
  if (matches(req.headers['if-none-match'], etag)) {
    res.statusCode = 304;
    res.end();
    return h.abandon;
  }
  res.setHeader('content-type', 'application/json; charset=utf-8');
  res.setHeader('content-length', body.bytes.length);
  if (body.encoding !== undefined) res.setHeader('content-encoding', body.encoding);
  res.end(req.method === 'HEAD' ? undefined : body.bytes);
  return h.abandon;
}

/** In a header: the body is the same for as long as the snapshot is. */
function tellAge({ raw }: Request, ageMs: number | undefined): void {
  if (ageMs !== undefined) raw.res.setHeader('mountkeeper-synced-age', Math.ceil(ageMs));
}

export function statusRoutes(ctx: PluginContext): ServerRoute[] {
  const bodies = createStatusBodies(() => ctx.use('status'));
  return [
    {
      method: 'GET',
      path: '/api/status',
      options: documented(DOCUMENTS.status, { ...LOOK, share: { filtered: true } }),
      handler: (request, h) => {
        tellAge(request, ctx.use('status').syncedAgeMs);
        return send(bodies.whole(wantsGzip(request), sharesOf(request)), request, h);
      },
    },
    {
      method: 'GET',
      path: '/api/status/{share}',
      options: documented(DOCUMENTS.share, { ...LOOK, share: 'share' }),
      handler: (request, h) => {
        const body = bodies.share(String(request.params['share']), wantsGzip(request));
        return body ? send(body, request, h) : h.response().code(404);
      },
    },
    {
      method: 'GET',
      path: '/api/extensions',
      options: documented(DOCUMENTS.extensions, LOOK),
      handler: (request, h) => send(bodies.extensions(wantsGzip(request)), request, h),
    },
    {
      method: 'GET',
      path: '/api/extensions/{share}',
      options: documented(DOCUMENTS.shareExtensions, { ...LOOK, share: 'share' }),
      handler: (request, h) => {
        const body = bodies.shareExtensions(String(request.params['share']), wantsGzip(request));
        return body ? send(body, request, h) : h.response().code(404);
      },
    },
  ];
}
