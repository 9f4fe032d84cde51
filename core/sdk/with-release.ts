/** A value that a plugin makes, together with its release. */
import type { Release } from '../contract/platform.ts';
import type { WithRelease } from '../contract/plugin.ts';

class ValueWithRelease<T> implements WithRelease<T> {
  readonly value: T;
  readonly release: Release;

  constructor(value: T, release: Release) {
    this.value = value;
    this.release = release;
  }
}

/**
 * For the functions of `ctx.provide` and `ctx.effect`, which return this instead of the bare service or
 * release. `release` is called once, when the plugin is unloaded, and has 30 s. Throws when it is not a
 * function.
 */
export function withRelease<T>(value: T, release: (value: T) => void | Promise<void>): WithRelease<T> {
  if (typeof release !== 'function') throw new Error('withRelease() needs a function that undoes the value');
  return new ValueWithRelease(value, () => release(value));
}

/** Whether `withRelease` made it; a service may have members with the same names. */
export function isWithRelease<T>(made: T | WithRelease<T>): made is WithRelease<T> {
  return made instanceof ValueWithRelease;
}
