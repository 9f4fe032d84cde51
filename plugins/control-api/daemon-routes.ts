/** GET /api/plugins, POST /api/plugins/{name}/enable and GET /api/notices. */
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
  isolation: string;
  permissions: readonly string[] | null;
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
    isolation: info.isolation,
    permissions: info.permissions ?? null,
  };
}

/** For the generation that answers: built once per generation, because its routes never change. */
function openApiRoute(): ServerRoute {
  const built = new WeakMap<object, string>();
  return {
    method: 'GET',
    path: '/api/openapi.json',
    options: documented(
      {
        summary: 'This description',
        answers: { 200: Joi.object().unknown().description('OpenAPI 3.1.') },
      },
      { role: 'viewer', verb: 'status', share: { filtered: true } },
    ),
    handler: ({ server }, h) => {
      const text = built.get(server.app) ?? JSON.stringify(openApi(server.table()));
      built.set(server.app, text);
      return h.response(text).type('application/json');
    },
  };
}

function enable(ctx: PluginContext, name: string): { readonly ok: boolean; readonly message: string } {
  const plugins = ctx.use('plugins');
  const info = plugins.list().find((one) => one.name === name);
  if (!info) return { ok: false, message: `Plugin '${name}' not found` };
  if (plugins.enable(name)) return { ok: true, message: `Bringing back the plugin '${name}'` };
  const why = info.reason === undefined || info.state === 'active' ? '' : `: ${info.reason}`;
  return { ok: false, message: `Plugin '${name}' did not break off, it is ${info.state}${why}` };
}

export function daemonRoutes(ctx: PluginContext): ServerRoute[] {
  return [
    openApiRoute(),
    {
      method: 'GET',
      path: '/api/plugins',
      options: documented(DOCUMENTS.plugins, { role: 'operator', verb: 'config' }),
      handler: (_request, h) => h.response(ctx.use('plugins').list().map(pluginView)),
    },
    {
      method: 'POST',
      path: '/api/plugins/{name}/enable',
      // The path is enough; a body is neither needed nor read.
      options: {
        ...documented(DOCUMENTS.enablePlugin, { role: 'admin', verb: 'config' }),
        payload: { maxBytes: 16 * 1024, parse: false, output: 'data', failAction: 'ignore' },
      },
      handler: (request, h) => h.response(enable(ctx, String(request.params['name']))),
    },
    {
      method: 'GET',
      path: '/api/notices',
      options: documented(DOCUMENTS.notices, { role: 'viewer', verb: 'status' }),
      handler: (_request, h) =>
        h.response(ctx.use('status').notices.map(({ level, message }) => ({ level, message }))),
    },
  ];
}
