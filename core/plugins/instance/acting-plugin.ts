/**
 * Which third party's plugin the running code works for, across all awaits, timers and streams that it began. An error
 * that nobody caught is laid at its door by this where its stack says nothing: one that Node made itself, or none at
 * all. Entered where the host calls a plugin that runs in this process, and left where the plugin calls the core.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Plugin } from '../../contract/plugin.ts';

export interface Actor {
  readonly name: string;
  /** Undefined where its module is loaded, and in what that began. */
  readonly plugin?: Plugin;
  /** In place of `plugin`: the copy that is loaded, which is another for each content. */
  readonly folder?: string;
}

const acting = new AsyncLocalStorage<Actor | undefined>();

/** Undefined where the core works for itself. */
export function actorNow(): Actor | undefined {
  return acting.getStore();
}

/** Calls what is the actor's own; without one, just calls it. */
export function actAs<T>(actor: Actor | undefined, work: () => T): T {
  return actor ? acting.run(actor, work) : work();
}

/** Calls what is the core's own: what it begins does not belong to the plugin that asked for it. */
export function actAsCore<T>(work: () => T): T {
  return acting.getStore() ? acting.run(undefined, work) : work();
}

export type AnyFn = (this: unknown, ...args: unknown[]) => unknown;
/** Tables within an entry that are gone through: parts and actions of a tab. */
const DEEPEST = 1;

/** The same function, but that it is called as the actor; on `self`, where that is given. */
export function functionOf(actor: Actor, fn: AnyFn, self?: object): AnyFn {
  return function act(this: unknown, ...args: unknown[]) {
    return acting.run(actor, () => fn.apply(self ?? this, args));
  };
}

/** The same entry of a ledger, but that each function in it is called as the actor. */
export function entryOf<T>(actor: Actor, entry: T): T {
  return called(actor, entry, 0) as T;
}

function called(actor: Actor, value: unknown, depth: number): unknown {
  if (typeof value === 'function') return functionOf(actor, value as AnyFn);
  if (depth > DEEPEST || !isPlain(value)) return value;
  const fields: Record<string, PropertyDescriptor> = Object.getOwnPropertyDescriptors(value);
  for (const field of Object.values(fields))
    if ('value' in field) field.value = called(actor, field.value, depth + 1);
  return Object.create(Object.prototype, fields);
}

/** A table, of no class. */
export function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * A service as others get it: it looks like the one that the plugin has made, and its functions and getters, those of
 * its class too, are called on that one, as the actor. Frozen. What its functions return is as it is.
 */
export function serviceOf(actor: Actor, made: unknown): unknown {
  if (typeof made === 'function') return functionOf(actor, made as AnyFn);
  if (typeof made !== 'object' || made === null) return made;
  return facadeOf(made, prototypeOf(made), (work) => acting.run(actor, work));
}

type Call = <T>(work: () => T) => T;

/**
 * A frozen object with the functions and getters of `made`, those of its class too, which are called on that one
 * through `call`. What its functions return is as it is.
 */
function facadeOf(made: object, prototype: object | null, call: Call): object {
  const facade = Object.create(prototype) as object;
  for (let at: object | null = made; at && at !== Object.prototype; at = prototypeOf(at))
    for (const key of Reflect.ownKeys(at)) {
      if (key === 'constructor' || Object.hasOwn(facade, key)) continue;
      Object.defineProperty(facade, key, forwarded(made, { at, key, call }));
    }
  return Object.freeze(facade);
}

function prototypeOf(value: object): object | null {
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

/**
 * A service of others, for a third party's plugin inside the daemon; the same for each use. It does not get the service
 * itself: whoever replaces a function of that, or of its class, replaces it for all.
 */
export function lentService(service: unknown): unknown {
  if (typeof service !== 'object' || service === null) return service;
  const facade = lent.get(service) ?? facadeOf(service, NO_CLASS, (work) => work());
  lent.set(service, facade);
  return facade;
}
