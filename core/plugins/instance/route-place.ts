/**
 * Where the routes of third parties' plugins are: below an address of their own, so that none can take one of
 * the API's or answer for everything. Plugins that come with Mountkeeper choose their addresses.
 */
import type { ServerRoute } from '@hapi/hapi';

/** `/ext/<plugin>`: what a third party's plugin serves is there and below. */
export function routePrefixOf(plugin: string): string {
  return `/ext/${plugin}`;
}

/** Those of `{name*20}` count. */
const MOST_SEGMENTS = 20;

/**
 * What would hold up the daemon, as a sentence. The web server makes a pattern of each segment with a parameter, and
 * asks it before it knows who asks: with `/{a}x{b}x{c}x{d}z`, a long address is tried in all ways there are.
 */
export function pathProblem(path: string): string | undefined {
  const segments = path.split('/').slice(1);
  if (segments.some((one) => one.split('{').length > 2))
    return `a route has two parameters between two slashes, and can have one there: ${JSON.stringify(path)}`;
  const times = segments.map((one) => Number(/\*(\d+)\}/.exec(one)?.[1] ?? 1));
  return times.reduce((sum, one) => sum + one, 0) > MOST_SEGMENTS
    ? `a route has more than ${MOST_SEGMENTS} parts between slashes: ${JSON.stringify(path)}`
    : undefined;
}

/**
 * A path as it is served: as it stands where it is below the prefix, and with the prefix in front everywhere else.
 * Throws for what does not begin with a slash, which would be another plugin's place, and for what would hold up the
 * daemon.
 */
export function placedPath(path: string, prefix: string): string {
  if (prefix === '') return path;
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw new Error(`the path ${JSON.stringify(path)} of a route must begin with "/"`);
  const problem = pathProblem(path);
  if (problem !== undefined) throw new Error(problem);
  if (path === prefix || path.startsWith(`${prefix}/`)) return path;
  return path === '/' ? prefix : `${prefix}${path}`;
}

export function placedRoute(route: ServerRoute, prefix: string): ServerRoute {
  return prefix === '' ? route : { ...route, path: placedPath(route.path, prefix) };
}
