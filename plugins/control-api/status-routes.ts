/** GET /api/status and GET /api/status/{share}. */
import type { Lifecycle, Request, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import type { PluginContext } from 'mountkeeper';
import { createStatusBodies } from './status-bodies.ts';
import type { Body } from './status-bodies.ts';

const REFUSED_GZIP = /\bgzip\s*;\s*q=0(?:\.0*)?(?:\s*(?:,|$))/i;

/** True when the client takes gzip. */
export function takesGzip(acceptEncoding: string): boolean {
  return /\bgzip\b/i.test(acceptEncoding) && !REFUSED_GZIP.test(acceptEncoding);
}

function wantsGzip(request: Request): boolean {
  return takesGzip(String(request.raw.req.headers['accept-encoding'] ?? ''));
}

function send(body: Body, h: ResponseToolkit): Lifecycle.ReturnValue {
  const unchanged = h.entity({ etag: body.etag, vary: false });
  if (unchanged) return unchanged.vary('accept-encoding');
  const response = h.response(body.bytes).type('application/json').vary('accept-encoding');
  return body.encoding === undefined ? response : response.header('content-encoding', body.encoding);
}

export function statusRoutes(ctx: PluginContext): ServerRoute[] {
  const bodies = createStatusBodies(() => ctx.use('status').snapshot);
  return [
    { method: 'GET', path: '/api/status', handler: (request, h) => send(bodies.whole(wantsGzip(request)), h) },
    {
      method: 'GET',
      path: '/api/status/{share}',
      handler: (request, h) => {
        const body = bodies.share(String(request.params['share']), wantsGzip(request));
        return body ? send(body, h) : h.response().code(404);
      },
    },
  ];
}
