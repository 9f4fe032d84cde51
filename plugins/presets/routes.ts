/** POST /api/preset/{profile}. */
import type { ServerRoute } from '@hapi/hapi';
import { documented } from 'mountkeeper';
import type { PluginContext, RouteDocument } from 'mountkeeper';
import { applyProfile } from './apply.ts';
import { fragmentOf } from './fragment.ts';
import { parseProfile } from './profiles.ts';
import type { ProfileName } from './profiles.ts';

const DOCUMENT: RouteDocument = {
  summary: 'Applies a preset',
  answers: { 200: 'text/html', 400: 'text/plain' },
};

function profileOf(text: string): ProfileName | Error {
  try {
    return parseProfile(text);
  } catch (error) {
    return error as Error;
  }
}

export function routes(ctx: PluginContext): ServerRoute[] {
  return [
    {
      method: 'POST',
      path: '/api/preset/{profile}',
      // The path is enough; a body, such as a form's, is not read.
      options: {
        ...documented(DOCUMENT, { role: 'admin', verb: 'config' }),
        payload: { maxBytes: 16 * 1024, parse: false, output: 'data', failAction: 'ignore' },
      },
      handler: async (request, h) => {
        const profile = profileOf(String(request.params['profile']));
        if (profile instanceof Error) return h.response(profile.message).type('text/plain').code(400);
        const outcome = await applyProfile(ctx.use('config'), profile);
        if (outcome.kind !== 'applied') ctx.log.error({ profile, ...outcome }, 'preset not applied');
        return h.response(fragmentOf(profile, outcome)).type('text/html');
      },
    },
  ];
}
