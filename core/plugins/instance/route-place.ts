/**
 * Where the routes of third parties' plugins are: below an address of their own, so that none can take one of
 * the API's or answer for everything. Plugins that come with Mountkeeper choose their addresses.
 */
import type { ServerRoute } from '@hapi/hapi';

/** `/ext/<plugin>`: what a third party's plugin serves is there and below. */
export function routePrefixOf(plugin: string): string {
  return `/ext/${plugin}`;
}

/**
 * A path as it is served: as it stands where it is below the prefix, and with the prefix in front everywhere else.
 * Throws for what does not begin with a slash, which would be another plugin's place.
 */
export function placedPath(path: string, prefix: string): string {
  if (prefix === '' || path === prefix || path.startsWith(`${prefix}/`)) return path;
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw new Error(`the path ${JSON.stringify(path)} of a route must begin with "/"`);
  return path === '/' ? prefix : `${prefix}${path}`;
}

export function placedRoute(route: ServerRoute, prefix: string): ServerRoute {
  return prefix === '' ? route : { ...route, path: placedPath(route.path, prefix) };
}
