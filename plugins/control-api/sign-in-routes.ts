/** GET /api/sign-ins and POST /api/sign-ins/{id}/end: who is signed in on the page. */
import type { ServerRoute } from '@hapi/hapi';
import { documented } from 'mountkeeper';
import type { PluginContext, SignIn } from 'mountkeeper';
import { DOCUMENTS } from './openapi/answers.ts';

function signInView({ id, name, role, address, browser, since, usedAt }: SignIn): object {
  const [begun, used] = [since, usedAt].map((at) => new Date(at).toISOString());
  return { id, name, role, address, browser, since: begun, last_request: used };
}

export function signInRoutes(ctx: PluginContext): ServerRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/sign-ins',
      options: documented(DOCUMENTS.signIns, { role: 'admin' }),
      handler: (_request, h) => h.response((ctx.find('signIns')?.list() ?? []).map(signInView)),
    },
    {
      method: 'POST',
      path: '/api/sign-ins/{id}/end',
      // The path is enough; a body is neither needed nor read.
      options: {
        ...documented(DOCUMENTS.endSignIn, { role: 'admin' }),
        payload: { maxBytes: 16 * 1024, parse: false, output: 'data', failAction: 'ignore' },
      },
      handler: (request, h) => {
        const ok = ctx.find('signIns')?.end(String(request.params['id'])) ?? false;
        return h.response({ ok, message: ok ? 'Sign-in ended' : 'There is no such sign-in' });
      },
    },
  ];
}
