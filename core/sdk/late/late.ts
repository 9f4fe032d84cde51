/**
 * A module's object that is loaded when something of it is asked for. In a plugin's own process: each of the large
 * libraries takes some megabytes there, which most plugins have no use for.
 */
import { createRequire } from 'node:module';

/** `name` as it is required. */
export function late<T extends object>(name: string): T {
  const load = (): T => createRequire(import.meta.url)(name) as T;
  return new Proxy({} as T, {
    get: (_, key) => Reflect.get(load(), key) as unknown,
    set: (_, key, value) => Reflect.set(load(), key, value),
    has: (_, key) => Reflect.has(load(), key),
    ownKeys: () => Reflect.ownKeys(load()),
    getPrototypeOf: () => Reflect.getPrototypeOf(load()),
    getOwnPropertyDescriptor: (_, key) => {
      const found = Reflect.getOwnPropertyDescriptor(load(), key);
      // What the proxy's own object does not have may not be fixed.
      return found && { ...found, configurable: true };
    },
  });
}
