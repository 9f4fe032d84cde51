/** GET /api/plugins and GET /api/notices. */
import type { ServerRoute } from '@hapi/hapi';
import { documented, Joi } from 'mountkeeper';
import type { PluginContext, PluginInfo } from 'mountkeeper';
import { openApi } from './openapi/document.ts';
import { DOCUMENTS } from './openapi/answers.ts';

export interface PluginView {
  name: string;
  version: string;
  description: string;
  state: string;
  reason: string | null;
  effects: readonly string[];
  third_party: boolean;
}

function pluginView(info: PluginInfo): PluginView {
  return {
    name: info.name,
    version: info.version,
    description: info.description,
    state: info.state,
    reason: info.reason ?? null,
    effects: info.effects,
    third_party: info.thirdParty,
  };
}

/** Of the generation that answers: built once for each, since its routes never change. */
function openApiRoute(): ServerRoute {
  const built = new WeakMap<object, string>();
  return {
    method: 'GET',
    path: '/api/openapi.json',
    options: documented({
      summary: 'This description',
      answers: { 200: Joi.object().unknown().description('OpenAPI 3.1.') },
    }),
    handler: ({ server }, h) => {
      const text = built.get(server.app) ?? JSON.stringify(openApi(server.table()));
      built.set(server.app, text);
      return h.response(text).type('application/json');
    },
  };
}

export function daemonRoutes(ctx: PluginContext): ServerRoute[] {
  return [
    openApiRoute(),
    {
      method: 'GET',
      path: '/api/plugins',
      options: documented(DOCUMENTS.plugins),
      handler: (_request, h) => h.response(ctx.use('plugins').list().map(pluginView)),
    },
    {
      method: 'GET',
      path: '/api/notices',
      options: documented(DOCUMENTS.notices),
      handler: (_request, h) =>
        h.response(ctx.use('status').notices.map(({ level, message }) => ({ level, message }))),
    },
  ];
}
