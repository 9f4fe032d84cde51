/** Routes that plugins bring as native hapi plugins, which no ledger has: a server of hapi's own is asked for them. */
import { server as hapiServer } from '@hapi/hapi';
import type { Plugin } from '@hapi/hapi';
import type { RouteAccess } from '../core/contract/http.ts';
import type { UsablePlugin } from '../core/plugins/discovery/found.ts';

/** The tag of routes for which nobody has to be signed in: see the plugin `auth`. */
const FOR_ANYBODY = 'for-anybody';

export interface NativeRoute {
  /** Name of the plugin that brings it. */
  readonly plugin: string;
  readonly method: string;
  readonly path: string;
  readonly access: RouteAccess | undefined;
  /** Nobody has to be signed in for it. */
  readonly isForAnybody: boolean;
}

/** The server of each plugin is never started. */
export async function nativeRoutes(plugins: readonly UsablePlugin[]): Promise<readonly NativeRoute[]> {
  const found = await Promise.all(
    plugins.map(async ({ name, ledger }) => {
      const server = hapiServer({ autoListen: false });
      for (const { plugin, options } of ledger.hapi)
        await server.register({ plugin: plugin as Plugin<object>, options: options as object });
      return server.table().map((route) => ({ plugin: name, route }));
    }),
  );
  return found.flat().map(({ plugin, route: { method, path, settings } }) => ({
    plugin,
    method: method.toUpperCase(),
    path,
    access: settings.plugins?.access,
    isForAnybody: settings.tags?.includes(FOR_ANYBODY) === true,
  }));
}
