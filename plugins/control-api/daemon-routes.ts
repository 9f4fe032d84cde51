/** GET /api/plugins and GET /api/notices. */
import type { ServerRoute } from '@hapi/hapi';
import type { PluginContext, PluginInfo } from 'mountkeeper';

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

export function daemonRoutes(ctx: PluginContext): ServerRoute[] {
  return [
    { method: 'GET', path: '/api/plugins', handler: (_request, h) => h.response(ctx.use('plugins').list().map(pluginView)) },
    {
      method: 'GET',
      path: '/api/notices',
      handler: (_request, h) => h.response(ctx.use('status').notices.map(({ level, message }) => ({ level, message }))),
    },
  ];
}
