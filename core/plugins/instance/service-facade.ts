/**
 * Services as others get them. A third party's plugin inside the daemon does not get the service itself: whoever
 * replaces a function of it, or of its class, replaces it for all.
 */

type Call = <T>(work: () => T) => T;

/**
 * A frozen object with the functions and getters of `made`, those of its class too, which are called on that one
 * through `call`. What its functions return is as it is.
 */
export function facadeOf(made: object, prototype: object | null, call: Call): object {
  const facade = Object.create(prototype) as object;
  for (let at: object | null = made; at && at !== Object.prototype; at = prototypeOf(at))
    for (const key of Reflect.ownKeys(at)) {
      if (key === 'constructor' || Object.hasOwn(facade, key)) continue;
      Object.defineProperty(facade, key, forwarded(made, { at, key, call }));
    }
  return Object.freeze(facade);
}

export function prototypeOf(value: object): object | null {
  return Object.getPrototypeOf(value) as object | null;
}

interface Member {
  readonly at: object;
  readonly key: PropertyKey;
  readonly call: Call;
}

function forwarded(made: object, { at, key, call }: Member): PropertyDescriptor {
  const { value, enumerable = false } = Object.getOwnPropertyDescriptor(at, key) ?? {};
  if (typeof value !== 'function')
    return { get: () => call(() => Reflect.get(made, key) as unknown), enumerable };
  const fn = value as (...args: unknown[]) => unknown;
  return { value: (...args: unknown[]) => call(() => fn.apply(made, args)), enumerable };
}

/** In place of the class: nothing that can be written, and `toString` as everywhere. */
const NO_CLASS = Object.freeze({});
const lent = new WeakMap<object, object>();

/** For a third party's plugin inside the daemon; the same for each use. */
export function lentService(service: unknown): unknown {
  if (typeof service !== 'object' || service === null) return service;
  const facade = lent.get(service) ?? facadeOf(service, NO_CLASS, (work) => work());
  lent.set(service, facade);
  return facade;
}
