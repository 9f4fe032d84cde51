/**
 * A third party's native hapi plugin gets a web server that ends at its own routes: they live below its address,
 * its extensions and listeners are asked for them alone, and what would be everybody's is refused with the
 * sentence why. It keeps honest plugins out of each other's way; code inside the daemon could do anything.
 */
import type { Lifecycle, Plugin as HapiPlugin, Request, Server, ServerRoute } from '@hapi/hapi';
import type { Clock } from '../contract/platform.ts';
import { timeBox } from '../platform/deadline.ts';
import { withProperErrors } from './proper-errors.ts';
import { OwnEvents } from './confined-events.ts';
import { serverView } from './server-view.ts';
import { placedPath } from '../plugins/instance/route-place.ts';

type NativePlugin = HapiPlugin<unknown>;
type AnyFn = (this: unknown, ...args: unknown[]) => unknown;

export interface Confinement {
  readonly plugin: string;
  /** Its routes are here and below; never empty. */
  readonly prefix: string;
  /** Whether the request has found one of its routes. */
  readonly owns: (request: Request) => boolean;
  /** How long one of its extensions may take, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

interface Extension {
  readonly type: string;
  readonly method?: AnyFn | readonly AnyFn[];
  readonly options?: object;
}

const OF_SERVER: ReadonlySet<unknown> = new Set(['onPreStart', 'onPostStart', 'onPreStop', 'onPostStop']);
/** Of `server`: what they change is changed for all. */
const REFUSED: ReadonlySet<unknown> = new Set([
  'control',
  'decoder',
  'encoder',
  'initialize',
  'listener',
  'start',
  'state',
  'stop',
]);

/** The same plugin, also where a whole module was given for it; what it registers in turn is confined, too. */
export function confined(
  given: NativePlugin | { readonly plugin: NativePlugin },
  to: Confinement,
): NativePlugin {
  const native = 'register' in given ? given : given.plugin;
  const register = async (server: Server, options: unknown): Promise<void> => {
    await (native.register as AnyFn)(confinedServer(server, to), options);
  };
  return { ...native, register } as NativePlugin;
}

function refuse(what: string, { plugin }: Confinement): never {
  throw new Error(
    `server.${what} would act on routes of others; a plugin of a third party ("${plugin}") acts on its own alone`,
  );
}

/** Those of one plugin, whatever of it asks. */
const ownEvents = new WeakMap<Confinement, OwnEvents>();

function eventsOf(to: Confinement): OwnEvents {
  const events = ownEvents.get(to) ?? new OwnEvents({ owns: to.owns, refuse: (what) => refuse(what, to) });
  ownEvents.set(to, events);
  return events;
}

function confinedServer(server: Server, to: Confinement): Server {
  const own: Readonly<Record<string, unknown>> = {
    route: (routes: ServerRoute | ServerRoute[]) =>
      server.route([routes].flat().map((one) => within(one, to))),
    register: (plugins: unknown, options: object) =>
      (server.register as AnyFn).call(
        server,
        [plugins].flat().map((one) => confinedItem(one, to)),
        options,
      ),
    ext: (events: string | Extension | Extension[], method: AnyFn, options: object) =>
      extend(server, typeof events === 'string' ? [{ type: events, method, options }] : [events].flat(), to),
    decorate: (
      type: string,
      name: string,
      value: unknown,
      options: { extend?: boolean; apply?: boolean } = {},
    ) => {
      if (options.extend === true || options.apply === true) refuse(`decorate() with extend or apply`, to);
      (server.decorate as AnyFn).call(server, type, name, value, options);
    },
    dependency: (names: unknown, after?: AnyFn) =>
      (server.dependency as AnyFn).call(server, names, after && withConfined(after, to)),
    event: (events: unknown) => eventsOf(to).register(server, events),
    events: eventsOf(to).of(server),
    auth: { ...server.auth, default: () => refuse('auth.default()', to) },
  };
  return serverView(server, own, (key) => {
    if (REFUSED.has(key)) refuse(String(key), to);
  });
}

/** hapi puts the prefix in front itself. */
function within(route: ServerRoute, { prefix }: Confinement): ServerRoute {
  const path = placedPath(route.path, prefix).slice(prefix.length);
  return { ...route, path: path === '' ? '/' : path };
}

/** In all the forms that `server.register` takes. */
function confinedItem(item: unknown, to: Confinement): unknown {
  const { plugin } = item as { plugin?: NativePlugin | { plugin: NativePlugin } };
  if (plugin === undefined) return confined(item as NativePlugin, to);
  const native = 'register' in plugin ? plugin : plugin.plugin;
  return { ...(item as object), plugin: confined(native, to) };
}

function extend(server: Server, events: readonly Extension[], to: Confinement): void {
  for (const { type, method, options } of events) {
    if (type === 'onRequest') refuse('ext("onRequest")', to);
    if (method === undefined) refuse(`ext("${type}") without a method`, to);
    const methods = [method].flat();
    if (OF_SERVER.has(type))
      (server.ext as AnyFn).call(
        server,
        type,
        methods.map((one) => withConfined(one, to)),
        options,
      );
    else for (const one of methods) (server.ext as AnyFn).call(server, type, forOwn(one, to), options);
  }
}

/** What hapi calls later with the server. */
function withConfined(fn: AnyFn, to: Confinement): AnyFn {
  return function later(this: unknown, server, ...rest) {
    return fn.call(this, confinedServer(server as Server, to), ...rest);
  };
}

function forOwn(method: AnyFn, { owns, clock, timeoutMs }: Confinement): Lifecycle.Method {
  return function extension(this: unknown, request, h, error) {
    if (!owns(request)) return h.continue;
    return withProperErrors(() => {
      const given = method.call(this, request, h, error) as Lifecycle.ReturnValue;
      return given instanceof Promise ? timeBox(clock, timeoutMs, given) : given;
    }) as Lifecycle.ReturnValue;
  };
}
