import type { Server } from '@hapi/hapi';

type AnyFn = (this: unknown, ...args: unknown[]) => unknown;

/** The same web server, but for these properties. `refuse` is asked about each other one first; it may throw. */
export function serverView(
  server: Server,
  own: Readonly<Record<string, unknown>>,
  refuse: (key: PropertyKey) => void = () => undefined,
): Server {
  return new Proxy(server, {
    get: (target, key) => {
      if (Object.hasOwn(own, key)) return own[key as string];
      refuse(key);
      const value: unknown = Reflect.get(target, key);
      // Those of its class need it as `this`; its own may have parts, as `cache` has `cache.provision`.
      return typeof value === 'function' && !Object.hasOwn(target, key)
        ? (value as AnyFn).bind(target)
        : value;
    },
  });
}
