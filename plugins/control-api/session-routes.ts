/** GET /api/sessions and POST /api/sessions/{id}/end: who is signed in on the page. */
import type { ServerRoute } from '@hapi/hapi';
import { documented } from 'mountkeeper';
import type { PluginContext, SessionInfo } from 'mountkeeper';
import { DOCUMENTS } from './openapi/answers.ts';

function sessionView({ id, name, role, address, browser, since, usedAt }: SessionInfo): object {
  const [begun, used] = [since, usedAt].map((at) => new Date(at).toISOString());
  return { id, name, role, address, browser, since: begun, last_request: used };
}

export function sessionRoutes(ctx: PluginContext): ServerRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/sessions',
      options: documented(DOCUMENTS.sessions, { role: 'admin' }),
      handler: (_request, h) => h.response((ctx.find('sessions')?.list() ?? []).map(sessionView)),
    },
    {
      method: 'POST',
      path: '/api/sessions/{id}/end',
      // The path is enough; a body is neither needed nor read.
      options: {
        ...documented(DOCUMENTS.endSession, { role: 'admin' }),
        payload: { maxBytes: 16 * 1024, parse: false, output: 'data', failAction: 'ignore' },
      },
      handler: (request, h) => {
        const ok = ctx.find('sessions')?.end(String(request.params['id'])) ?? false;
        return h.response({ ok, message: ok ? 'Session ended' : 'There is no such session' });
      },
    },
  ];
}
