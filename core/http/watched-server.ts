/**
 * What a native hapi plugin hands to the web server is measured as its plugin's: extensions, prerequisites of routes,
 * and what its scheme of authentication is asked. It is called as before.
 */
import type { RequestRoute, Server, ServerRoute } from '@hapi/hapi';
import type { AnyFn } from '../plugins/instance/acting-plugin.ts';
import type { Place, StallWatch } from '../sdk/stall-watch.ts';
import { isServer, pluginOf, schemeOf } from './acting-server.ts';
import { serverView } from './server-view.ts';

interface Watched {
  readonly stalls: StallWatch;
  /** Of the plugin, such as `extension onPreAuth`. */
  readonly place: (at: string) => Place;
}

/** An event of `server.ext`, or an item of `pre`. */
interface WithMethod {
  readonly type?: unknown;
  readonly method?: unknown;
}

/** The same server, but that it measures. What it builds in turn is given such a server, too. */
export function watchedServer(server: Server, by: Watched): Server {
  const own: Readonly<Record<string, unknown>> = {
    ext: (events: unknown, method: unknown, ...rest: unknown[]) =>
      (server.ext as AnyFn).call(
        server,
        typeof events === 'string' ? events : each(events, (one) => extension(one as WithMethod, by)),
        watched(method, `extension ${String(events)}`, by),
        ...rest,
      ),
    route: (routes: unknown) =>
      (server.route as AnyFn).call(
        server,
        each(routes, (one) => route(one as ServerRoute, by)),
      ),
    register: (items: unknown, options: object) =>
      (server.register as AnyFn).call(
        server,
        each(items, (one) => pluginOf(one, (register) => building(register, by))),
        options,
      ),
    dependency: (names: unknown, after?: AnyFn) =>
      (server.dependency as AnyFn).call(server, names, after && building(after, by)),
    auth: {
      ...server.auth,
      scheme: (name: string, scheme: AnyFn) => {
        const at = `authentication ${name}`;
        const asked = (fn: AnyFn, self: object): AnyFn => watched(fn.bind(self), at, by) as AnyFn;
        server.auth.scheme(name, schemeOf(building(scheme, by), asked));
      },
    },
  };
  return serverView(server, own);
}

/** Rules that are functions of the plugin's own. The web server reads them with each request. */
export function watchValidation(
  { method, path, settings }: RequestRoute,
  place: Place,
  stalls: StallWatch,
): void {
  const rules = settings.validate as Record<string, unknown> | undefined;
  const at = `validation of ${method.toUpperCase()} ${path}`;
  for (const source of ['headers', 'params', 'query', 'payload', 'state'])
    if (rules && typeof rules[source] === 'function')
      rules[source] = watched(rules[source], at, { stalls, place: () => ({ ...place, at }) });
}

function each(value: unknown, change: (one: unknown) => unknown): unknown {
  return Array.isArray(value) ? value.map(change) : change(value);
}

/** What is no function is the web server's to refuse. */
function watched(fn: unknown, at: string, { stalls, place }: Watched): unknown {
  if (Array.isArray(fn)) return fn.map((one) => watched(one, at, { stalls, place }));
  if (typeof fn !== 'function') return fn;
  const of = place(at);
  return function watch(this: unknown, ...args: unknown[]): unknown {
    return stalls.call(of, () => (fn as AnyFn).apply(this, args));
  };
}

/** Some functions are given a server, such as those that register something. */
function building(fn: AnyFn, by: Watched): AnyFn {
  return function build(first, ...rest) {
    return fn.call(this, isServer(first) ? watchedServer(first, by) : first, ...rest);
  };
}

function extension(event: WithMethod, by: Watched): unknown {
  return withMethod(event, `extension ${String(event?.type)}`, by);
}

function withMethod(given: unknown, at: string, by: Watched): unknown {
  if (typeof given === 'function') return watched(given, at, by);
  if (typeof given !== 'object' || given === null || !('method' in given)) return given;
  return { ...given, method: watched(given.method, at, by) };
}

function route(given: ServerRoute, by: Watched): unknown {
  if (typeof given !== 'object' || given === null) return given;
  const at = `pre of ${[given.method].flat().join(', ').toUpperCase()} ${given.path}`;
  const { options } = given;
  if (typeof options === 'function')
    return {
      ...given,
      options: building(function made(...args) {
        return prerequisites((options as AnyFn).apply(this, args), at, by);
      }, by),
    };
  return options ? { ...given, options: prerequisites(options, at, by) } : given;
}

function prerequisites(options: unknown, at: string, by: Watched): unknown {
  const { pre } = (options ?? {}) as { readonly pre?: unknown };
  if (!Array.isArray(pre)) return options;
  const change = (one: unknown): unknown => withMethod(one, at, by);
  return { ...(options as object), pre: pre.map((one) => each(one, change)) };
}
