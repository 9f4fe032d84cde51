/**
 * What a third party's plugin hands to the web server is called as that plugin, whoever's request it is for: its routes
 * with all that belongs to them, its extensions, its listeners, and what its scheme of authentication is asked.
 */
import type { Server, ServerAuthScheme, ServerRoute } from '@hapi/hapi';
import { functionOf, isPlain } from '../plugins/instance/acting-plugin.ts';
import type { Actor, AnyFn } from '../plugins/instance/acting-plugin.ts';
import { serverView } from './server-view.ts';

/** Tables and lists within each other; `options.pre` of a route has its functions in the sixth. */
const DEEPEST = 6;
/** Of a route or an extension: values of the plugin's own, which must stay the same objects, and Joi itself. */
const LEFT_ALONE: ReadonlySet<string> = new Set(['app', 'bind', 'context', 'plugins', 'validator']);
/** What hapi asks of a scheme. */
const ASKED = ['authenticate', 'payload', 'response', 'verify'] as const;

/** The same server, but that it takes functions as the actor's. What it builds in turn is given such a server, too. */
export function actingServer(server: Server, actor: Actor): Server {
  const hand = (value: unknown): unknown => handed(actor, value);
  const given = (method: unknown): AnyFn =>
    function give(...args) {
      return (method as AnyFn).apply(server, args.map(hand));
    };
  const own: Readonly<Record<string, unknown>> = {
    ext: given(server.ext),
    dependency: given(server.dependency),
    route: (routes: ServerRoute | ServerRoute[]) =>
      server.route([routes].flat().map((one) => routeOf(actor, one))),
    register: (items: unknown, options: object) =>
      (server.register as AnyFn).call(
        server,
        [items].flat().map((one) => pluginOf(one, (register) => building(actor, register))),
        options,
      ),
    auth: {
      ...server.auth,
      scheme: (name: string, scheme: ServerAuthScheme) =>
        server.auth.scheme(
          name,
          schemeOf(building(actor, scheme as AnyFn), (fn, self) => functionOf(actor, fn, self)),
        ),
    },
    events: eventsOf(actor, server.events),
  };
  return serverView(server, own);
}

/** As deep as functions may be found in it. */
function handed(actor: Actor, value: unknown, depth = 0): unknown {
  if (typeof value === 'function') return building(actor, value as AnyFn);
  if (depth > DEEPEST) return value;
  if (Array.isArray(value)) return value.map((one) => handed(actor, one, depth + 1));
  if (!isPlain(value)) return value;
  const fields = Object.entries(value).map(([key, one]) => [
    key,
    LEFT_ALONE.has(key) ? (one as unknown) : handed(actor, one, depth + 1),
  ]);
  return Object.fromEntries(fields) as unknown;
}

/** Some functions are given a server, such as those that register something. */
function building(actor: Actor, fn: AnyFn): AnyFn {
  const act = functionOf(actor, fn);
  return function build(first, ...rest) {
    return act.call(this, isServer(first) ? actingServer(first, actor) : first, ...rest);
  };
}

export function isServer(value: unknown): value is Server {
  const { realm, register } = (value ?? {}) as { readonly realm?: unknown; readonly register?: unknown };
  return typeof realm === 'object' && typeof register === 'function';
}

function routeOf(actor: Actor, route: ServerRoute): ServerRoute {
  const { options } = route;
  if (typeof options !== 'function') return handed(actor, route) as ServerRoute;
  const made: AnyFn = function make(server) {
    return handed(actor, building(actor, options as AnyFn).call(this, server));
  };
  return { ...(handed(actor, route) as ServerRoute), options: made as never };
}

/** In all the forms that `server.register` takes; what is none of them is the web server's to refuse. */
export function pluginOf(item: unknown, toRegister: (register: AnyFn) => AnyFn): unknown {
  const { plugin, register } = (item ?? {}) as { readonly plugin?: unknown; readonly register?: unknown };
  if (plugin !== undefined) return { ...(item as object), plugin: pluginOf(plugin, toRegister) };
  if (typeof register !== 'function') return item;
  return { ...(item as object), register: toRegister((register as AnyFn).bind(item)) };
}

/** A scheme whose functions are called by what `asked` makes of them; `self` is what the scheme has made. */
export function schemeOf(make: AnyFn, asked: (fn: AnyFn, self: object) => AnyFn): ServerAuthScheme {
  return ((...args: unknown[]) => {
    const made = make(...args) as Readonly<Record<string, unknown>>;
    const given = ASKED.filter((name) => typeof made[name] === 'function');
    const own = given.map((name) => [name, asked(made[name] as AnyFn, made)]);
    return { api: made['api'], options: made['options'], ...Object.fromEntries(own) } as unknown;
  }) as ServerAuthScheme;
}

/** By actor and listener: what was added by the one server can be taken away by another. */
const listeners = new WeakMap<Actor, WeakMap<AnyFn, AnyFn>>();

function eventsOf(actor: Actor, events: Server['events']): Server['events'] {
  const known = listeners.get(actor) ?? new WeakMap<AnyFn, AnyFn>();
  listeners.set(actor, known);
  const listenerOf = (listener: AnyFn): AnyFn => {
    const acting = known.get(listener) ?? functionOf(actor, listener);
    known.set(listener, acting);
    return acting;
  };
  const acting: Server['events'] = new Proxy(events, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        const own = args.map((one) => (typeof one === 'function' ? listenerOf(one as AnyFn) : one));
        const given: unknown = (value as AnyFn).apply(target, own);
        return given === target ? acting : given;
      };
    },
  });
  return acting;
}
