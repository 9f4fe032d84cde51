/** All routes of the control API that this plugin serves. */
import type { ServerRoute } from '@hapi/hapi';
import type { PluginContext } from 'mountkeeper';
import { commandRoutes } from './command-routes.ts';
import { configRoutes } from './config-routes.ts';
import { daemonRoutes } from './daemon-routes.ts';
import { signInRoutes } from './sign-in-routes.ts';
import { statusRoutes } from './status-routes.ts';

export function routes(ctx: PluginContext): ServerRoute[] {
  return [
    ...statusRoutes(ctx),
    ...configRoutes(ctx),
    ...commandRoutes(ctx),
    ...daemonRoutes(ctx),
    ...signInRoutes(ctx),
  ];
}
